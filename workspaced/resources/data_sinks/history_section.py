"""The section of the API description for the history of entries."""

from __future__ import annotations

from typing import Final

from workspaced.core.json_schema import TIMESTAMP, UUID, record_schemas, ref, string
from workspaced.core.members import body_schema
from workspaced.http.openapi.description import ApiSection, Body, OperationDescription, Parameter, Success, listed
from workspaced.http.openapi.shared import paging
from workspaced.resources.data_sinks.api_section import SINK_NAME
from workspaced.resources.data_sinks.history_records import (
    DataSinkComparisonRecord,
    DataSinkHistoryRecord,
    EntryChangeRecord,
)
from workspaced.resources.data_sinks.history_rules import DataSinkHistoryChanges, compared_changes
from workspaced.settings.model import Limits

_NO_SINK: Final = "`data_sink_not_found`: the workspace has no such sink."
_ABOUT: Final = """\
The history of a sink has the former values of its entries with their writers. It is an extension of the interface, and off
unless the service or the sink sets how many changes of each entry are kept. A write of an equal value is no change.
"""


def api_section(limits: Limits) -> ApiSection:
    """Return the section."""
    pages = tuple(one for one in paging(limits, (), take="100", cursors=True) if one.name in {"take", "cursor"})
    return ApiSection(
        title="History of data sinks",
        description=_ABOUT,
        operations=(
            OperationDescription(
                "data_sink_history.get",
                "Get what is kept",
                "How much of the history of a sink is kept, and from when on it is known.",
                Success("The settings.", ref("DataSinkHistory")),
                refusals={404: _NO_SINK},
                etag=True,
            ),
            OperationDescription(
                "data_sink_history.update",
                "Change what is kept",
                "Only the given members change; null: as the service does. With 0 changes the history ends, and is dropped.",
                Success("The settings.", ref("DataSinkHistory"), headers=("ETag",)),
                body=Body(ref("DataSinkHistoryChanges"), {"changes": 100, "days": 90}),
                refusals={404: _NO_SINK},
                etag=True,
            ),
            OperationDescription(
                "data_sink_history.compare",
                "Compare two moments",
                "Keys with another value at the second instant, in the order of their first change after the earlier one. "
                f"A page examines at most {compared_changes(limits)} changes: it may have fewer than `take` keys, or none, and "
                "still a Link rel=next.",
                Success("The differences.", ref("DataSinkComparison"), headers=("Links",)),
                query=(
                    Parameter("from", "The earlier instant.", TIMESTAMP, required=True),
                    Parameter("to", "The later instant; now by default.", TIMESTAMP),
                    *pages,
                ),
                refusals={404: _NO_SINK},
            ),
            OperationDescription(
                "data_sink_history.list_changes",
                "List the changes of an entry",
                "The kept changes of an entry, the newest first, also of a deleted one.",
                listed("The changes.", "EntryChange", counted=False),
                query=pages,
                refusals={404: f"{_NO_SINK} `entry_not_found`: no entry has the key, and no change of it is kept."},
            ),
        ),
        path={
            "workspace": Parameter("workspaceId", "The workspace.", UUID),
            "sink": Parameter(
                "dataSinkId", "The sink's id, or its visibleId such as SNK-7.", string(pattern=SINK_NAME)
            ),
            "key": Parameter("key", "The entry's key, percent-encoded.", string(shortest=1)),
        },
        schemas={
            **record_schemas(DataSinkHistoryRecord, DataSinkComparisonRecord, EntryChangeRecord),
            "DataSinkHistoryChanges": body_schema(DataSinkHistoryChanges, limits),
        },
    )
