"""The lines of the daemon's log: files, rotated files, a file that grows, and the journal."""

from __future__ import annotations

import gzip
import json
import os
import stat
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest

from ingestd.daemon.logs import log_file
from ingestd.daemon.logs.journal import Journal, JournalUnreadable
from ingestd.daemon.logs.log_file import LogFile
from ingestd.daemon.logs.reader import DaemonLog, NoLog, find_log
from ingestd.daemon.logs.selection import LogSelection, earliest_time, parse_line
from ingestd.settings.log import LogSettings

NOW = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)


def event(number: int, *, level: str = "info", **fields: object) -> str:
    timestamp = f"2026-11-23T05:{number:02}:00.000Z"
    return json.dumps({"timestamp": timestamp, "level": level, "event": "partition_read", "n": number, **fields})


def numbers(lines: Iterator[object]) -> list[object]:
    return [line.event["n"] if line.event else line.text for line in lines]  # type: ignore[attr-defined]


def reader(path: Path, **wanted: object) -> DaemonLog:
    return DaemonLog(log=LogFile(path=path), selection=LogSelection(**wanted))  # type: ignore[arg-type]


@pytest.fixture
def rotated(tmp_path: Path) -> Path:
    """A log with two older files: events 1 to 3, 4 to 6, and 7 to 9."""
    path = tmp_path / "ingestd.log"
    parts = ["".join(f"{event(n)}\n" for n in range(first, first + 3)) for first in (1, 4, 7)]
    (tmp_path / "ingestd.log.2.gz").write_bytes(gzip.compress(parts[0].encode()))
    (tmp_path / "ingestd.log.1").write_text(parts[1], encoding="utf-8")
    path.write_text(parts[2], encoding="utf-8")
    (tmp_path / "ingestd.log.1.bak").write_text("another file", encoding="utf-8")
    return path


def test_the_last_lines_are_taken_from_rotated_files_too(rotated: Path) -> None:
    assert numbers(reader(rotated).last_lines(count=None)) == list(range(1, 10))
    for count in range(11):
        assert numbers(reader(rotated).last_lines(count=count)) == list(range(1, 10))[9 - min(count, 9) :]
    rotated.unlink()
    assert numbers(reader(rotated).last_lines(count=4)) == [3, 4, 5, 6], "between the steps of a rotation"


def test_lines_are_selected_by_level_pipeline_and_time(tmp_path: Path) -> None:
    path = tmp_path / "ingestd.log"
    lines = [
        event(1, level="debug", pipeline="a"), event(2, pipeline="a"), event(3, level="warning", pipeline="b"), "Fatal error",
        event(4, level="error", pipelines=["a", "b"]), event(5, level="error"),
    ]  # fmt: skip
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert numbers(reader(path).last_lines(count=None)) == [1, 2, 3, "Fatal error", 4, 5]
    assert numbers(reader(path, level="warning").last_lines(count=None)) == [3, 4, 5]
    assert numbers(reader(path, pipeline="a").last_lines(count=None)) == [1, 2, 4]
    assert numbers(reader(path, pipeline="b", level="error").last_lines(count=9)) == [4]
    assert numbers(reader(path, since=earliest_time("57m", now=NOW)).last_lines(count=None)) == [3, 4, 5]
    assert numbers(reader(path, since=earliest_time("2026-11-23T05:05", now=NOW)).last_lines(count=1)) == [5]
    with pytest.raises(ValueError, match="Expected a time such as"):
        earliest_time("yesterday", now=NOW)


def test_a_last_line_without_an_end_is_shown_and_a_long_line_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "LONGEST_LINE", 16)
    path = tmp_path / "ingestd.log"
    path.write_text(f'short\n{"x" * 100}\n{"y" * 16}\n\n{{"event": ', encoding="utf-8")
    texts = [line.text for line in reader(path).last_lines(count=None)]
    assert texts == ["short", f"{'x' * 16} …", "y" * 16, "", '{"event": ']


def test_memory_does_not_depend_on_the_size_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "ingestd.log"
    with path.open("w", encoding="utf-8") as file:
        for n in range(20_000):
            file.write(f"{event(n % 60, text='x' * 200)}\n")
    tracemalloc.start()
    assert len(list(reader(path, level="info").last_lines(count=3))) == 3
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 5_000_000
    assert peak < 1_000_000


