"""The records of a recording: channels with statistics, samples, or properties."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Literal

import numpy as np
import polars as pl
from msgspec.structs import replace

from connectors.formats.column_names import UniqueNames
from connectors.formats.frames import field_names, records_to_frame
from connectors.formats.measurement.channels import (
    MeasuredChannel,
    Recording,
    Samples,
    is_selected,
    is_text,
    sample_texts,
    stray_samples,
)
from connectors.formats.measurement.statistics import ChannelStatistics
from ingestd.sdk import NOTICE, Reject, UnreadableColumn
from ingestd.sdk.formats import RecordChunk, RecordLocation
from ingestd.sdk.formats.record_chunk import escape_stray_bytes

_STRAY = "it holds bytes that are no UTF-8 text"
_RECORDS = 5_000
_ROWS = 50_000
_CELLS = 1_000_000


def read_recording(
    recording: Recording,
    *,
    records: Literal["channels", "samples", "properties"],
    statistics: Collection[str],
    select: str,
) -> Iterator[RecordChunk]:
    """Yield the records of a recording, at least one chunk.

    Fields of channels: ``group``, ``channel``, each statistic, and ``property.NAME`` of the channel or, if it has no
    property of that name, of its group or of the file. Fields of samples: ``group``, ``sample`` (its number from 1), and a
    field for each channel of the group. Fields of properties: ``group``, ``channel``, ``name``, ``value``; the first two
    are empty for the file. Positions: the path of a channel, ``GROUP:NUMBER`` of a sample, and ``PATH@NAME`` of a property.
    """
    wanted = [
        index
        for index, channel in enumerate(recording.channels)
        if fnmatch.fnmatchcase(channel.path, select) or (channel.fault and is_selected(channel.path, select))
    ]
    unmatched = "" if wanted or not recording.channels else f"No channel matches select '{select}'."
    notice = recording.notice or unmatched
    facts = {NOTICE: notice} if notice else {}
    if records == "samples":
        yield from _sample_chunks(recording, wanted, facts)
    elif records == "properties":
        yield from _chunks(_property_records(recording, wanted), facts, total=None)
    else:
        yield from _chunks(_channel_records(recording, wanted, statistics), facts, total=len(wanted))


_Located = tuple[str, dict[str, str | None]]


def _channel_records(
    recording: Recording, wanted: Sequence[int], statistics: Collection[str]
) -> Iterator[_Located | Reject]:
    found = {index: ChannelStatistics() for index in wanted}
    if statistics:
        for index, piece in recording.pieces([index for index in wanted if not recording.channels[index].fault]):
            found[index].add(piece)
    for index in wanted:
        channel = recording.channels[index]
        if channel.fault:
            yield _reject(channel)
            continue
        if statistics:
            _check_length(channel, found[index].count)
        inherited = {**recording.properties, **recording.group_properties.get(channel.group, {}), **channel.properties}
        yield (
            channel.path,
            {
                "group": channel.group,
                "channel": channel.name,
                **found[index].texts(statistics),
                **{f"property.{name}": value for name, value in inherited.items()},
            },
        )


def _check_length(channel: MeasuredChannel, read: int) -> None:
    """Check that all samples of a channel were read.

    Raises:
        ValueError: the file states another number of samples.
    """
    if read != channel.length:
        raise ValueError(f"{channel.path} has {read} samples, and the file states {channel.length}")


def _reject(channel: MeasuredChannel) -> Reject:
    return Reject(
        position=escape_stray_bytes(channel.path),
        reason=f"The channel can't be read: {channel.fault}.",
        record={name: escape_stray_bytes(text) for name, text in (("group", channel.group), ("channel", channel.name))},
    )


def _property_records(recording: Recording, wanted: Sequence[int]) -> Iterator[_Located | Reject]:
    yield from _named("", "", "", recording.properties)
    channels = [recording.channels[index] for index in wanted]
    for group in dict.fromkeys(channel.group for channel in channels):
        if group:
            yield from _named(group, group, "", recording.group_properties.get(group, {}))
    for channel in channels:
        if channel.fault and not channel.properties:
            yield _reject(channel)
        yield from _named(channel.path, channel.group, channel.name, channel.properties)


def _named(path: str, group: str, channel: str, properties: Mapping[str, str]) -> Iterator[_Located]:
    for name, value in properties.items():
        yield f"{path}@{name}", {"group": group, "channel": channel, "name": name, "value": value}


def _chunks(
    records: Iterator[_Located | Reject], facts: Mapping[str, str], *, total: int | None
) -> Iterator[RecordChunk]:
    row, is_empty = 0, True
    while block := list(islice(records, _RECORDS)):
        row, is_empty = row + len(block), False
        located = [one for one in block if not isinstance(one, Reject)]
        strays: dict[str, list[int]] = {}
        fields = [
            {
                escape_stray_bytes(name): _checked(value, strays.setdefault(name, []), at)
                for name, value in record.items()
            }
            for at, (_, record) in enumerate(located)
        ]
        chunk = _chunk(records_to_frame(fields, field_names(fields)), [path for path, _ in located], row, facts, total)
        rejects = tuple(one for one in block if isinstance(one, Reject))
        yield replace(chunk, rejects=rejects, unreadable=_unreadable(strays))
    if is_empty:
        yield _chunk(pl.DataFrame(), [], 0, facts, total)


def _checked(value: str | None, strays: list[int], row: int) -> str | None:
    """Return a value; None if it has stray bytes, and add ``row`` to ``strays``."""
    if value is None or is_text(value):
        return value
    strays.append(row)
    return None


def _unreadable(strays: Mapping[str, Sequence[int]]) -> tuple[UnreadableColumn, ...]:
    return tuple(
        UnreadableColumn(name=escape_stray_bytes(name), reason=_STRAY, rows=tuple(rows))
        for name, rows in strays.items()
        if rows
    )


def _sample_chunks(recording: Recording, wanted: Sequence[int], facts: Mapping[str, str]) -> Iterator[RecordChunk]:
    """Yield the samples of each group as rows. A channel with fewer samples than other channels is null in the last rows."""
    row, is_empty = 0, True
    by_group = sorted(wanted, key=lambda index: recording.channels[index].group)
    for group, indexes in groupby(by_group, key=lambda index: recording.channels[index].group):
        names: dict[str, _SampleCursor] = {}
        column_names = UniqueNames(("group", "sample"))
        faults: list[UnreadableColumn] = []
        total = 0
        for index in indexes:
            channel = recording.channels[index]
            name = column_names.add(escape_stray_bytes(channel.name))
            if channel.fault:
                faults.append(UnreadableColumn(name=name, reason=channel.fault))
                continue
            names[name] = _SampleCursor(channel, recording.stream(index))
            total = max(total, channel.length)
        step = max(1, min(_ROWS, _CELLS // (len(names) + 2)))
        for start in range(0, total, step) or ([0] if faults else ()):
            count = min(step, total - start)
            numbers = np.arange(start + 1, start + count + 1)
            strays: dict[str, list[int]] = {name: [] for name in ("group", *names)}
            columns = {name: _padded(cursor.take(count), count, strays[name]) for name, cursor in names.items()}
            groups = [_checked(group, strays["group"], at) for at in range(count)]
            frame = pl.DataFrame(
                {"group": pl.Series(groups, dtype=pl.String), "sample": sample_texts(numbers), **columns}
            )
            row, is_empty = row + count, False
            chunk = _chunk(frame, [f"{group}:{number}" for number in numbers], row, facts, None)
            yield replace(chunk, unreadable=(*faults, *_unreadable(strays)))
        for cursor in names.values():
            cursor.check_end()
    if is_empty:
        yield _chunk(pl.DataFrame(), [], 0, facts, None)


class _SampleCursor:
    """The samples of a channel that were not taken yet."""

    def __init__(self, channel: MeasuredChannel, pieces: Iterator[Samples]) -> None:
        self._channel = channel
        self._pieces = pieces
        self._count = 0
        self._rest: list[Samples] = []

    def take(self, count: int) -> list[Samples]:
        """Return the next ``count`` samples as arrays; fewer at the end of the channel."""
        taken: list[Samples] = []
        while count:
            piece = self._rest.pop() if self._rest else next(self._pieces, None)
            if piece is None:
                break
            taken.append(piece[:count])
            if piece.size > count:
                self._rest.append(piece[count:])
            count -= taken[-1].size
        self._count += sum(piece.size for piece in taken)
        return taken

    def check_end(self) -> None:
        """Check that the channel has as many samples as the file states.

        Raises:
            ValueError: the channel has more or fewer samples.
        """
        rest = sum(piece.size for piece in (*self._rest, *self._pieces))
        _check_length(self._channel, self._count + rest)


def _padded(pieces: Sequence[Samples], count: int, strays: list[int]) -> pl.Series:
    """Return ``count`` texts, the last of them null if there are fewer samples. Add the indexes of stray texts to ``strays``."""
    texts = pl.Series("sample", [], dtype=pl.String)
    for piece in pieces:
        strays += [texts.len() + at for at in stray_samples(piece)]
        texts = texts.append(sample_texts(piece))
    return texts.extend_constant(None, count - texts.len())


def _chunk(
    frame: pl.DataFrame, positions: Sequence[str], row: int, facts: Mapping[str, str], total: int | None
) -> RecordChunk:
    return RecordChunk(
        records=frame,
        positions=pl.Series("position", map(escape_stray_bytes, positions), dtype=pl.String),
        end=RecordLocation(row=row),
        total=total,
        facts=facts,
    )
