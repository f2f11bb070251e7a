"""Logs of text lines: records of one and of several lines, while the log grows and is rotated."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.log import rows, tail
from ingestd.sdk import SourceBroken
from tests.support.watched_files import Bench, Reading

PATTERN = r"(?P<time>t\d+) (?P<text>.*)"
LINES: dict[str, Any] = {"pattern": "run.log", "format": {"type": "text", "pattern": PATTERN}}
TRACES: dict[str, Any] = {
    "pattern": "run.log",
    "idle_seconds": 5,
    "format": {"type": "text", "pattern": PATTERN, "multiline": r"^\S"},
}


def test_named_groups_are_the_fields_of_appended_lines(bench: Bench) -> None:
    run, connector = Reading("run.log"), bench.connector(**LINES)
    bench.append("t1 a\nnonsense\n\nt2 ", "run.log")
    assert run.look(connector) == [(1, "t1", "a")]
    assert run.rejects == [
        (2, "Line 2 does not match the pattern as a whole. Change pattern, or set unmatched: ignore.")
    ]
    bench.append("b\n", "run.log")
    assert run.look(bench.connector(**LINES)) == [(4, "t2", "b")]


def test_ignored_lines_are_reported_once(bench: Bench) -> None:
    ignores = LINES | {"format": LINES["format"] | {"unmatched": "ignore"}}
    run, connector = Reading("run.log"), bench.connector(**ignores)
    bench.append("x\nt1 a\n", "run.log")
    assert run.look(connector) == [(2, "t1", "a")]
    bench.append("y\n", "run.log")
    assert run.look(connector) == []
    assert run.rejects == []
    assert bench.reported == ["run.log: Ignored lines that pattern does not match (unmatched): 1."]
    assert run.batches[-1].facts["file.notice"] in bench.reported[0]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("block_bytes", [2, 6, 4096])
def test_a_record_of_several_lines_is_read_when_the_next_one_begins(
    encoding: str, block_bytes: int, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "BLOCK_BYTES", block_bytes)
    traces = TRACES | {"format": TRACES["format"] | {"encoding": encoding}}
    data = "t1 a\n  at x\n\n  at µ\nt2 b\nt3 c\n  at z\nt4 d\n".encode(encoding)
    run, connector, found = Reading("run.log"), bench.connector(**traces), []
    for at in range(0, len(data), 7):  # between lines, in lines and in letters
        bench.append(data[at : at + 7], "run.log")
        found += run.look(connector if at % 2 else bench.connector(**traces))
    assert found == [(1, "t1", "a\n  at x\n\n  at µ"), (5, "t2", "b"), (6, "t3", "c\n  at z")]
    assert run.rejects == []


def test_the_last_record_of_several_lines_is_read_after_idle_seconds_and_again_when_it_continues(bench: Bench) -> None:
    run, connector = Reading("run.log"), bench.connector(**TRACES)
    bench.append("t1 a\nt2 b\n  at x\n", "run.log")
    assert run.look(connector) == [(1, "t1", "a")]
    assert "may continue in the next line" in str(connector.explain("run.log"))
    bench.now += 6
    assert run.look(connector) == [(2, "t2", "b\n  at x")]
    assert run.look(connector) == []
    bench.append("  at y\n", "run.log")
    assert run.look(connector) == []
    bench.now += 6
    assert run.look(bench.connector(**TRACES)) == [(2, "t2", "b\n  at x\n  at y")]
    bench.append("t3 c\n", "run.log")
    bench.now += 6
    assert run.look(bench.connector(**TRACES))[-1] == (5, "t3", "c")
    assert run.rejects == []


def test_the_last_record_of_a_rotated_log_is_read(bench: Bench) -> None:
    run, connector = Reading("run.log"), bench.connector(**TRACES)
    path = bench.append("t1 a\n  at x\n", "run.log")
    assert run.look(connector) == []
    path.rename(bench.folder / "run.log.1")
    bench.append("t2 b\nt3 c\n", "run.log")
    bench.now += 6
    assert run.look(connector) == [(1, "t1", "a\n  at x"), (3, "t2", "b"), (4, "t3", "c")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_a_record_above_the_size_limit_is_rejected_once_with_all_its_lines(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setattr(tail, "BLOCK_BYTES", 50)
    monkeypatch.setattr(tail, "RECORD_BYTES", 200)
    monkeypatch.setattr(rows, "RECORD_BYTES", 200)
    run, connector = Reading("run.log"), bench.connector(**TRACES)
    for text in ("t1 a\n", "  at x\n" * 40, "t2 b\n", "  at " + "y" * 300 + "\n", "t3 c\nt4 d\n"):
        bench.append(text.encode(encoding), "run.log")
    assert run.look(connector) == [(44, "t3", "c")]
    reason = "The row is larger than 200 bytes, the limit for a row."
    assert run.rejects == [(1, reason), (42, reason)]


def test_a_log_without_a_format_names_only_those_that_can_grow(bench: Bench) -> None:
    bench.append("t1 a\n", "run.log")
    bench.append("{}", "run.json")
    bench.append(b"", "run.csv.gz")
    for name in ("run.log", "run.json"):
        with pytest.raises(SourceBroken) as refused:
            Reading(name).look(bench.connector(pattern=name))
        assert str(refused.value) == (
            f"{name}: its suffix must be one of .csv, .tsv, .tab, .ndjson, .jsonl. Set format to one of csv, ndjson, text."
        )
    with pytest.raises(SourceBroken, match=r"run\.csv\.gz is a packed file"):
        Reading("run.csv.gz").look(bench.connector(pattern="run.csv.gz"))
