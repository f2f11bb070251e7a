"""The lines of the log for a support bundle, from the journal and from the end of a large file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ingestd.commands.support_bundle import log_tail
from ingestd.commands.support_bundle.log_tail import last_events
from ingestd.settings.log import LogSettings

LINE = '{"timestamp": "2026-11-23T06:00:00.000Z", "level": "info", "event": "partition_read"}\n'


def program(folder: Path, text: str) -> str:
    path = folder / "journalctl"
    path.write_text(f"#!{sys.executable}\nimport sys\n{text}\n", encoding="utf-8")
    path.chmod(0o700)
    return str(path)


def test_the_journal_of_the_unit_is_read_with_fixed_arguments(tmp_path: Path) -> None:
    written = tmp_path / "arguments"
    journalctl = program(
        tmp_path, f"print({LINE!r}, end='')\nopen({str(written)!r}, 'w').write(' '.join(sys.argv[1:]))"
    )
    (event,) = last_events(LogSettings(unit="ingestd@bench.service"), known=(), journalctl=journalctl)
    assert event["event"] == "partition_read"
    expected = "--unit=ingestd@bench.service --output=cat --no-pager --quiet --lines=1000"
    assert written.read_text(encoding="utf-8") == expected


def test_a_journal_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    for journalctl in (program(tmp_path, "sys.exit('No journal files were found.')"), str(tmp_path / "none")):
        with pytest.raises((OSError, subprocess.SubprocessError)):
            list(last_events(LogSettings(), known=(), journalctl=journalctl))


def test_only_the_end_of_a_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "daemon.log"
    file.write_text("x" * 100 + "\n" + LINE * 1_200, encoding="utf-8")
    assert [one["event"] for one in last_events(LogSettings(file=file), known=())] == ["partition_read"] * 1_000
    monkeypatch.setattr(log_tail, "_BYTES", 2 * len(LINE) + 5)
    events = [one["event"] for one in last_events(LogSettings(file=file), known=())]
    assert events == ["<text>", "partition_read", "partition_read"], "the first line has no beginning"
