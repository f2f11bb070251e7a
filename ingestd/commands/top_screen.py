"""The screen of `ingestd top`: lines of text from two readings of the status. Performs no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, TypeAlias

import msgspec
from rich.cells import set_cell_size

from ingestd.core.clock import moment
from ingestd.core.phrases import counted
from ingestd.process.terminal_text import terminal_line
from ingestd.standby.status import StandbyStatus

Status: TypeAlias = Mapping[str, Any]
"""The object of `ingestd status --json`."""

_NARROWEST = 40
_NUMBER = 10
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


class StatusReading(msgspec.Struct, frozen=True, kw_only=True):
    """A status. ``at``: when the status was read, in seconds since the epoch."""

    status: Status
    at: float


def top_screen(now: StatusReading, before: StatusReading | None, *, width: int, height: int | None = None) -> list[str]:
    """Return at most ``height`` lines (None: all lines), each at most ``width`` cells wide.

    The columns need 40 cells; on a narrower screen, lines are cut off. Rates are averages between the two readings. Without an
    earlier reading of the same daemon, rates are shown as a dash.
    """
    status, screen, width = now.status, width, max(width, _NARROWEST)
    if "pid" not in status:  # the response of a standby
        found = msgspec.convert(status["standby"], StandbyStatus)
        head = [f"ingestd top · {moment(now.at)}", *(line for one in found.lines for line in wrap(one, width))]
        return [set_cell_size(terminal_line(line), screen).rstrip() for line in head[:height]]
    daemon = f"runs (process {status['pid']})" if status["pid"] else "does not run"
    counts = f"{status['pending']} pending, {status['rejected']} rejected, {len(status['held'])} held"
    head = [
        f"ingestd top · {moment(now.at)} · the daemon {daemon}",
        f"{counts}, {len(status['failed_parts'])} failed parts",
        *(line for one in status["notices"] if not one["pipeline"] for line in wrap(one["sentence"], width)),
        "",
    ]
    rates = _Rates(now, before)
    body = [*_pipelines(now, rates, width), "", *_sinks(now, rates, width)]
    lines = head + body
    if height is not None and len(lines) > height:
        lines = [
            *lines[: max(0, height - 1)],
            f"… {counted(len(lines) - height + 1, 'more line')}; 'ingestd status' shows all",
        ]
    return [set_cell_size(terminal_line(line), screen).rstrip() for line in lines]


class _Rates:
    """Records and entries per second between two readings of the same daemon."""

    def __init__(self, now: StatusReading, before: StatusReading | None) -> None:
        is_same = before is not None and before.status.get("pid") == now.status["pid"] and now.at > before.at
        self._now = now.status.get("since_start") or {}
        self._before = before.status.get("since_start") if is_same and before is not None else None
        self._seconds = now.at - before.at if before is not None else 0.0

    def of(self, what: str, name: str) -> str:
        if self._before is None or not self._now:
            return "-"
        more = self._now.get(what, {}).get(name, 0) - self._before.get(what, {}).get(name, 0)
        return f"{more / self._seconds:.0f}"


def _pipelines(now: StatusReading, rates: _Rates, width: int) -> Iterator[str]:
    status = now.status
    yield _row(width, "PIPELINE", "STATE", ("RECORDS/S", "REJECTED", "LAG"))
    runs = {one["name"]: one for one in status["pipelines"]}
    for state in status["states"]:
        name, one = state["name"], runs.get(state["name"], {"last_run_at": None, "rejected": 0})
        lag = "-" if one["last_run_at"] is None else _age(now.at - one["last_run_at"])
        yield _row(width, name, state["state"], (rates.of("records", name), str(one["rejected"]), lag))


def _sinks(now: StatusReading, rates: _Rates, width: int) -> Iterator[str]:
    yield _row(width, "SINK", "STATE", ("ENTRIES/S", "REJECTED", "PENDING"))
    for one in now.status["sinks"]:
        name = f"{one['address']['name']} in {one['address']['workspace']}"
        blocker = one["blocker"] if one["pending"] else None
        state = "sending" if one["pending"] else "doubtful" if one["doubt"] else "ok"
        if blocker:
            state = blocker["status"]
        yield _row(width, name, state, (rates.of("delivered", name), str(one["rejected"]), str(one["pending"])))
        if blocker:
            yield f"  for {_age(now.at - blocker['since'])}: {blocker['sentence']}"


def _row(width: int, name: str, state: str, numbers: Sequence[str]) -> str:
    """Return a line: the name in the remaining width, the state in 12 cells, and three numbers, aligned to the right."""
    rest = width - 12 - 3 * _NUMBER
    return (
        set_cell_size(terminal_line(name), rest - 1)
        + " "
        + f"{state:<12}"
        + "".join(one.rjust(_NUMBER) for one in numbers)
    )


def _age(seconds: float) -> str:
    for unit, length in _UNITS:
        if seconds >= length:
            return f"{seconds // length:.0f}{unit}"
    return "0s"
