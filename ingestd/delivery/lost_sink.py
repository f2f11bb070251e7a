"""Checks whether the service has lost a sink. The loss must be proven before all entries are written again."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ingestd.client.addresses import workspaces_named
from ingestd.client.records import SinkSummary
from ingestd.client.response import ServiceResponse
from ingestd.client.service import ServiceClient
from ingestd.core.address import SinkAddress
from ingestd.delivery.blocker import Blocker
from ingestd.mirror.port import LaneState


async def find_sink(
    client: ServiceClient, state: LaneState, listed: Sequence[SinkSummary]
) -> SinkSummary | ServiceResponse[SinkSummary]:
    """Return the sink that the mirror remembers, or the response of the service if it neither lists nor returns the sink.

    A list alone is no proof of a loss, so the sink itself is requested. If the sink is lost, the remedy of the response is
    ``missing``. ``listed``: the sinks of the workspace. The service must have the workspace.
    """
    found = next((sink for sink in listed if sink.id == state.sink_id), None)
    if found is not None:
        return found
    response = await client.get_sink(state.workspace_id, state.sink_id)
    return response if response.value is None else response.value


async def is_lost(client: ServiceClient, state: LaneState) -> bool:
    """Return whether the service has the workspace of a remembered sink, and neither lists nor returns the sink.

    A service with a new database has the workspace under another id, so the workspace with the configured label counts, too.
    """
    listed = await client.list_sinks(state.workspace_id)
    if listed.outcome.remedy == "missing":
        workspaces = await client.list_workspaces()
        named = workspaces_named(state.address.workspace, workspaces.value or ())
        if len(named) != 1:
            return False
        state = replace(state, workspace_id=named[0].id)
        listed = await client.list_sinks(state.workspace_id)
    if listed.value is None:
        return False
    found = await find_sink(client, state, listed.value)
    return isinstance(found, ServiceResponse) and found.outcome.remedy == "missing"


def stopped_by(address: SinkAddress, sink_id: str) -> Blocker:
    """Return the blocker of a lane with a lost sink and ``service.missing_sink: stop``."""
    return Blocker(
        reaction="pause",
        sentence=f"The service no longer has the sink {sink_id} of {address}. It is not created again, because "
        "service.missing_sink is 'stop'. Restore the sink, or set it to 'create' to write all its entries again.",
    )
