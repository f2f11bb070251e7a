"""Standard error is a full device, closed, or a pipe that no process reads: work continues. Closed output: no traceback."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx
import pytest

from tests.support.daemon_process import environment, here, write_configuration
from tests.support.document_server import DocumentServer

DEADLINE_SECONDS = 60.0
SINK = {str(f"0.{number}"): str(number) for number in range(400)}


@pytest.fixture
def server() -> Iterator[DocumentServer]:
    with DocumentServer() as running:
        running.workspace("Bench")
        yield running


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    try:
        yield reader, writer
    finally:
        for end in (reader, writer):
            try:
                os.close(end)
            except OSError:
                assert end == reader  # closed by the test


@contextmanager
def process(
    module: str, *arguments: str, cwd: Path, stderr: int | None, stdout: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process with that standard error; None: started without one."""
    command = [sys.executable, "-m", module, *arguments]
    if stderr is None:
        command = ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *command]
    running = subprocess.Popen(
        command, cwd=cwd, env=environment(cwd), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
    )
    try:
        yield running
    finally:
        if running.poll() is None:
            running.kill()
        running.wait()
        if running.stdout is not None:
            running.stdout.close()


def delivered(server: DocumentServer) -> None:
    """Wait until the sink has every entry. A request is signalled on arrival, so the values are polled after the last one."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (server.store.by_label("Sink 0") and len(server.values("Sink 0")) == len(SINK)):
        server.arrived.clear()
        server.arrived.wait(0.5)
        assert time.monotonic() < deadline, "the sink was not filled in time"


@pytest.mark.parametrize("kind", ["full device", "closed", "closed pipe", "blocked pipe"])
def test_a_daemon_with_an_unwritable_log_delivers_and_exits_cleanly(
    tmp_path: Path, server: DocumentServer, kind: str
) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": len(SINK)})
    with pipe() as (reader, writer):
        stderr: int | None = writer
        if kind == "full device":
            stderr = os.open("/dev/full", os.O_WRONLY)
        elif kind == "closed":
            stderr = None
        elif kind == "closed pipe":
            os.close(reader)
        with process(
            "ingestd", "run", "-c", str(config), "--log-level", "debug", cwd=tmp_path, stderr=stderr
        ) as daemon:
            delivered(server)
            assert daemon.poll() is None
            daemon.send_signal(signal.SIGTERM)
            assert daemon.wait(DEADLINE_SECONDS) == 0
        assert {key: value for key, (value, _) in server.values("Sink 0").items()} == SINK
        if kind == "full device" and stderr is not None:
            os.close(stderr)
    assert "0 pending" in here(tmp_path, "status", "-c", str(config)).stdout
    # No log line went into another file that got its descriptor number.
    assert b"daemon_ready" not in (tmp_path / "var/ingestd.db").read_bytes()


def test_a_service_with_an_unwritable_log_responds(tmp_path: Path) -> None:
    with pipe() as (_, writer):
        more = ("--port", "0", "--admin-port", "0", "--dev")  # --dev logs every request
        words = ("serve", "--data", str(tmp_path / "data"), *more)
        with process("workspaced", *words, cwd=tmp_path, stderr=writer, stdout=subprocess.PIPE) as service:
            output: IO[bytes] | None = service.stdout
            assert output is not None
            url = output.readline().decode().strip()
            with httpx.Client(base_url=url, timeout=DEADLINE_SECONDS) as client:
                for _ in range(100):
                    assert client.get("/v1/workspace").status_code == 401
            service.send_signal(signal.SIGTERM)
            assert service.wait(DEADLINE_SECONDS) == 0


def test_the_number_of_dropped_lines_is_logged_once_when_the_log_can_be_written_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"")
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
    full = os.open("/dev/full", os.O_WRONLY)
    script = (
        "import os, sys, structlog\n"
        "from ingestd.process.logs import configure_logs, dropped_lines, flush_logs\n"
        "configure_logs()\n"
        "for number in range(5): structlog.get_logger().info('lost', number=number)\n"
        "assert flush_logs(60)\n"
        "assert dropped_lines() == 5\n"
        f"os.dup2({descriptor}, 2)\n"
        "structlog.get_logger().info('kept')\n"
    )
    subprocess.run(
        [sys.executable, "-c", script], env=environment(tmp_path), stderr=full, pass_fds=(descriptor,), check=True
    )
    os.close(full)
    os.close(descriptor)
    report, kept = (json.loads(line) for line in log.read_text().splitlines())
    assert (report["event"], report["level"], report["lines"]) == ("log_lines_dropped", "warning", 5)
    assert report["sentence"] == "5 lines of the log could not be written and were dropped: No space left on device."
    assert kept["event"] == "kept"


def test_a_reader_of_the_output_that_ends_early_causes_no_traceback(tmp_path: Path, server: DocumentServer) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 3})
    with pipe() as (reader, writer):
        os.close(reader)
        run = subprocess.run(
            [sys.executable, "-m", "ingestd", "status", "-c", str(config)],
            env=environment(tmp_path), stdout=writer, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        assert (run.returncode, run.stderr) == (128 + signal.SIGPIPE, "")
        # A sync does its work also if its output is not read.
        run = subprocess.run(
            [sys.executable, "-m", "ingestd", "sync", "-c", str(config)],
            env=environment(tmp_path), stdout=writer, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        assert "Traceback" not in run.stderr
    assert len(server.values("Sink 0")) == 3


@pytest.mark.parametrize("verb", [["status"], ["--help"]])
def test_unwritable_output_is_reported_in_a_sentence(tmp_path: Path, server: DocumentServer, verb: list[str]) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 3})
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "ingestd", "-c", str(config), *verb],
            env=environment(tmp_path), stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert run.returncode == 73
    assert re.fullmatch(r"Standard output cannot be written: No space left on device\.\n", run.stderr)
