"""Ownership of entries: renamed pipelines, other owners and unexplained entries.

An entry belongs to the partition that named it last. It is *unexplained* if no active pipeline of the sink reads that partition.
The entry was found in the service, its pipeline was removed or now writes another sink, or the mapping no longer produces its
key.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec
import polars as pl

from ingestd.core.address import SinkAddress
from ingestd.mirror.drift import Unexplained, UnexplainedPage, Why
from ingestd.mirror.sqlite.entries.frames import read_frames
from ingestd.mirror.sqlite.sql import SQL


def rename_pipelines(connection: sqlite3.Connection, sources: Mapping[str, str]) -> list[tuple[str, str]]:
    """Pass the state of pipelines to other names with the same source and sink, also if they exchange their names.

    ``sources``: by name of the configured pipeline, the digest of its source and its sink. A pipeline was renamed if exactly
    one name has lost a digest with which it has read, and exactly one name has gained this digest. If the present name already
    has a state, the pipeline is renamed only if this state also gets another name. Return pairs of former and present name.
    """
    known = {name: (source, has_read) for name, source, has_read in connection.execute(SQL["pipeline_sources"])}
    read = {name: source for name, (source, has_read) in known.items() if has_read}
    lost = {name: source for name, source in read.items() if source and sources.get(name) != source}
    got = {name: source for name, source in sources.items() if read.get(name) != source}
    once = {source for source, count in Counter(lost.values()).items() if count == 1}
    once &= {source for source, count in Counter(got.values()).items() if count == 1}
    former = {source: name for name, source in lost.items() if source in once}
    renamed = {former[source]: name for name, source in got.items() if source in once}
    while occupied := [before for before, name in renamed.items() if name in read and name not in renamed]:
        for before in occupied:
            del renamed[before]
    for number, (before, name) in enumerate(renamed.items()):
        if name not in renamed:
            connection.execute(SQL["pipeline_forget"], (name,))
        connection.execute(SQL["pipeline_rename"], (_between(number), before))
    for number, name in enumerate(renamed.values()):
        connection.execute(SQL["pipeline_rename"], (name, _between(number)))
    return list(renamed.items())


def _between(number: int) -> str:
    """Return a temporary name that no configured pipeline has, because two pipelines may exchange their unique names."""
    return f"\0{number}"


def note_sources(connection: sqlite3.Connection, sources: Mapping[str, str]) -> None:
    """Store the sources of the configured pipelines, and retire the partitions of pipelines with another source."""
    known = {name: source for name, source, _ in connection.execute(SQL["pipeline_sources"])}
    for name, source in sources.items():
        if known.get(name) not in {None, source}:
            connection.execute(SQL["partitions_retire"], (name,))
        connection.execute(SQL["pipeline_source_set"], (source, name, source))


class Explaining(msgspec.Struct, frozen=True, kw_only=True):
    """The pipeline that now reads a partition for a sink. ``removes``: it removes the entries of vanished records."""

    pipeline: str
    removes: bool


def explaining_partitions(connection: sqlite3.Connection, sink: int, partitions: list[int]) -> dict[int, Explaining]:
    """Return the ``partitions`` that an active pipeline reads for this sink."""
    parameters = {"sink": sink, "partitions": json.dumps(partitions)}
    return {
        partition: Explaining(pipeline=pipeline, removes=bool(removes))
        for partition, pipeline, removes in connection.execute(SQL["partitions_explaining"], parameters)
    }


class Owners(msgspec.Struct, frozen=True, kw_only=True):
    """The other owners of some entries.

    ``theirs``: the entries that other pipelines own and keep; ``pipelines``: the names of these pipelines, by partition.
    ``removes``: this pipeline's partitions that remove vanished records. ``unexplained``: partitions that explain no entry.
    """

    theirs: pl.DataFrame
    pipelines: Mapping[int, str]
    removes: Sequence[int]
    unexplained: Sequence[int]

    def conflicts(self) -> tuple[tuple[str, str], ...]:
        """Return key and pipeline of each entry in ``theirs``."""
        return tuple((key, self.pipelines[one]) for key, one in self.theirs.select("key", "partition").iter_rows())


def owners_of(
    connection: sqlite3.Connection, others: pl.DataFrame, *, sink: int, pipeline: str, succeeds: bool
) -> Owners:
    """Return the owners of ``others``: entries of other partitions, joined with `known_entries`."""
    if not others.height:
        return Owners(theirs=others, pipelines={}, removes=(), unexplained=())
    partitions = others["partition"].unique().to_list()
    explained = {} if succeeds else explaining_partitions(connection, sink, partitions)
    pipelines = {one: found.pipeline for one, found in explained.items() if found.pipeline != pipeline}
    return Owners(
        theirs=others.filter(pl.col("partition").is_in(list(pipelines))),
        pipelines=pipelines,
        removes=[one for one, found in explained.items() if found.removes and one not in pipelines],
        unexplained=[one for one in partitions if one not in explained],
    )


def left_over(connection: sqlite3.Connection, *, sink: int, partition: int, run: int) -> pl.DataFrame:
    """Return the entries (key, pending) of a partition that are not in the complete ``staging`` of a run."""
    parameters = {"sink": sink, "partition": partition, "run": run}
    schema = {"key": pl.String, "pending": pl.Boolean}
    frames = read_frames(connection.execute(SQL["entries_left_over"], parameters), schema)
    return pl.concat([pl.DataFrame(schema=schema), *frames])


def disown(connection: sqlite3.Connection, sink: int, keys: list[str]) -> None:
    """Make delivered entries unexplained, as if they had been found in the service."""
    connection.execute(SQL["entries_disown"], (sink, json.dumps(keys)))


def doubt_other_addresses(connection: sqlite3.Connection, sink: int, *, at: float) -> bool:
    """Put other addresses of the same sink of the service in doubt, because entries are now sent to ``sink``.

    Return whether there were such addresses that were not in doubt.
    """
    return connection.execute(SQL["doubt_other_addresses"], {"sink": sink, "since": at}).rowcount > 0


def unexplained_count(connection: sqlite3.Connection, sink: int) -> int:
    """Return the number of unexplained entries of a sink. Reads all its entries."""
    count: int = connection.execute(SQL["unexplained_count"], {"sink": sink}).fetchone()[0]
    return count


def unexplained_counts(connection: sqlite3.Connection) -> dict[SinkAddress, tuple[int, bool]]:
    """Return, by sink, the number of unexplained entries, and whether all sources of the sink were read since its adoption."""
    return {
        SinkAddress(workspace=workspace, by=by, name=name): (
            unexplained_count(connection, sink),
            not connection.execute(SQL["sink_unread"], (sink,)).fetchone()[0],
        )
        for sink, workspace, by, name in connection.execute(SQL["sinks_all"]).fetchall()
    }


def unexplained_page(
    connection: sqlite3.Connection, pipelines: Collection[str], *, after: tuple[int, str], limit: int
) -> UnexplainedPage:
    """Return the next unexplained entries in the sinks of ``pipelines``. All pipelines have the sinks that none writes, too."""
    names = json.dumps(list(pipelines))
    found: list[tuple[int, Unexplained]] = []
    for sink, workspace, name in connection.execute(SQL["sinks_of_pipelines"], {"sink": after[0], "names": names}):
        parameters = {"sink": sink, "after": after[1] if sink == after[0] else "", "limit": limit - len(found)}
        for key, value, data_type, pipeline, active, elsewhere in connection.execute(
            SQL["unexplained_page"], parameters
        ):
            why: Why = (
                "found" if pipeline is None else "inactive" if not active else "elsewhere" if elsewhere else "retired"
            )
            one = Unexplained(
                sink=name,
                workspace=workspace,
                key=key,
                value=value,
                data_type=data_type,
                pipeline=pipeline or "",
                why=why,
            )
            found.append((sink, one))
        if len(found) == limit:
            return UnexplainedPage(entries=tuple(one for _, one in found), next=(sink, found[-1][1].key))
    return UnexplainedPage(entries=tuple(one for _, one in found), next=None)


def unexplained_of(connection: sqlite3.Connection, sink: int, keys: Collection[str]) -> list[str]:
    """Return the ``keys`` that no source explains, sorted."""
    parameters = {"sink": sink, "keys": json.dumps(list(keys))}
    return [key for (key,) in connection.execute(SQL["unexplained_of_keys"], parameters)]
