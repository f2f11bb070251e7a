"""Methods that lose rows: the connector's are compared with them."""

from __future__ import annotations

from typing import Any

from connectors.database.changes.method import ChangeMethod, Guarantee, Observation, ReadPlan, Restriction, State
from connectors.database.port import ReadSession, SqlDialect

_NAIVE = Guarantee(method="naive", sentence="None.")


class AfterLastValue(ChangeMethod):
    """``at`` above the highest value that was read, of values that are not in the far future."""

    def server(self, session: ReadSession) -> str:  # noqa: ARG002 - of the interface
        return ""

    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:  # noqa: ARG002 - of the interface
        kind = {"postgresql": "text", "mariadb": "char", "sqlite": "text"}[self.dialect.name]
        last = session.scalar(f"SELECT CAST(max(at) AS {kind}) FROM p WHERE at < '2200-01-01'")
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
