"""The reader of HDF5 files: datasets as channels, in pieces along their first axes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any, BinaryIO

import h5py
import msgspec
import numpy as np

from connectors.formats.file_end import has_data
from connectors.formats.measurement.channels import (
    PIECE_BYTES,
    MeasuredChannel,
    Properties,
    Recording,
    Samples,
    decode_text,
    is_selected,
    left_out_notice,
    property_text,
)
from ingestd.sdk import SourceBroken

OBJECTS = 100_000
_DEPTH = 100
_MATLAB = ("#refs#", "#subsystem#")
"""Groups in which MATLAB stores the content of cell arrays. Only references lead to this content."""
_CACHE_BYTES = 64 * 2**20
"""The size of the library's cache. A larger compressed block is unpacked again for each piece."""
_REFERENCES_BYTES = 64
_INTERNAL = {"DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "H5PATH"}
"""Attributes that the HDF5 library itself writes, and the attribute `H5PATH` of MATLAB."""
_PROPERTY_ITEMS = 1_000
_SUPERBLOCK_BYTES, _VERSION = 64, 8
_ADDRESSES = {0: 24, 1: 28, 2: 12, 3: 12}
"""By version of the superblock: the offset of its addresses. The third address is the end of the file."""


class _DatasetField(msgspec.Struct, frozen=True, kw_only=True):
    """The location of a channel's samples: a dataset and, for a compound type, the fields that lead to the samples."""

    dataset: Any
    fields: tuple[str, ...]


class Hdf5Recording(Recording):
    """The datasets of an HDF5 file. A channel's group is the path of its group in the file, or of its compound dataset."""

    def __init__(self, file: BinaryIO, name: str, select: str) -> None:
        self._file = h5py.File(file, "r", rdcc_nbytes=_CACHE_BYTES)
        if has_data(file, _stated_end(file, self._file)):
            raise SourceBroken(
                f"{name} has data after its end, such as another file that was appended. Drop each file alone."
            )
        self._sources: list[_DatasetField] = []
        channels: list[MeasuredChannel] = []
        left_out: list[str] = []
        group_properties: dict[str, Properties] = {}
        for path, found in _Hdf5Tree(self._file, name, select).walk():
            if isinstance(found, h5py.Group):
                group_properties[path] = _properties(found, path, left_out)
                continue
            group, _, own = path.rpartition("/")
            if (kind := _kind(found)) is None:
                fault = "it is a link to nothing" if found is None else "its type has no equivalent in NumPy"
                self._sources.append(_DatasetField(dataset=found, fields=()))
                channels.append(MeasuredChannel(group=group, name=own, length=0, fault=fault))
                continue
            if is_selected(path, select):
                _refuse_other_files(found, path, name)
            properties = _properties(found, path, left_out) | _shape(found)
            is_compound = kind.names is not None
            if is_compound:
                group_properties[path] = properties
            for fields, inner, size in _fields(kind, (), 1):
                if h5py.check_ref_dtype(inner) is not None:
                    left_out.append("/".join((path, *fields)))
                    continue
                self._sources.append(_DatasetField(dataset=found, fields=fields))
                channels.append(
                    MeasuredChannel(
                        group=path if is_compound else group,
                        name=".".join(fields) or own,
                        length=_length(found) * size,
                        properties={} if is_compound else properties,
                    )
                )
        super().__init__(
            channels,
            properties=_properties(self._file, "", left_out),
            group_properties=group_properties,
            notice=left_out_notice([path for path in left_out if is_selected(path.partition("@")[0], select)]),
        )

    def pieces(self, wanted: Collection[int]) -> Iterator[tuple[int, Samples]]:
        """See `Recording.pieces`. Samples of several dimensions are in file order: the last index changes fastest."""
        for index in wanted:
            source = self._sources[index]
            dataset = source.dataset
            if not _length(dataset):
                continue
            if not dataset.shape:
                yield index, _flat(_read(dataset, ()), source, dataset)
                continue
            item_bytes = dataset.dtype.itemsize if dataset.dtype.kind != "O" else _REFERENCES_BYTES
            for selection in selections(dataset.shape, max(1, PIECE_BYTES // item_bytes)):
                yield index, _flat(_read(dataset, selection), source, dataset)


def _kind(found: h5py.Dataset | None) -> np.dtype[Any] | None:
    """Return the type of a dataset; None if there is no dataset, or if NumPy has no such type."""
    try:
        return None if found is None else found.dtype
    except TypeError:
        return None


def _read(dataset: Any, selection: tuple[int | slice, ...]) -> Any:
    """Return samples of a dataset.

    Raises:
        ValueError: they can't be read, for example because they are compressed by a filter that is not installed.
    """
    try:
        return dataset[selection]
    except OSError as error:
        if error.errno is not None:
            raise
        raise ValueError(f"{dataset.name} can't be read ({error})") from error


def _stated_end(file: BinaryIO, opened: h5py.File) -> int:
    """Return the end of the file that its superblock states. The library ignores all data after it."""
    file.seek(opened.userblock_size)
    head = file.read(_SUPERBLOCK_BYTES)
    size, _ = opened.id.get_create_plist().get_sizes()
    at = _ADDRESSES[head[_VERSION]] + 2 * size
    return int.from_bytes(head[at : at + size], "little")


def selections(shape: Sequence[int], most: int) -> Iterator[tuple[int | slice, ...]]:
    """Yield selections of at most ``most`` items that cover an array of this shape in the order of its items."""
    axis = next((axis for axis in range(len(shape)) if math.prod(shape[axis + 1 :]) <= most), len(shape) - 1)
    step = max(1, most // max(1, math.prod(shape[axis + 1 :])))
    for outer in np.ndindex(*shape[:axis]):
        for start in range(0, shape[axis], step):
            yield (*outer, slice(start, min(start + step, shape[axis])))


def _refuse_other_files(dataset: Any, path: str, name: str) -> None:
    """Check that a dataset has its samples in the file itself.

    Raises:
        SourceBroken: the samples are in other files.
    """
    if dataset.external or dataset.is_virtual:
        raise SourceBroken(
            f"{name}: the samples of {path} are in other files, which are not read. Copy the data into the file."
        )


def _fields(
    kind: np.dtype[Any], names: tuple[str, ...], size: int
) -> Iterator[tuple[tuple[str, ...], np.dtype[Any], int]]:
    """Yield for each simple field of a type: the names that lead to it, its type, and its number of samples in one item."""
    if kind.subdtype is not None:
        base, shape = kind.subdtype
        yield from _fields(base, names, size * math.prod(shape))
    elif kind.names is None:
        yield names, kind, size
    else:
        for name in kind.names:
            yield from _fields(kind[name], (*names, name), size)


def _length(dataset: Any) -> int:
    """Return the number of items that reading a dataset yields."""
    if dataset.shape is None or not math.prod(dataset.shape):
        return 0
    return 1 if _is_matlab_text(dataset) else math.prod(dataset.shape)


def _flat(read: Any, source: _DatasetField, dataset: Any) -> Samples:
    array = np.asarray(read)
    for field in source.fields:
        array = array[field]
    if _is_matlab_text(dataset):
        return np.array(["".join(chr(one) for one in array.reshape(-1, order="C"))], dtype=object)
    return array.reshape(-1)


def _is_matlab_text(dataset: Any) -> bool:
    return dataset.attrs.get("MATLAB_class") in (b"char", "char") and dataset.dtype.kind == "u"


def _properties(found: h5py.Group | h5py.Dataset, path: str, left_out: list[str]) -> dict[str, str]:
    """Return the attributes as text, without `_INTERNAL`.

    References, compound values and very long attributes have no text. Their names are added to ``left_out``.
    """
    properties: dict[str, str] = {}
    for name in found.attrs:
        if name in _INTERNAL:
            continue
        identity = found.attrs.get_id(name)
        try:
            kind = identity.dtype
        except TypeError:  # NumPy has no such type
            kind = None
        if (
            kind is None
            or kind.names
            or h5py.check_ref_dtype(kind)
            or math.prod(identity.shape or ()) > _PROPERTY_ITEMS
        ):
            left_out.append(f"{path}@{name}")
            continue
        value = found.attrs[name]
        if isinstance(value, h5py.Empty):
            properties[name] = ""
        else:
            properties[name] = decode_text(value) if isinstance(value, bytes) else property_text(value)
    return properties


def _shape(dataset: Any) -> dict[str, str]:
    """Return the shape as a property if it has several dimensions."""
    return {"shape": "x".join(map(str, dataset.shape))} if dataset.shape and len(dataset.shape) > 1 else {}


class _Hdf5Tree:
    """Finds every object, once for each of its paths.

    A group that contains itself is not entered again, and no other file is opened.
    """

    def __init__(self, file: h5py.File, name: str, select: str) -> None:
        self._file = file
        self._name = name
        self._select = select
        self._count = 0

    def walk(self) -> Iterator[tuple[str, h5py.Group | h5py.Dataset | None]]:
        """Yield paths and objects. A group comes before its content, and members are in the order of their names.

        None: a selected link leads to nothing.

        Raises:
            SourceBroken: a selected link leads to another file, or there are too many objects or levels.
        """
        yield from self._walk(self._file, "", [h5py.h5o.get_info(self._file["/"].id).addr])

    def _walk(
        self, group: h5py.Group, path: str, above: list[int]
    ) -> Iterator[tuple[str, h5py.Group | h5py.Dataset | None]]:
        for member in sorted(group):
            if not path and member in _MATLAB:
                continue
            inner = f"{path}/{member}" if path else member
            found = self._resolve(group, member, inner, 0)
            if isinstance(found, h5py.Datatype) or (found is None and not is_selected(inner, self._select)):
                continue
            self._count += 1
            if self._count > OBJECTS:
                raise SourceBroken(f"{self._name} has more than {OBJECTS} groups and datasets. Split it.")
            if not isinstance(found, h5py.Group):
                yield inner, found
                continue
            address = h5py.h5o.get_info(found.id).addr
            if address not in above:
                if len(above) == _DEPTH:
                    raise SourceBroken(f"{self._name} has groups that are nested more than {_DEPTH} deep. Split it.")
                yield inner, found
                yield from self._walk(found, inner, [*above, address])

    def _resolve(
        self, group: h5py.Group, member: str, path: str, depth: int
    ) -> h5py.Group | h5py.Dataset | h5py.Datatype | None:
        """Return the object of a member; None if the member leads to nothing or is not selected.

        This method resolves soft links, because the library would also follow a link to another file.
        """
        if depth > _DEPTH:
            return None
        link = group.get(member, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            if is_selected(path, self._select):
                raise SourceBroken(
                    f"{self._name}: {path} is a link to another file, {link.filename}, which is not read. Copy the data into the"
                    " file, or leave it out by select."
                )
            return None
        if isinstance(link, h5py.HardLink):
            return group[member]
        found: h5py.Group | h5py.Dataset | h5py.Datatype | None = self._file if link.path.startswith("/") else group
        for part in [one for one in link.path.split("/") if one not in ("", ".")]:
            if not isinstance(found, h5py.Group) or found.get(part, getlink=True, default=None) is None:
                return None
            found = self._resolve(found, part, path, depth + 1)
        return found