def test_a_followed_file_loses_and_repeats_no_line_through_rotation_and_truncation(tmp_path: Path) -> None:
    path = tmp_path / "ingestd.log"
    path.write_text(f"{event(1)}\n{event(2)}\n", encoding="utf-8")
    steps: list[Callable[[], object]] = []

    def append(text: str) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)

    def rotate() -> None:
        append(f"{event(6)}\n")
        path.rename(tmp_path / "ingestd.log.1")

    half = event(4)
    steps += [
        lambda: append(f"{event(3)}\n{half[:20]}"), lambda: append(f"{half[20:]}\n{event(5)}\n"), rotate,
        lambda: path.write_text(f"{event(7)}\n", encoding="utf-8"), lambda: os.truncate(path, 0), lambda: append(f"{event(8)}\n"),
    ]  # fmt: skip
    lines = reader(path).all_lines(count=1, wait=lambda _: steps.pop(0)())
    assert numbers(islice(lines, 7)) == [2, 3, 4, 5, 6, 7, 8]
    assert not steps


def test_a_renamed_file_is_followed_beside_its_successor_until_it_is_deleted(tmp_path: Path) -> None:
    path, renamed = tmp_path / "ingestd.log", tmp_path / "ingestd.log.1"
    path.write_text("", encoding="utf-8")
    half = event(2)
    with path.open(
        "a", encoding="utf-8", buffering=1
    ) as daemon:  # it keeps the file open, as a redirected standard error

        def rotate() -> None:
            daemon.write(f"{event(1)}\n{half[:9]}")
            daemon.flush()
            path.rename(renamed)
            path.touch()

        def replace() -> None:
            daemon.write(f"{event(4)}\n")
            renamed.unlink()

        steps: list[Callable[[], object]] = [
            rotate, lambda: daemon.write(f"{half[9:]}\n"), lambda: path.write_text(f"{event(3)}\n", encoding="utf-8"),
            replace, lambda: None,
        ]  # fmt: skip
        following = LogFile(path=path).open()
        lines = DaemonLog._wanted(reader(path), following.from_now(wait=lambda _: steps.pop(0)()))
        assert numbers(islice(lines, 4)) == [1, 2, 3, 4]
        later = following.from_now(wait=lambda _: path.write_text(f"{event(3)}\n{event(5)}\n", encoding="utf-8"))
        assert json.loads(next(later))["n"] == 5
        open_files = [str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
        assert sum(str(renamed) in name for name in open_files) == 1, "only the daemon's"
        following.close()


def test_a_line_is_shown_with_its_secrets_masked_and_without_control_characters() -> None:
    line = parse_line(
        '{"timestamp": "T", "level": "info", "event": "e", "pipeline": "p", "text": "a \\u001b[2J", "api_key": "k"}'
    )
    assert line.formatted() == 'T info    e  pipeline=p  text="a \\u001b[2J"  api_key=***'
    assert json.loads(line.as_json())["api_key"] == "***"
    raw = parse_line("at postgresql://reader:geheim@db \x1b[2J")
    assert raw.formatted() == "at postgresql://***@db \\x1b[2J"
    assert json.loads(raw.as_json()) == {"message": "at postgresql://***@db \x1b[2J"}


def program(folder: Path, text: str) -> str:
    path = folder / "journalctl"
    path.write_text(f"#!{sys.executable}\nimport sys\n{text}", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_journal_is_read_with_fixed_arguments_and_followed_from_its_cursor(tmp_path: Path) -> None:
    journalctl = program(
        tmp_path,
        "if '--follow' in sys.argv:\n    print('{\"n\": 3}')\nelse:\n    print('{\"n\": 1}\\n{\"n\": 2}\\n-- cursor: s=7')\n"
        f"open({str(tmp_path / 'arguments')!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n",
    )
    journal = find_log(LogSettings(unit="ingestd@bench.service"), journalctl=journalctl)
    assert isinstance(journal, Journal)
    assert numbers(DaemonLog(log=journal, selection=LogSelection()).all_lines(count=50)) == [1, 2, 3]
    first, second = (tmp_path / "arguments").read_text(encoding="utf-8").splitlines()
    common = "--unit=ingestd@bench.service --output=cat --no-pager --quiet"
    assert first == f"{common} --lines=50 --show-cursor"
    assert second == f"{common} --after-cursor=s=7 --follow"


def test_a_journal_that_cannot_be_read_and_a_missing_log_are_reported(tmp_path: Path) -> None:
    journalctl = program(tmp_path, "sys.exit('No journal files were found.')\n")
    with pytest.raises(JournalUnreadable, match=r"ingestd\.service \(exit code 1\): No journal files were found\."):
        list(Journal(unit="ingestd.service", program=journalctl).until_now(count=1, since=None))
    with pytest.raises(NoLog, match=r"no log\.file"):
        find_log(LogSettings(), journalctl=str(tmp_path / "none"))
    with pytest.raises(NoLog, match="There is no log file"):
        find_log(LogSettings(file=tmp_path / "ingestd.log"), journalctl=journalctl)
