"""The reader of MAT files: one variable at a time, because scipy reads a variable as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec
import numpy as np
from scipy.io import loadmat, whosmat

from connectors.formats.measurement.channels import PIECE_BYTES, MeasuredChannel, Recording, Samples
from ingestd.sdk import SourceBroken

_HDF5_HEAD = b"MATLAB 7.3"
_DEPTH = 20


class _VariableField(msgspec.Struct, frozen=True, kw_only=True):
    """Where a channel is: a variable, and the fields that lead from it to the channel."""

    variable: str
    fields: tuple[str, ...]


class MatRecording(Recording):
    """The variables of a MAT file. The fields of a structure are channels of a group with its name.

    Cells, structures of several elements, sparse matrices, objects and functions are left out.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        if file.read(len(_HDF5_HEAD)) == _HDF5_HEAD:
            raise SourceBroken(f"{name} is a MAT file of version 7.3, which is HDF5. Set format: hdf5.")
        file.seek(0)
        self._file = file
        self._held: tuple[str, Any] = ("", None)
        self._sources: list[_VariableField] = []
        channels: list[MeasuredChannel] = []
        for variable in [str(found[0]) for found in whosmat(file)]:
            for fields, array in _arrays(self._load(variable), ()):
                *group, own = (variable, *fields)
                self._sources.append(_VariableField(variable=variable, fields=fields))
                shape = {} if 1 in array.shape or array.ndim < 2 else {"shape": "x".join(map(str, array.shape))}
                channels.append(MeasuredChannel(group="/".join(group), name=own, length=array.size, properties=shape))
        super().__init__(channels, properties={}, group_properties={})

    def stream(self, index: int) -> Iterator[Samples]:
        """See `Recording.stream`. A matrix is read column by column, as MATLAB stores it."""
        source = self._sources[index]
        array = dict(_arrays(self._load(source.variable), ()))[source.fields]
        flat = array.reshape(-1, order="F")
        step = max(1, PIECE_BYTES // max(1, flat.dtype.itemsize))
        for start in range(0, flat.size, step):
            yield flat[start : start + step]

    def _load(self, variable: str) -> Any:
        """Return a variable. Only the last one is held."""
        if self._held[0] != variable:
            self._held = ("", None)
            self._file.seek(0)
            self._held = (variable, loadmat(self._file, variable_names=[variable])[variable])
        return self._held[1]


def _arrays(value: Any, fields: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Samples]]:
    """Yield the arrays of numbers and text of a variable, each with the fields that lead to it."""
    if not isinstance(value, np.ndarray):
        return
    if value.dtype.names:
        if value.size == 1 and len(fields) < _DEPTH:
            for name in value.dtype.names:
                yield from _arrays(value.reshape(-1)[0][name], (*fields, name))
    elif value.dtype.kind in "iufcbU":
        yield fields, value
