"""The reader of TDMS files: npTDMS reads the structure, and samples are read in pieces.

npTDMS reads a chunk of a segment as a whole, and a chunk can be the whole file. So this module itself reads samples
of a fixed size, at the offsets that npTDMS found. npTDMS reads text, instants and raw DAQmx data.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, BinaryIO

import msgspec
import numpy as np
from nptdms import TdmsFile
from nptdms.base_segment import RawChannelDataChunk
from nptdms.common import toc_properties
from nptdms.scaling import get_scaling
from nptdms.types import DaqMxRawData, SingleFloat, String, Uint32, tds_data_types

from connectors.formats.measurement.channels import (
    PIECE_BYTES,
    MeasuredChannel,
    Properties,
    Recording,
    Samples,
    decode_text,
    property_text,
)
from ingestd.sdk import SourceBroken

_TAG = b"TDSm"
_SCALE_TYPE = re.compile(r"NI_Scale\[\d+\]_Scale_Type")
_HIGH_BYTE_FIRST = 1 << 6
"""The flag of a segment with big-endian byte order."""


class _ExactSingleFloat(SingleFloat):  # type: ignore[misc]  # the library has no types
    """Keeps the 32 bits of a property, because a Python float would show digits that the file doesn't have."""

    @classmethod
    def read(cls, file: BinaryIO, endianness: str = "<") -> np.float32:
        return np.float32(super().read(file, endianness))


tds_data_types[SingleFloat.enum_value] = _ExactSingleFloat  # this module is imported by parser processes only


def _read_text(file: BinaryIO, endianness: str = "<") -> str:
    return decode_text(file.read(Uint32.read(file, endianness)))


def _read_texts(file: BinaryIO, count: int, endianness: str = "<") -> list[str]:
    ends = [Uint32.read(file, endianness) for _ in range(count)]
    return [decode_text(file.read(end - start)) for start, end in pairwise([0, *ends])]


# The library would replace bytes that are not UTF-8.
String.read, String.read_values = staticmethod(_read_text), staticmethod(_read_texts)


