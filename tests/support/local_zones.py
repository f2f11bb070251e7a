"""Time zones of which the clocks change at a moment that a test chooses: by an hour, back or forward."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.support.changing_table import Client

_HALF_A_YEAR = timedelta(days=182)


def postgresql_zone(at: datetime, *, back: bool) -> str:
    """Return a zone as a POSIX rule: the clocks change at ``at`` (UTC), and the other way half a year later."""
    later = at + _HALF_A_YEAR
    start, end = (later, at) if back else (at, later)
    return f"STD0DST-1,{_rule(start)},{_rule(end + timedelta(hours=1))}"  # an end is written as time of the summer


def create_mariadb_zone(client: Client, name: str, at: datetime, *, back: bool) -> None:
    """Create a zone ``name`` in which the clocks are set back, or forward, at ``at`` (UTC)."""
    before, after = (3600, 0) if back else (0, 3600)
    moment = int(at.timestamp())
    for statement in (
        "INSERT INTO mysql.time_zone (Use_leap_seconds) VALUES ('N')",
        "SET @zone = LAST_INSERT_ID()",
        f"INSERT INTO mysql.time_zone_name VALUES ('{name}', @zone)",
        f"INSERT INTO mysql.time_zone_transition_type VALUES (@zone, 0, {before}, 0, 'A'), (@zone, 1, {after}, 0, 'B')",
        f"INSERT INTO mysql.time_zone_transition VALUES (@zone, 0, 0), (@zone, {moment}, 1)",
    ):
        client.do(statement)


def _rule(moment: datetime) -> str:
    """Return a moment of each year: the day from 0 on, and the time."""
    return f"{moment.timetuple().tm_yday - 1}/{moment:%H:%M:%S}"
