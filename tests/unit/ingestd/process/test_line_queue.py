"""Lines that cannot be written neither block nor fail the caller; they are counted, and the count is reported."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ingestd.process.line_queue import LineQueue

WAIT = 20.0


def report(count: int, reason: str) -> str:
    return f"dropped {count}: {reason}"


@contextmanager
def pipe(*, size: int = 4096, non_blocking: bool = False) -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, size)
    if non_blocking:
        os.set_blocking(writer, False)
    try:
        yield reader, writer
    finally:
        os.close(writer)
        os.close(reader)


def everything(reader: int, until: str) -> str:
    text = ""
    while until not in text:
        text += os.read(reader, 1 << 16).decode()
    return text


@pytest.mark.parametrize("non_blocking", [False, True])
def test_a_reader_that_pauses_blocks_nothing_and_gets_the_count_when_it_continues(non_blocking: bool) -> None:
    with pipe(non_blocking=non_blocking) as (reader, writer):
        lines = LineQueue(writer, report=report, max_queued=80)
        for number in range(1000):
            lines.write(f"line {number:04} {'x' * 90}")
        dropped = lines.dropped
        assert dropped > 800
        text = ""
        while text.count("line ") < 1000 - dropped:
            text += os.read(reader, 1 << 16).decode()
        text += everything(reader, "\n") if not text.endswith("\n") else ""
        lines.write("after")
        text += everything(reader, "after\n")
        assert text.count("dropped ") == text.count("the reader of the log does not keep up\n") >= 1
        assert sum(int(line.split()[1][:-1]) for line in text.splitlines() if line.startswith("dropped ")) == dropped
        written = [line for line in text.splitlines() if line.startswith("line ")]
        assert written == sorted(written)
        assert {len(line) for line in written} == {100}
        assert len(written) == 1000 - dropped


def test_a_full_device_drops_and_counts_every_line() -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    try:
        lines = LineQueue(descriptor, report=report)
        for _ in range(3):
            lines.write("line")
        assert lines.finish(WAIT)
        assert lines.dropped == 3
    finally:
        os.close(descriptor)


def test_a_closed_pipe_drops_and_counts_every_line() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    lines = LineQueue(writer, report=report)
    lines.write("one")
    assert lines.drain(WAIT)
    lines.write("two")
    assert lines.finish(WAIT)
    assert lines.dropped == 2
    os.close(writer)


def test_the_rest_of_a_line_that_failed_does_not_precede_the_next_line(tmp_path: Path) -> None:
    # A pipe replaces the file first, because only a pipe can fail after a part of a line.
    log = tmp_path / "log"
    with pipe(non_blocking=True) as (reader, writer):
        target = os.dup(writer)
        lines = LineQueue(target, report=report)
        lines.write("x" * 10_000)
        assert os.read(reader, 1) == b"x"  # the first part is written, the thread waits for space
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, target)
        os.close(full)
        everything(reader, "x" * 4095)  # there is space, and the rest of the line fails
        assert lines.drain(WAIT)
        assert lines.dropped == 1
        file = os.open(log, os.O_CREAT | os.O_WRONLY)
        os.dup2(file, target)
        os.close(file)
        lines.write("next")
        assert lines.finish(WAIT)
        os.close(target)
    assert log.read_text() == "\ndropped 1: No space left on device\nnext\n"


def test_closing_does_not_wait_for_lines_that_no_process_reads() -> None:
    with pipe() as (reader, writer):
        lines = LineQueue(writer)
        lines.write("x" * 100_000)
        assert not lines.finish(0.0)
        everything(reader, "\n")


def test_characters_that_cannot_be_encoded_are_escaped() -> None:
    with pipe() as (reader, writer):
        lines = LineQueue(writer)
        lines.write(f"{os.fsdecode(b'm' + bytes([0xE4]) + b'rz.csv')}")
        assert everything(reader, "\n") == "m\\udce4rz.csv\n"
        assert lines.finish(WAIT)
