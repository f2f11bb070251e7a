from __future__ import annotations

from ingestd.client.records import Sink
from tests.support.client_calls import AnyClient, collected, done


async def test_the_history_of_a_sink_is_configured_read_and_compared(client: AnyClient, sink: Sink) -> None:
    assert (await done(client.get_history(sink.workspace_id, sink.id))).changes == 0
    kept = await done(client.update_history(sink.workspace_id, sink.id, changes=5, days=None))
    assert (kept.changes, kept.own_changes, kept.own_days) == (5, 5, None)
    assert kept.known_from is not None
    for value in ("1 kg", "2 kg"):
        await done(client.mass_update_by_key(sink.workspace_id, sink.id, "a", value=value))
    changes = await done(client.list_changes(sink.workspace_id, sink.id, "a"))
    assert [(one.effect, one.before and one.before.value) for one in changes] == [("changed", "1 kg"), ("added", None)]
    assert await collected(client.iter_changes(sink.workspace_id, sink.id, "a", page_length=1)) == list(changes)
    found = await done(client.compare_sink(sink.workspace_id, sink.id, since=kept.known_from))
    assert found.is_known
    assert (found.since, {one.key for one in found.differences} - {"a"}) == (kept.known_from, set())
