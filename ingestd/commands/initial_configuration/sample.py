"""The records of a sample file or of a table, read with the connector that the configuration will name."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import polars as pl

from ingestd.commands.initial_configuration.table_layout import Row
from ingestd.commands.mapping_test.sample import read_sample
from ingestd.core.column_profile import ColumnProfile
from ingestd.core.errors import SourceBroken
from ingestd.core.record import Batch
from ingestd.daemon.configuration import Configuration, read_configuration
from ingestd.daemon.parts import open_connector
from ingestd.intake.run import checked_batches
from ingestd.sdk import KnowsKey

RECORDS = 100_000
"""The number of records that are searched for a key."""
_ROWS = 2000
"""The number of rows that are searched for a header."""

DRAFT_KEY = secrets.token_hex()
"""The API key of drafts. Every later message of the command masks this text, so it must not be a word of a message."""

FormatSettings = Mapping[str, object]
"""The setting ``format`` of a source. If it is empty, the suffix of the file selects the format."""


class SampleRecords(msgspec.Struct, frozen=True, kw_only=True):
    """The records of a sample.

    ``first``: the first records, at least `RECORDS` if possible. ``facts``: how the sample was read. ``key``: the primary key.
    ``rejected``: the reason of the first rejected record.
    """

    profile: ColumnProfile
    first: pl.DataFrame
    facts: Mapping[str, str] = msgspec.field(default_factory=dict)
    key: tuple[str, ...] = ()
    rejected: str = ""


def batches_of_file(path: Path, settings: FormatSettings) -> Iterator[Batch]:
    """Read a file in the same way as the directory connector.

    Raises:
        SourceBroken: the format is not known, or the file can't be read.
        ConfigurationError: the settings do not describe a format.
    """
    with TemporaryDirectory(prefix="ingestd-init-") as folder:
        source = {"connector": "directory", "path": folder} | ({"format": settings} if settings else {})
        configuration = _draft(Path(folder), source, {})
        yield from read_sample(configuration, configuration.settings.pipelines[0], path)


def first_rows(path: Path, settings: FormatSettings) -> tuple[list[Row], Mapping[str, str]]:
    """Return the non-empty rows at the beginning of a table file, and the facts.

    ``settings`` have ``columns``, so that no row is a header. CSV rows with more fields than ``columns`` are rejected as
    records; this function takes their fields from the rejects.

    Raises:
        SourceBroken: the file can't be read.
    """
    for batch in batches_of_file(path, settings):
        rows = dict(zip(batch.positions, batch.records.head(_ROWS).iter_rows(), strict=False))
        rows |= {one.position: tuple(one.record.values()) for one in batch.rejects[:_ROWS]}
        found = [(int(number), [cell or "" for cell in cells]) for number, cells in sorted(rows.items())]
        return [(number, cells) for number, cells in found if any(map(str.strip, cells))], batch.facts
    return [], {}


def records_of_file(path: Path, settings: FormatSettings) -> SampleRecords:
    """Return the records of a file; see `batches_of_file`."""
    return _collected(batches_of_file(path, settings))


def glob_of(name: str) -> str:
    """Return a glob for the format's suffix (or the last suffix) in ``name``. Other parts may vary, such as a date."""
    with TemporaryDirectory(prefix="ingestd-init-") as folder:
        configuration = _draft(Path(folder), {"connector": "directory", "path": folder}, {})
    globs: list[str] = configuration.settings.pipelines[0].source.options.model_dump()["pattern"]
    return next((glob for glob in globs if fnmatchcase(name.lower(), glob)), f"*{Path(name).suffix}")


def records_of_table(url: str, table: str) -> SampleRecords:
    """Read a table once. ``url`` may have a password: it is passed as a variable, and never written to a file.

    Raises:
        SourceUnavailable, SourceBroken: the database is not reachable, or does not have the table.
        ConfigurationError: the address is not an address of a database.
    """
    with TemporaryDirectory(prefix="ingestd-init-") as folder:
        source = {"connector": "database", "url": "${env:URL}", "table": table.replace("${", "$${")}
        configuration = _draft(Path(folder), source, {"URL": url}, schedule={"every": "1h"})
        connector = open_connector(configuration, configuration.settings.pipelines[0])
        try:
            batches = (checked_batches(connector.read(partition, None)) for partition in connector.partitions())
            records = _collected(chain.from_iterable(batches))
            key = connector.primary_key() if isinstance(connector, KnowsKey) else ()
        finally:
            connector.close()
        return msgspec.structs.replace(records, key=tuple(key))


def require_records(records: SampleRecords, name: str) -> None:
    """Raise `SourceBroken` if a sample has no records."""
    if not records.profile.records and records.rejected:
        raise SourceBroken(f"{name} has no record that can be read. The first one was rejected: {records.rejected}")
    if not records.profile.records:
        raise SourceBroken(f"{name} has no records, so its columns are not known. Name a sample with records.")


def _collected(batches: Iterable[Batch]) -> SampleRecords:
    profile, frames, facts, rejected = ColumnProfile(), list[pl.DataFrame](), dict[str, str](), ""
    for batch in batches:
        if profile.records < RECORDS:
            frames.append(batch.records)
        profile.add(batch.records)
        facts |= batch.facts
        rejected = rejected or next((one.reason for one in batch.rejects), "")
    return SampleRecords(
        profile=profile,
        first=pl.concat(frames, how="diagonal") if frames else pl.DataFrame(),
        facts=facts,
        rejected=rejected,
    )


def _draft(
    folder: Path, source: Mapping[str, object], environment: Mapping[str, str], **pipeline: object
) -> Configuration:
    path = folder / "draft.yaml"
    draft = {
        "service": {"url": "http://127.0.0.1", "api_key": DRAFT_KEY},
        "state": "none.db",
        "pipelines": [
            {
                "name": "draft",
                "source": source,
                "entries": {"key": "{k}", "value": "{v}"},
                "sink": {"workspace": "none", "label": "none"},
                **pipeline,
            }
        ],
    }
    path.write_text(json.dumps(draft), encoding="utf-8")
    return read_configuration(path, environment=environment, cwd=folder)
