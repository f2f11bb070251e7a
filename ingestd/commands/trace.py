"""`ingestd trace`: an entry's origin in each sink, its former values, and the mapping steps from its record to its value."""

from __future__ import annotations

import msgspec

from ingestd.commands.source_record import SourceRecord, read_source_record
from ingestd.commands.status import observe
from ingestd.core.normal_form import nfc
from ingestd.daemon.configuration import Configuration
from ingestd.mirror.drift import DriftFinding
from ingestd.mirror.reports import EntryOrigin, FormerValue


class TracedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a sink. ``origin`` is None if the entry was removed. ``former``: its former values, the newest first.

    ``source``: the current record in the source; None if the source was not read. ``service``: the value that the last drift
    check found in the service; None if the check found no difference.
    """

    workspace: str
    sink: str
    key: str
    origin: EntryOrigin | None
    former: tuple[FormerValue, ...]
    source: SourceRecord | None = None
    service: DriftFinding | None = None


def trace_entry(configuration: Configuration, key: str, *, steps: bool) -> list[TracedEntry]:
    """Return an entry for each sink that has or had the key ``key``. ``steps``: read the entry's record from the source, too.

    ``key`` may be in any Unicode form.

    Raises:
        MirrorError: there is no state file yet, or it can't be read.
    """
    key = nfc(key)
    with observe(configuration) as mirror:
        origins = {(one.workspace, one.sink): one for one in mirror.origins(key)}
        former = mirror.former_values(key)
        service = {(one.workspace, one.sink): one for one in mirror.drift_of(key)}
    sinks = sorted({*origins, *service, *((one.workspace, one.sink) for one in former)})
    return [
        TracedEntry(
            workspace=sink[0],
            sink=sink[1],
            key=key,
            origin=(origin := origins.get(sink)),
            former=tuple(one for one in former if (one.workspace, one.sink) == sink),
            source=read_source_record(configuration, origin)
            if steps and origin is not None and origin.pipeline
            else None,
            service=service.get(sink),
        )
        for sink in sinks
    ]
