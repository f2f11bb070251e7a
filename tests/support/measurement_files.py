"""Small measurement files, written by the libraries of their formats or byte by byte."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import h5py
import numpy as np
import numpy.typing as npt
from asammdf import MDF, Signal
from nptdms import ChannelObject, GroupObject, RootObject, TdmsWriter
from scipy.io import savemat

_TDMS_TYPES = {"i2": 2, "i4": 3, "f4": 9, "f8": 10}
_META_DATA, _NEW_OBJECTS, _RAW_DATA, _INTERLEAVED, _HIGH_BYTE_FIRST = 2, 4, 8, 32, 64


def measured(kind: str, content: Mapping[str, Any]) -> bytes:
    """Return a file of the ``kind``. ``content``: ``properties``, ``groups`` (name to properties), and ``channels``."""
    channels = [
        (one["group"], one["name"], typed(one["values"], one.get("type")), typed_properties(one.get("properties", {})))
        for one in content["channels"]
    ]
    properties, groups = typed_properties(content.get("properties", {})), content.get("groups", {})
    return {"tdms": tdms, "hdf5": hdf5, "mat": mat, "mf4": mf4}[kind](properties, groups, channels)


def typed(values: Sequence[Any], kind: str | None) -> npt.NDArray[Any]:
    return np.array(values) if kind is None else np.array(values, dtype=kind)


def typed_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties. A mapping with ``type`` and ``value`` becomes a NumPy value of this type."""
    return {
        name: np.dtype(value["type"]).type(value["value"]) if isinstance(value, Mapping) else value
        for name, value in properties.items()
    }


Channels = Sequence[tuple[str, str, npt.NDArray[Any], Mapping[str, Any]]]


def tdms(properties: Mapping[str, Any], groups: Mapping[str, Any], channels: Channels) -> bytes:
    out = io.BytesIO()
    with TdmsWriter(out) as writer:
        writer.write_segment(
            [
                RootObject(dict(properties)),
                *(GroupObject(name, typed_properties(of_group)) for name, of_group in groups.items()),
                *(ChannelObject(group, name, values, dict(own)) for group, name, values, own in channels),
            ]
        )
    return out.getvalue()


def hdf5(properties: Mapping[str, Any], groups: Mapping[str, Any], channels: Channels) -> bytes:
    out = io.BytesIO()
    with h5py.File(out, "w") as file:
        file.attrs.update(properties)
        for name, of_group in groups.items():
            file.require_group(name).attrs.update(typed_properties(of_group))
        for group, name, values, own in channels:
            text = values.dtype.kind == "U"
            dataset = file.require_group(group or "/").create_dataset(
                name, data=values.astype(object) if text else values, dtype=h5py.string_dtype() if text else None
            )
            dataset.attrs.update(own)
    return out.getvalue()


def mat(properties: Mapping[str, Any], groups: Mapping[str, Any], channels: Channels) -> bytes:
    """Return a MAT file. A group is a structure with a field for each channel. MAT files have no properties."""
    assert not properties
    assert not groups
    variables: dict[str, Any] = {}
    for group, name, values, own in channels:
        assert not own
        (variables.setdefault(group, {}) if group else variables)[name] = values
    return _mat_file(variables, is_compressed=True)


def mf4(properties: Mapping[str, Any], groups: Mapping[str, Any], channels: Channels) -> bytes:
    """Return an MF4 file. Each group also has a channel ``time``. Channels may have the properties ``unit`` and ``comment``."""
    with MDF(version="4.10") as file:
        file.header.start_time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        for name, value in properties.items():
            setattr(file.header, name, value)
        for group in dict.fromkeys(group for group, *_ in channels):
            members = [(name, values, own) for of, name, values, own in channels if of == group]
            signals = [
                Signal(
                    values.astype(bytes) if values.dtype.kind == "U" else values,
                    np.arange(values.size) / 10,
                    name=name,
                    encoding="utf-8" if values.dtype.kind == "U" else None,
                    **own,
                )
                for name, values, own in members
            ]
            file.append(signals, acq_name=group, comment=groups.get(group, {}).get("comment", ""))
        return saved_mf4(file)


