"""The lines of `ingestd top`: states, rates, ages, and widths."""

from __future__ import annotations

from typing import Any

from rich.cells import cell_len

from ingestd.commands.top_screen import StatusReading, top_screen

NOW = 1_795_500_000.0


def reading(at: float = NOW, **changes: Any) -> StatusReading:
    pipeline = {"name": "budget", "last_run_at": NOW - 95, "rejected": 3}
    address = {"workspace": "Rover", "by": "label", "name": "Budget"}
    sink = {"address": address, "pending": 0, "rejected": 2, "blocker": None, "doubt": ""}
    status = {
        "pid": 7, "pending": 0, "rejected": 5, "held": [], "failed_parts": [], "notices": [],
        "states": [{"name": "budget", "state": "ok"}, {"name": "never", "state": "waiting"}],
        "pipelines": [pipeline], "sinks": [sink],
        "since_start": {"records": {"budget": 100}, "delivered": {"Budget in Rover": 10}},
    }  # fmt: skip
    return StatusReading(status=status | changes, at=at)


def cells(lines: list[str], name: str) -> list[str]:
    (line,) = [line for line in lines if line.startswith(name)]
    return line.removeprefix(name).split()


def test_rates_are_those_between_two_readings_of_the_same_daemon() -> None:
    later = reading(
        NOW + 2, since_start={"records": {"budget": 150}, "delivered": {"Budget in Rover": 1_010, "Other in Rover": 1}}
    )
    lines = top_screen(later, reading(), width=80)
    assert cells(lines, "budget") == ["ok", "25", "3", "1m"]
    assert cells(lines, "Budget in Rover") == ["ok", "500", "2", "0"]
    assert cells(lines, "never ") == ["waiting", "0", "0", "-"]
    for before in (None, reading(pid=8), reading(since_start=None), reading(NOW + 2)):
        assert cells(top_screen(later, before, width=80), "budget")[1] == "-"


def test_the_state_of_a_sink_is_that_of_its_delivery() -> None:
    blocker = {
        "status": "backing off",
        "since": NOW - 7_300,
        "until": NOW,
        "sentence": "The service is \x1b[2J away.",
    }
    blocked = dict(reading().status["sinks"][0], pending=4, blocker=blocker)
    lines = top_screen(reading(sinks=[blocked]), None, width=80)
    assert cells(lines, "Budget in Rover") == ["backing", "off", "-", "2", "4"]
    assert "  for 2h: The service is \\x1b[2J away." in lines
    sending = dict(blocked, blocker=None)
    assert cells(top_screen(reading(sinks=[sending]), None, width=80), "Budget in Rover")[0] == "sending"


def test_a_standby_is_shown_without_pipelines() -> None:
    standby = {
        "role": "standby", "here": "b 2", "holder": "a 1", "epoch": 3, "lease_seconds": 4.0, "lease_store": "service",
        "place": "/mnt/place", "shipped_at": None, "shipment_age": None,
    }  # fmt: skip
    waiting = StatusReading(status={"standby": standby}, at=NOW)
    lines = top_screen(waiting, reading(), width=200)
    assert lines[1].startswith("This daemon (b 2) is a standby: a 1 is active with epoch 3.")
    assert len(lines) == 2
    assert len(top_screen(waiting, None, width=40, height=3)) == 3
    assert cells(top_screen(reading(NOW + 2), waiting, width=80), "budget")[1] == "-", "it has taken over"


def test_a_notice_about_the_daemon_is_above_the_pipelines() -> None:
    sentence = f"the disk of /{'state/' * 12}ingestd.db is full. Free some space."
    notice = {"pipeline": "", "sentence": sentence, "since": None, "state": ""}
    lines = top_screen(reading(notices=[notice]), None, width=80)
    assert "".join(lines[2 : lines.index("")]).replace(" ", "") == sentence.replace(" ", "")


def test_lines_fit_into_the_width_and_the_height() -> None:
    wide = [{"name": "質" * 60, "state": "unavailable"} for _ in range(40)]
    for width in (20, 39, 40, 79, 80, 132):
        lines = top_screen(reading(states=wide), None, width=width, height=24)
        assert len(lines) == 24
        assert lines[-1].startswith("… ")
        assert max(map(cell_len, lines)) <= width
    assert len(top_screen(reading(states=wide), None, width=80)) > 40
