"""The reader of MAT files: one variable at a time, because scipy reads a variable as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO

import msgspec
import numpy as np
from scipy.io import loadmat, whosmat
from scipy.io.matlab import MatlabFunction, MatlabObject, MatlabOpaque, matfile_version, varmats_from_mat

from connectors.formats.measurement.channels import PIECE_BYTES, MeasuredChannel, Recording, Samples, left_out_notice
from ingestd.sdk import SourceBroken, first_names

_HDF5_HEAD = b"MATLAB 7.3"
_DEPTH = 20
_REPLACED, _STRAY = "\ufffd", "\udcff"
"""The character that scipy writes for bytes that are not valid in their encoding, and the representation of such a byte here."""
_SHOWN = 10
_OPAQUE, _WORKSPACE = "None", ""
"""The names that scipy gives to objects, such as MATLAB strings, and to the content of all objects."""


class _VariableField(msgspec.Struct, frozen=True, kw_only=True):
    """The location of a channel: a variable, and the fields that lead from the variable to the channel."""

    variable: str
    fields: tuple[str, ...]


class MatRecording(Recording):
    """The variables of a MAT file. The fields of a structure are channels of a group with the structure's name.

    Cells, structures of several elements, sparse matrices, objects and functions are left out and named in the notice.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        if file.read(len(_HDF5_HEAD)) == _HDF5_HEAD:
            raise SourceBroken(f"{name} is a MAT file of version 7.3, which is HDF5. Set format: hdf5.")
        file.seek(0)
        self._file = file
        self._parts: dict[str, BinaryIO] = {}
        self._held: tuple[str, Any] = ("", None)
        self._sources: list[_VariableField] = []
        channels: list[MeasuredChannel] = []
        left_out: list[str] = []
        variables, notice = self._variables()
        if repeated := [variable for variable, count in Counter(variables).items() if count > 1]:
            raise SourceBroken(
                f"{name} has several variables of the name {repeated[0]!r}, so it is unclear which one counts."
            )
        for variable in variables:
            for fields, array in _arrays(self._load(variable), ()):
                if array is None:
                    left_out.append("/".join((variable, *fields)))
                    continue
                *group, own = (variable, *fields)
                self._sources.append(_VariableField(variable=variable, fields=fields))
                shape = {} if 1 in array.shape or array.ndim < 2 else {"shape": "x".join(map(str, array.shape))}
                channels.append(MeasuredChannel(group="/".join(group), name=own, length=array.size, properties=shape))
        notices = filter(None, [notice, left_out_notice(left_out)])
        super().__init__(channels, properties={}, group_properties={}, notice=" ".join(notices))

    def pieces(self, wanted: Collection[int]) -> Iterator[tuple[int, Samples]]:
        """See `Recording.pieces`. A matrix is read column by column, as MATLAB stores it."""
        for index in wanted:
            source = self._sources[index]
            arrays = {fields: one for fields, one in _arrays(self._load(source.variable), ()) if one is not None}
            flat = arrays[source.fields].reshape(-1, order="F")
            if flat.dtype.kind == "U":
                flat = np.char.replace(flat, _REPLACED, _STRAY)
            step = max(1, PIECE_BYTES // max(1, flat.dtype.itemsize))
            for start in range(0, flat.size, step):
                yield index, flat[start : start + step]

    def _variables(self) -> tuple[list[str], str]:
        """Return the names of readable variables, and a notice about unreadable variables.

        From version 5 on, each variable is read from its own part of the file, because scipy fails at an object if it reads
        the whole file.
        """
        major, _ = matfile_version(self._file)
        if not major:
            return [str(found[0]) for found in whosmat(self._file)], ""
        names: list[str] = []
        objects: list[str] = []
        for name, part in varmats_from_mat(self._file):
            if name == _OPAQUE:
                found = loadmat(part)[name].reshape(-1)[0]
                objects.append(f"{found['s0'].decode()} ({found['s2'].decode()})")
            elif name != _WORKSPACE:
                names.append(name)
                self._parts[name] = part
        if not objects:
            return names, ""
        listed = first_names(sorted(objects), _SHOWN)
        return names, f"Objects of MATLAB are not read: {listed}. Save a string as char."

    def _load(self, variable: str) -> Any:
        """Return a variable. Only the last variable is held in memory."""
        if self._held[0] != variable:
            self._held = ("", None)
            source = self._parts.get(variable, self._file)
            source.seek(0)
            self._held = (variable, loadmat(source, variable_names=[variable])[variable])
        return self._held[1]


def _arrays(value: Any, fields: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Samples | None]]:
    """Yield the arrays of numbers and text of a variable, each with the fields that lead to it; None for any other value."""
    if not isinstance(value, np.ndarray) or isinstance(value, (MatlabFunction, MatlabObject, MatlabOpaque)):
        yield fields, None
    elif value.dtype.names and value.size == 1 and len(fields) < _DEPTH:
        for name in value.dtype.names:
            yield from _arrays(value.reshape(-1)[0][name], (*fields, name))
    else:
        yield fields, value if value.dtype.kind in "iufcbU" else None