def saved_mf4(file: MDF, *, compression: Literal[0, 1, 2] = 0) -> bytes:
    out = io.BytesIO()
    file.save(out, compression=compression)
    return out.getvalue()


_MF4_TYPES = {"u": 0, "i": 2, "f": 4}
_MF4_HEAD = b"MDF     4.10    test    \0\0\0\0" + struct.pack("<H", 410) + b"\0" * 34


class _Mf4Blocks:
    """The blocks of an MF4 file: ASAM MDF 4.1, "Block structure"."""

    def __init__(self) -> None:
        self.data = bytearray(_MF4_HEAD)

    def add(self, tag: str, links: Sequence[int] = (), content: bytes = b"") -> int:
        """Add a block, and return its address."""
        self.data += b"\0" * (-len(self.data) % 8)
        address = len(self.data)
        sizes = struct.pack("<QQ", 24 + 8 * len(links) + len(content), len(links))
        self.data += b"##" + tag.encode() + b"\0" * 4 + sizes + struct.pack(f"<{len(links)}Q", *links) + content
        return address

    def link(self, address: int, number: int, target: int) -> None:
        struct.pack_into("<Q", self.data, address + 24 + 8 * number, target)

    def text(self, text: str) -> int:
        return self.add("TX", (), text.encode() + b"\0")


def mf4_file(
    groups: Mapping[str, Mapping[str, npt.NDArray[Any]]], *, closed: bool = True, is_sorted: bool = True, lists: int = 0
) -> bytes:
    """Return an MF4 file, written without a library, with the samples at the end.

    Not ``closed``: as after a power failure of the recorder: length and numbers of samples are unknown. Not ``is_sorted``: the
    records of all groups are mixed, each with the number of its group. ``lists``: the number of chained lists between the last
    group and its samples.
    """
    blocks = _Mf4Blocks()
    head = blocks.add("HD", [0] * 6, b"\0" * 32)
    blocks.link(head, 1, blocks.add("FH", [0, 0], b"\0" * 16))
    data_groups: list[int] = []
    channel_group = 0
    for number, (name, channels) in enumerate(groups.items(), start=1):
        previous, first, offset = 0, 0, 0
        for own, samples in channels.items():
            content = struct.pack(
                "<BBBBIIIIBBH6d", 0, 0, _MF4_TYPES[samples.dtype.kind], 0, offset, samples.itemsize * 8, *[0] * 11
            )
            channel = blocks.add("CN", [0, 0, blocks.text(own), 0, 0, 0, 0, 0], content)
            if previous:
                blocks.link(previous, 0, channel)
            previous, first, offset = channel, first or channel, offset + samples.itemsize
        count = len(next(iter(channels.values()))) if closed else 0
        content = struct.pack("<QQHHIII", 0 if is_sorted else number, count, 0, 0, 0, offset, 0)
        before, channel_group = channel_group, blocks.add("CG", [0, first, blocks.text(name), 0, 0, 0], content)
        if is_sorted or not data_groups:
            data_groups.append(blocks.add("DG", [0, channel_group, 0, 0], bytes([not is_sorted]) + b"\0" * 7))
            blocks.link(data_groups[-2] if data_groups[1:] else head, 0, data_groups[-1])
        else:
            blocks.link(before, 0, channel_group)
    records = [records_of(channels) for channels in groups.values()]
    if not is_sorted:
        rows = range(max(map(len, records)))
        records = [[bytes([n]) + of[row] for row in rows for n, of in enumerate(records, start=1) if row < len(of)]]
    for data_group, group_records in zip(data_groups, records, strict=True):
        holder, number = data_group, 2
        for _ in range(lists if data_group == data_groups[-1] else 0):
            data_list = blocks.add("DL", [0, 0], struct.pack("<B3xIQ", 0, 1, 0))
            blocks.link(holder, number, data_list)
            holder, number = data_list, 0
        data = blocks.add("DT", (), b"".join(group_records))
        blocks.link(holder, 1 if holder != data_group else 2, data)
        if not closed and data_group == data_groups[-1]:
            struct.pack_into("<Q", blocks.data, data + 8, 24)
    if not closed:
        blocks.data[:8] = b"UnFinMF "
        struct.pack_into("<H", blocks.data, 60, 1 | 4)  # numbers of samples, length of the last data
    return bytes(blocks.data)


