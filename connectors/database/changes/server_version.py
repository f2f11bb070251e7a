"""Methods that find changed rows by a number of the server: ``rowversion`` of SQL Server, or ``ORA_ROWSCN`` of Oracle.

SQL Server assigns a row version when a row is written. ``min_active_rowversion()`` is the lowest row version of an open
transaction. So every row with a lower row version is committed and visible.

Oracle's ``ORA_ROWSCN`` is the system change number (SCN) of the last commit to the block of the row, or a later SCN. A lag
covers commits that the server records late.
"""

from __future__ import annotations

from typing import ClassVar

from connectors.database.changes.method import ChangeMethod, Guarantee, Observation, ReadPlan, Restriction, State
from connectors.database.port import ReadSession
from ingestd.sdk import SourceBroken

ROW_VERSION_TYPE = "timestamp"
"""The name that SQL Server reports for the type ``rowversion``."""

MIN_ACTIVE = "SELECT CONVERT(varchar(20), CONVERT(bigint, min_active_rowversion()))"
SQLSERVER_IDENTITY = (
    "SELECT CONCAT(@@SERVERNAME, ' ', d.name, ' ', CONVERT(varchar(36), r.recovery_fork_guid))"
    " FROM sys.databases AS d LEFT JOIN sys.database_recovery_status AS r ON r.database_id = d.database_id"
    " WHERE d.database_id = DB_ID()"
)
NOW_SCN = "SELECT TO_CHAR(TIMESTAMP_TO_SCN(SYSTIMESTAMP)) FROM DUAL"
NOW_SECONDS = (
    "SELECT TO_CHAR(ROUND((CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE) - DATE '1970-01-01') * 86400)) FROM DUAL"
)
ORACLE_IDENTITY = (
    "SELECT SYS_CONTEXT('USERENV', 'DB_UNIQUE_NAME') || ' ' || SYS_CONTEXT('USERENV', 'CON_NAME') FROM DUAL"
)

MIN_ACTIVE_GUARANTEE = Guarantee(
    method="min_active_rowversion",
    sentence=(
        "Each reading finds every inserted and updated row, in whatever order transactions commit, because rows are read from the"
        " lowest row version on that an open transaction had at the last reading. Deleted rows are found by the sweep."
    ),
)


class ActiveRowVersion(ChangeMethod):
    """Reads the rows from a bound on: the lowest row version that an open transaction had at the last reading.

    A reading observes its new bound before the transaction that reads the rows begins. A row version below the new bound
    belongs to a transaction that has ended, so this reading sees the row.
    """

    observes: ClassVar[bool] = True

    def observe(self, session: ReadSession) -> Observation:
        """See `ChangeMethod.observe`."""
        return {"active": _number(session.scalar(MIN_ACTIVE))}

    def server(self, session: ReadSession) -> str:
        """See `ChangeMethod.server`."""
        return session.scalar(SQLSERVER_IDENTITY) or ""

    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:  # noqa: ARG002
        """See `ChangeMethod.follow`."""
        now = int(observation["active"])
        following = {"active": now}
        if state is None or int(state["active"]) > now:  # a lower number: the server was restored to an earlier state
            return ReadPlan(None, following)
        column = self.dialect.quote(self.options.cursor or "")
        return ReadPlan(Restriction(f"{column} >= CONVERT(binary(8), CONVERT(bigint, {state['active']}))"), following)


class RowChangeNumber(ChangeMethod):
    """Reads the rows of an Oracle table from a bound on: a system change number that is older than the lag."""

    def server(self, session: ReadSession) -> str:
        """See `ChangeMethod.server`."""
        return session.scalar(ORACLE_IDENTITY) or ""

    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:  # noqa: ARG002
        """See `ChangeMethod.follow`. ``candidate`` becomes the bound when it is older than the lag."""
        scn, at = _number(session.scalar(NOW_SCN)), _number(session.scalar(NOW_SECONDS))
        candidate = {"scn": scn, "at": at}
        if state is None or int(state["candidate"]["scn"]) > scn:
            return ReadPlan(None, {"bound": None, "candidate": candidate})
        bound, known = state["bound"], state["candidate"]
        restriction = None if bound is None else Restriction(f"ORA_ROWSCN >= {int(bound)}")
        if at - int(known["at"]) < self.lag_seconds:
            return ReadPlan(restriction, {"bound": bound, "candidate": known})
        return ReadPlan(restriction, {"bound": known["scn"], "candidate": candidate})


def _number(text: str | None) -> int:
    if text is None or not text.isdecimal():
        raise SourceBroken(f"The server returned '{text}' instead of a change number.")
    return int(text)