class _SampleBlock(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of samples in the file, of one channel or of several interleaved channels.

    ``paths``: the channel of each field of ``row``.
    """

    position: int
    count: int
    row: np.dtype[Any]
    paths: Sequence[str]


class TdmsRecording(Recording):
    """The groups and channels of a TDMS file. A truncated segment is read up to its last complete sample."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        if file.read(len(_TAG)) != _TAG:
            raise SourceBroken(f"{name} is no TDMS file: it does not begin with TDSm.")
        file.seek(0)
        self._file = file
        self._tdms = TdmsFile(file, read_metadata_only=True, keep_open=True)
        self._channels: list[Any] = [channel for group in self._tdms.groups() for channel in group.channels()]
        self._index = {channel.path: index for index, channel in enumerate(self._channels)}
        self._segments: Sequence[Any] = self._tdms._reader._segments or ()  # noqa: SLF001 - see the module
        end = self._segments[-1].next_segment_pos if self._segments else 0
        is_cut = any(segment.segment_incomplete for segment in self._segments) or end < file.seek(0, os.SEEK_END)
        if is_cut and not self._channels:
            raise SourceBroken(f"{name} is incomplete: it ends within its first segment.")
        super().__init__(
            [
                MeasuredChannel(
                    group=channel.group_name,
                    name=channel.name,
                    length=len(channel),
                    properties=_texts(channel.properties),
                    fault=_scaling_fault(
                        channel.properties, self._tdms[channel.group_name].properties, self._tdms.properties
                    ),
                )
                for channel in self._channels
            ],
            properties=_texts(self._tdms.properties),
            group_properties={group.name: _texts(group.properties) for group in self._tdms.groups()},
            notice=f"The last segment of {name} is incomplete; its content up to there was read." if is_cut else "",
        )

    def pieces(self, wanted: Collection[int]) -> Iterator[tuple[int, Samples]]:
        """See `Recording.pieces`; channels of a fixed sample size are read in one pass over the file."""
        paths = {self._channels[index].path for index in wanted}
        by_library = {index for index in wanted if not _has_fixed_size(self._channels[index].data_type)}
        for block in _blocks(self._segments):
            if paths.isdisjoint(block.paths):
                continue
            for rows in self._rows(block):
                for number, path in enumerate(block.paths):
                    if path in paths and (index := self._index[path]) not in by_library:
                        raw = np.ascontiguousarray(rows[f"f{number}"])
                        yield index, self._channels[index]._scale_data(RawChannelDataChunk.channel_data(raw))  # noqa: SLF001
        for index in by_library:
            for chunk in self._channels[index].data_chunks():
                samples = chunk[:]
                yield index, np.array(samples, dtype=object) if isinstance(samples, list) else samples

    def _rows(self, block: _SampleBlock) -> Iterator[Samples]:
        step = max(1, PIECE_BYTES // block.row.itemsize)
        for start in range(0, block.count, step):
            count = min(step, block.count - start)
            self._file.seek(block.position + start * block.row.itemsize)
            data = self._file.read(count * block.row.itemsize)
            yield np.frombuffer(data, dtype=block.row, count=len(data) // block.row.itemsize)


def _blocks(segments: Sequence[Any]) -> Iterator[_SampleBlock]:
    """Yield the ranges with samples of fixed size, in the order of the file."""
    for segment in segments:
        objects = [one for one in segment.ordered_objects if one.has_data]
        if not segment.toc_mask & toc_properties["kTocRawData"] or not any(
            _has_fixed_size(one.data_type) for one in objects
        ):
            continue
        order = ">" if segment.toc_mask & _HIGH_BYTE_FIRST else "<"
        is_interleaved = bool(segment.toc_mask & toc_properties["kTocInterleavedData"])
        size = sum(one.data_size for one in objects)
        for chunk in range(segment.num_chunks):
            is_last = chunk == segment.num_chunks - 1
            cut = segment.final_chunk_lengths_override if is_last else None
            counts = [one.number_values if cut is None else cut.get(one.path, 0) for one in objects]
            position = segment.data_position + chunk * size
            if is_interleaved:
                row = _row([one.data_type.nptype.newbyteorder(order) for one in objects])
                yield _SampleBlock(position=position, count=min(counts), row=row, paths=[one.path for one in objects])
                continue
            for one, count in zip(objects, counts, strict=True):
                if _has_fixed_size(one.data_type):
                    row = _row([one.data_type.nptype.newbyteorder(order)])
                    yield _SampleBlock(position=position, count=count, row=row, paths=[one.path])
                position += count * one.data_type.size if cut is not None and one.data_type.size else one.data_size


def _row(types: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    return np.dtype([(f"f{number}", kind) for number, kind in enumerate(types)])


def _has_fixed_size(kind: Any) -> bool:
    return kind is not None and kind is not DaqMxRawData and kind.nptype is not None and kind.nptype.kind != "M"


def _scaling_fault(*levels: Mapping[str, Any]) -> str:
    """Return why the samples of a channel can't be scaled; empty if they can. The library would return unscaled samples.

    ``levels``: the properties of the channel, of its group and of the file.
    """
    unscaled = [properties for properties in levels if properties.get("NI_Scaling_Status") != "scaled"]
    kinds = [str(kind) for properties in unscaled for name, kind in properties.items() if _SCALE_TYPE.fullmatch(name)]
    try:
        is_scaled = get_scaling(*levels) is not None
    except KeyError as error:
        return f"its scaling has no property {error}"
    return f"its scaling ({', '.join(kinds)}) is not supported" if kinds and not is_scaled else ""


def _texts(properties: Any) -> Properties:
    return {str(name): property_text(value) for name, value in properties.items()}