def records_of(channels: Mapping[str, npt.NDArray[Any]]) -> list[bytes]:
    """Return the records of a channel group. A record has the bytes of one sample of each channel."""
    return [b"".join(sample.tobytes() for sample in row) for row in zip(*channels.values(), strict=True)]


def tdms_segment(
    channels: Mapping[str, npt.NDArray[Any]], *, interleaved: bool, order: Literal["<", ">"], chunks: int = 1
) -> bytes:
    """Return a segment of a TDMS file with channels of the group Run. Each of the ``chunks`` has the same samples.

    Source of the format: ni.com, "TDMS File Format Internal Structure".
    """
    flags = _META_DATA | _NEW_OBJECTS | _RAW_DATA | (_INTERLEAVED if interleaved else 0)
    flags |= _HIGH_BYTE_FIRST if order == ">" else 0
    metadata = struct.pack(f"{order}L", len(channels))
    for name, samples in channels.items():
        path = f"/'Run'/'{name}'".encode()
        kind = _TDMS_TYPES[samples.dtype.str[1:]]
        metadata += struct.pack(f"{order}L", len(path)) + path
        metadata += struct.pack(f"{order}LLLQ", 20, kind, 1, samples.size) + struct.pack(f"{order}L", 0)
    ordered = [samples.astype(samples.dtype.newbyteorder(order)) for samples in channels.values()]
    if interleaved:
        rows = zip(*([sample.tobytes() for sample in samples] for samples in ordered), strict=True)
        chunk = b"".join(part for row in rows for part in row)
    else:
        chunk = b"".join(samples.tobytes() for samples in ordered)
    data = chunk * chunks
    head = (
        b"TDSm" + struct.pack("<l", flags) + struct.pack(f"{order}lQQ", 4713, len(metadata) + len(data), len(metadata))
    )
    return head + metadata + data


def mat_with_objects(*names: str, is_compressed: bool) -> bytes:
    """Return a MAT file of version 7 with two arrays, MATLAB strings between them, and the content of all objects at the end."""
    before, kept = (_mat_file({name: np.array([0.5])}) for name in ("before", "kept"))
    header, workspace = before[:128], _mat_matrix(9, (1, 8), b"", _mat_element(2, b"\0\1IM\0\0\0\0"))
    objects = [_mat_string(name) for name in names]
    if is_compressed:
        objects = [struct.pack("<II", 15, len(packed)) + packed for packed in map(zlib.compress, objects)]
    return header + before[128:] + b"".join(objects) + kept[128:] + workspace


def _mat_file(variables: Mapping[str, Any], *, is_compressed: bool = False) -> bytes:
    out = io.BytesIO()
    savemat(out, dict(variables), do_compression=is_compressed)
    return out.getvalue()


def _mat_element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def _mat_matrix(kind: int, shape: tuple[int, int], name: bytes, content: bytes) -> bytes:
    flags, size = _mat_element(6, struct.pack("<II", kind, 0)), _mat_element(5, struct.pack("<ii", *shape))
    return _mat_element(14, flags + size + _mat_element(1, name) + content)


def _mat_string(name: str) -> bytes:
    reference = _mat_matrix(13, (6, 1), b"", _mat_element(6, struct.pack("<6I", 0xDD000000, 2, 1, 1, 1, 1)))
    names = b"".join(_mat_element(1, one) for one in (name.encode(), b"MCOS", b"string"))
    return _mat_element(14, _mat_element(6, struct.pack("<II", 17, 0)) + names + reference)
