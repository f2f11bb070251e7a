"""Orders of commits that defeat simpler methods: each is shown to lose a row with the method that it defeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from connectors.database.changes.method import ChangeMethod, Guarantee, Observation, ReadPlan, Restriction, State
from connectors.database.port import ReadSession, SqlDialect
from tests.support.changing_table import Client, RestartingReader
from tests.support.database_scene import DatabaseScene

Poll = Callable[[], None]
_NAIVE = Guarantee(method="naive", sentence="None.")


class AfterLastValue(ChangeMethod):
    """``at`` above the highest value that was read."""

    def server(self, session: ReadSession) -> str:  # noqa: ARG002 - of the interface
        return ""

    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:  # noqa: ARG002 - of the interface
        last = session.scalar("SELECT max(at)::text FROM p")
        if state is None or state["last"] is None:
            return ReadPlan(None, {"last": last})
        return ReadPlan(Restriction(f"at > '{state['last']}'"), {"last": last})


class TimeBelowSnapshotXmin(AfterLastValue):
    """``at`` from a moment on at which every transaction with an id has ended since."""

    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:  # noqa: ARG002 - of the interface
        now, xmin, xmax = (
            session.scalar(f"SELECT {value}::text FROM pg_current_snapshot() s")
            for value in ("now()", "pg_snapshot_xmin(s)", "pg_snapshot_xmax(s)")
        )
        if state is None:
            return ReadPlan(None, {"bound": now, "at": now, "xmax": xmax})
        following = dict(state)
        if int(str(xmin)) >= int(state["xmax"]):
            following = {"bound": state["at"], "at": now, "xmax": xmax}
        return ReadPlan(Restriction(f"at >= '{state['bound']}'"), following)


class NotVisibleInSnapshot(AfterLastValue):
    """Rows of transactions that were not visible in the last snapshot, by ``pg_visible_in_snapshot``."""

    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:  # noqa: ARG002 - of the interface
        snapshot = session.scalar("SELECT pg_current_snapshot()::text")
        if state is None:
            return ReadPlan(None, {"snapshot": snapshot})
        condition = f"NOT pg_visible_in_snapshot(xmin::text::xid8, '{state['snapshot']}')"
        return ReadPlan(Restriction(condition), {"snapshot": snapshot})


def choose(method: type[ChangeMethod]) -> Any:
    """Return what chooses ``method`` for every source."""

    def naive(session: ReadSession, dialect: SqlDialect, columns: Any) -> ChangeMethod:
        return method(dialect, _NAIVE)

    return naive


def late_commit(scene: Any, client: Client, other: Client, poll: Poll) -> None:
    client.do("BEGIN")
    client.do("INSERT INTO p VALUES (1, 'late', now())")
    other.do("INSERT INTO p VALUES (2, 'early', now())")
    poll()
    client.do("COMMIT")


def without_id(scene: Any, client: Client, other: Client, poll: Poll) -> None:
    client.do("BEGIN")
    client.do("SELECT 1")
    poll()
    other.do("INSERT INTO p VALUES (2, 'other', now())")
    poll()
    poll()
    client.do("INSERT INTO p VALUES (1, 'written at the end', now())")
    client.do("COMMIT")


def savepoint(scene: Any, client: Client, other: Client, poll: Poll) -> None:
    client.do("BEGIN")
    client.do("INSERT INTO p VALUES (3, 'before', now())")
    client.do("SAVEPOINT s")
    client.do("INSERT INTO p VALUES (1, 'of a subtransaction', now())")
    client.do("RELEASE SAVEPOINT s")
    other.do("INSERT INTO p VALUES (2, 'other', now())")
    poll()
    client.do("COMMIT")


def prepared(scene: Any, client: Client, other: Client, poll: Poll) -> None:
    client.do("BEGIN")
    client.do("SELECT 1")
    poll()
    client.do("INSERT INTO p VALUES (1, 'prepared', now())")
    client.prepare("later")
    for _ in range(3):
        other.do("INSERT INTO p VALUES (2, 'other', now()) ON CONFLICT (id) DO UPDATE SET at = now()")
        poll()
    client.finish("later")


def slow_update(scene: Any, client: Client, other: Client, poll: Poll) -> None:
    other.do("INSERT INTO p VALUES (1, 'before', now())")
    client.do("BEGIN")
    client.do("UPDATE p SET v = 'after', at = now() WHERE id = 1")
    other.do("INSERT INTO p VALUES (2, 'other', now())")
    poll()
    client.do("COMMIT")


ORDERS = [late_commit, without_id, savepoint, prepared, slow_update]
LOSES = [
    (AfterLastValue, late_commit),
    (AfterLastValue, slow_update),
    (AfterLastValue, prepared),
    (TimeBelowSnapshotXmin, without_id),
    (NotVisibleInSnapshot, savepoint),
]


def missing(scene: DatabaseScene, order: Callable[..., None], choose: Any = None, **options: Any) -> bool:
    """Return whether the rows that are known at the end differ from the table."""
    reader = RestartingReader(lambda now: scene.reader(now=now, choose=choose, **options), 0)
    client, other = scene.client(), scene.client()
    other.do("INSERT INTO p VALUES (0, 'first', now() - interval '1 hour')")
    reader.poll()
    order(scene, client, other, reader.poll)
    for _ in range(3):
        reader.poll()
    client.close()
    other.close()
    reader.close()
    return reader.rows != scene.rows()


@pytest.mark.parametrize(("method", "order"), LOSES)
def test_a_simpler_method_loses_a_row(postgresql: Any, method: type[ChangeMethod], order: Callable[..., None]) -> None:
    assert missing(postgresql, order, choose(method))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("options", [{}, {"table": "w", "cursor": "at", "slack_seconds": 0.0}])
def test_no_order_of_commits_loses_a_row(postgresql: Any, order: Callable[..., None], options: dict[str, Any]) -> None:
    assert not missing(postgresql, order, **options)
