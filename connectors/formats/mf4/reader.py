"""The reader of MF4 files: asammdf reads the structure and the records of a group, once for all of its channels."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from typing import Any, BinaryIO

import numpy as np
from asammdf.blocks import v4_constants

from connectors.formats.column_names import UniqueNames
from connectors.formats.measurement.channels import (
    PIECE_BYTES,
    MeasuredChannel,
    Properties,
    Recording,
    Samples,
    decode_text,
    left_out_notice,
)
from connectors.formats.mf4.opened_file import open_mdf

_VIRTUAL = (v4_constants.CHANNEL_TYPE_VIRTUAL, v4_constants.CHANNEL_TYPE_VIRTUAL_MASTER)
_NUMBERS = (
    *range(v4_constants.DATA_TYPE_REAL_MOTOROLA + 1),
    v4_constants.DATA_TYPE_COMPLEX_INTEL,
    v4_constants.DATA_TYPE_COMPLEX_MOTOROLA,
)
_ENCODINGS: Mapping[int, str] = {
    v4_constants.DATA_TYPE_STRING_LATIN_1: "latin-1",
    v4_constants.DATA_TYPE_STRING_UTF_8: "utf-8",
    v4_constants.DATA_TYPE_STRING_UTF_16_LE: "utf-16-le",
    v4_constants.DATA_TYPE_STRING_UTF_16_BE: "utf-16-be",
}
_HEADER_PROPERTIES = ("author", "department", "project", "subject", "description")


class Mf4Recording(Recording):
    """The channel groups of an MF4 file. A group without a name is named by its number; a repeated name gets a number.

    The members of structures and arrays are channels. Raw bytes and channels with a formula are left out and named in the notice.
    asammdf would evaluate the formula as code, and return unconverted samples if this fails.
    """

    def __init__(self, file: BinaryIO, name: str, *, sort_bytes: int) -> None:
        self._file_name = name
        self._mdf, is_closed = open_mdf(file, name, piece_bytes=PIECE_BYTES, sort_bytes=sort_bytes)
        self._sources: list[tuple[int, int]] = []
        channels: list[MeasuredChannel] = []
        group_properties: dict[str, Properties] = {}
        formulas: list[str] = []
        left_out: list[str] = []
        group_names = UniqueNames()
        for number, group in enumerate(self._mdf.groups):
            block = group.channel_group
            group_name = group_names.add(block.acq_name or f"group {number + 1}")
            source = block.acq_source
            group_properties[group_name] = _stated({"comment": block.comment, "source": source.name if source else ""})
            channel_names = UniqueNames()
            for index, channel in enumerate(group.channels):
                own = channel_names.add(channel.name)
                if group.channel_dependencies[index]:
                    continue  # its members are channels
                if channel.data_type not in (*_NUMBERS, *_ENCODINGS):
                    left_out.append(f"{group_name}/{own}")
                    continue
                if _has_formula(channel.conversion):
                    formulas.append(f"{group_name}/{own}")
                    continue
                unit = (channel.conversion and channel.conversion.unit) or channel.unit
                self._sources.append((number, index))
                channels.append(
                    MeasuredChannel(
                        group=group_name,
                        name=own,
                        length=block.cycles_nr,
                        properties=_stated({"unit": unit, "comment": channel.comment}),
                    )
                )
        notices = [] if is_closed else [f"{name} was not closed by its recorder; its content up to there was read."]
        if formulas:
            notices.append(f"Channels with a formula are not read: {', '.join(formulas)}.")
        notices += filter(None, [left_out_notice(left_out)])
        header = self._mdf.header
        super().__init__(
            channels,
            properties={
                "start_time": header.start_time.isoformat(),
                **_stated({name: getattr(header, name) for name in _HEADER_PROPERTIES}),
            },
            group_properties=group_properties,
            notice=" ".join(notices),
        )

    def pieces(self, wanted: Collection[int]) -> Iterator[tuple[int, Samples]]:
        """See `Recording.pieces`. Samples that the file marks as invalid are masked."""
        for number, indexes in groupby(sorted(wanted), key=lambda index: self._sources[index][0]):
            yield from self._group_pieces(number, list(indexes))

    def _group_pieces(self, number: int, wanted: Collection[int]) -> Iterator[tuple[int, Samples]]:
        group = self._mdf.groups[number]
        reader: Any = self._mdf._mdf  # noqa: SLF001 - the public methods read a group again for each channel
        stored = []
        for index in wanted:
            channel = group.channels[self._sources[index][1]]
            if channel.channel_type in _VIRTUAL:
                yield from ((index, piece) for piece in _virtual_pieces(channel, self.channels[index].length))
            else:
                stored.append(index)
        if not stored or not group.channel_group.cycles_nr:
            return
        for fragment in reader._load_data(group):  # noqa: SLF001
            for index in stored:
                at = self._sources[index][1]
                samples, invalid = reader.get(
                    group=number, index=at, data=fragment, samples_only=True, ignore_invalidation_bits=True
                )
                texts = _decoded(samples, group.channels[at])
                yield index, texts if invalid is None else np.ma.MaskedArray(texts, mask=invalid)
            reader._invalidation_cache.clear()  # noqa: SLF001 - it would keep the bits of every piece


def _virtual_pieces(channel: Any, length: int) -> Iterator[Samples]:
    """Yield samples that are computed from their number. asammdf counts this number wrongly from the second piece on."""
    step = PIECE_BYTES // 8
    for start in range(0, length, step):
        numbers = np.arange(start, min(start + step, length), dtype=np.uint64)
        yield channel.conversion.convert(numbers) if channel.conversion else numbers


def _decoded(samples: Samples, channel: Any) -> Samples:
    """Return the samples. Text becomes an array of objects. Text from a conversion is in UTF-8."""
    if samples.dtype.kind != "S":
        return samples
    encoding = "utf-8" if channel.conversion else _ENCODINGS.get(channel.data_type, "utf-8")
    texts = np.empty(samples.size, dtype=object)
    for at, sample in enumerate(samples.tolist()):
        # numpy removes zero bytes at the end, also if they are a part of a character
        whole = sample + b"\0" if encoding.startswith("utf-16-le") and len(sample) % 2 else sample
        texts[at] = decode_text(whole, encoding).split("\0", 1)[0]
    return texts


def _has_formula(conversion: Any) -> bool:
    """Return whether a conversion, or another conversion that it refers to, has a formula."""
    if conversion is None or not hasattr(conversion, "conversion_type"):
        return False
    referred = (conversion.referenced_blocks or {}).values()
    is_formula: bool = conversion.conversion_type == v4_constants.CONVERSION_TYPE_ALG
    return is_formula or any(_has_formula(one) for one in referred)


def _stated(properties: Mapping[str, str | None]) -> dict[str, str]:
    """Return the properties that have a text."""
    return {name: text for name, text in properties.items() if text}
