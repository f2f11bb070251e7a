"""The mapping of files in a folder by a configuration, with the real connector and without a mirror."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

from ingestd.core.groups import Aggregation
from ingestd.core.mapping import AbsentFields, Mapping
from ingestd.core.record import Batch, Reject
from ingestd.core.unreadable import reject_unreadable
from ingestd.intake import LookupFiles
from ingestd.intake.group_stage import GroupStage
from ingestd.intake.run import checked_batches
from ingestd.registry import connector_class
from ingestd.sdk import SourceContext
from ingestd.settings.loader import load_settings

_CONFIGURATION = """\
service: {url: "http://127.0.0.1:8400", api_key: k-1}
state: ingestd.db
pipelines:
  - name: files
    source: {connector: directory, path: drop, settle_seconds: 0, format: FORMAT}
    sink: {workspace: w, label: Files}
"""


@dataclass(frozen=True, slots=True)
class MappedFiles:
    """The entries (key, value, data type) and the rejected records of all files, in the order of their names."""

    entries: list[tuple[str, str, str]]
    rejects: list[Reject]


def map_files(
    folder: Path,
    entries: str,
    files: MappingOf[str, str],
    *,
    file_format: str = "{type: csv}",
    tables: MappingOf[str, str] | None = None,
) -> MappedFiles:
    """Map the records of ``files`` (content by name).

    ``entries``: the YAML text of the setting ``entries``, or of ``group`` and ``entries``; with groups, the result is sorted by
    key. ``tables``: the files of lookups (content by name).

    Raises:
        ConfigurationError: ``entries`` has a mistake.
        SourceBroken: a file can't be mapped.
        SourceUnavailable: a file of a lookup can't be used.
    """
    drop = folder / "drop"
    drop.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (drop / name).write_text(content, encoding="utf-8")
    for name, content in (tables or {}).items():
        (folder / name).write_text(content, encoding="utf-8")
    lines = entries.strip("\n").splitlines()
    lines = (
        lines if any(line.startswith("entries:") for line in lines) else ["entries:", *(f"  {line}" for line in lines)]
    )
    indented = "".join(f"    {line}\n" for line in lines)
    path = folder / "ingestd.yaml"
    path.write_text(_CONFIGURATION.replace("FORMAT", file_format) + indented, encoding="utf-8")
    [pipeline] = load_settings(path, options_of=connector_class, environment={}).pipelines
    mapping = Mapping(pipeline.entries)
    mapping = mapping.with_tables(LookupFiles(mapping.table_sources, base=folder).read() or {})
    context = SourceContext(pipeline=pipeline.name, base=folder, now=lambda: 4_000_000_000.0)
    connector = connector_class(pipeline.source.connector)(pipeline.source.options, context)
    found = MappedFiles(entries=[], rejects=[])
    try:
        for partition in sorted(connector.partitions(), key=lambda one: one.name):
            batches = checked_batches(connector.read(partition, None))
            fields = AbsentFields(mapping, whole=True)
            for batch in (
                _grouped(batches, Aggregation(pipeline.group), found) if pipeline.group is not None else batches
            ):
                batch = reject_unreadable(batch, mapping)  # noqa: PLW2901 - the same records
                fields.add(batch)
                hashes = mapping.row_hashes(batch.records, batch.facts)
                mapped = mapping.apply(batch.records, batch.positions, hashes, batch.facts)
                fields.add_children(mapped.child_fields, is_whole=True, last=batch.last)
                found.entries.extend(mapped.entries.select("key", "value", "data_type").rows())
                found.rejects.extend(batch.rejects if pipeline.group is not None else ())
                found.rejects.extend(reject for reject, _ in mapped.rejects)
    finally:
        connector.close()
    if pipeline.group is not None:
        found.entries.sort()
    return found


def _grouped(batches: Iterator[Batch], groups: Aggregation, found: MappedFiles) -> Iterator[Batch]:
    """Yield the groups of a file; add the rejected records to ``found``."""
    with GroupStage(groups, Path(gettempdir())) as stage:
        fields = AbsentFields(groups, whole=True)
        for batch in batches:
            batch = reject_unreadable(batch, groups)  # noqa: PLW2901 - the same records
            fields.add(batch)
            found.rejects.extend(stage.add(batch))
            if batch.last:
                yield from stage.batches(batch)
