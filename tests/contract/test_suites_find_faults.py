"""The suites find deliberately broken connectors: each fault fails the test of its promise, by its sentence.

`test_connectors_suite` does so for the suite that all connectors have. That connectors without a fault pass is tested with those
of the project.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from ingestd.sdk import Batch, Connector, Cursor, Partition, SourceContext, SourceUnavailable, pack
from ingestd.sdk.testing import (
    ConsumeConformance,
    ConsumeRig,
    FaultConformance,
    FaultRig,
    KillConformance,
    KillRig,
    MemoryConformance,
    MemoryRig,
    source_checks,
)
from tests.support.plugins import Installer


class FaultyOptions(BaseModel):
    """``fault`` names the injected fault."""

    fault: str = ""
    path: str = ""


@pytest.fixture(autouse=True)
def one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempt once, and briefly, to end a reading in time. The connectors with this fault never do."""
    monkeypatch.setattr(source_checks, "STOP_ATTEMPTS", 1)
    monkeypatch.setattr(source_checks, "STOP_SECONDS", 0.2)


class Spool(Connector):
    """Each file of a folder is a message."""

    Options: ClassVar[type[BaseModel]] = FaultyOptions

    def partitions(self) -> Iterable[Partition]:
        return [Partition(name="spool", snapshot=False, replayable=self.options.fault == "replayable")]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - one partition
        stored: Any = (cursor or {}).get("done", 0)
        done = int(stored) if self.options.fault == "future cursor" or isinstance(stored, int) else 0
        self._release(done)
        paths = sorted(Path(self.options.path).iterdir())
        for path in paths:
            number = int(path.name)
            record = {"number": path.read_text()}
            if self.options.fault == "released early":
                path.unlink()
            position = 1 if self.options.fault == "positions" else number
            yield pack([record], positions=[position], cursor={"done": number}, last=self._is_end(path == paths[-1]))

    def committed(self, partition: Partition, cursor: Cursor) -> None:  # noqa: ARG002 - one partition
        if self.options.fault != "never released":
            stored: Any = cursor["done"]
            self._release(stored)

    def _is_end(self, is_last: bool) -> bool:
        return {"no end": False, "two ends": True}.get(self.options.fault, is_last)

    def _release(self, done: int) -> None:
        for path in Path(self.options.path).iterdir():
            if int(path.name) <= done and self.options.fault != "never released":
                path.unlink()


class SpoolRig(ConsumeRig):
    def __init__(self, folder: Path, fault: str) -> None:
        self._folder = folder
        self._folder.mkdir()
        self._fault = fault

    def connector(self) -> Spool:
        context = SourceContext(pipeline="t", base=self._folder, now=time.time)
        return Spool(FaultyOptions(fault=self._fault, path=str(self._folder)), context)

    def send(self, number: int) -> None:
        (self._folder / str(number)).write_text(str(number))

    def send_again(self) -> None:
        raise AssertionError("the folder has nothing, so the message is lost")


@pytest.mark.parametrize(
    ("fault", "promise", "sentence"),
    [
        ("released early", "test_a_message_that_was_not_committed_is_read_again_by_the_next_process", "is lost"),
        ("never released", "test_a_message_that_was_not_committed_is_read_again_by_the_next_process", "sent, but"),
        ("positions", "test_messages_are_read_in_order_with_positions_that_only_grow", "do not only grow"),
        ("no end", "test_the_last_batch_of_a_reading_is_marked_as_last", "last batch of spool is not marked as last"),
        ("two ends", "test_the_last_batch_of_a_reading_is_marked_as_last", "A batch of spool before the last one is"),
        ("replayable", "test_its_partitions_are_incremental_and_never_read_again", "is replayable"),
        ("future cursor", "test_a_cursor_of_another_source_is_no_unforeseen_failure", "of a later version.*TypeError"),
    ],
)
def test_a_fault_of_a_queue_fails_its_test(tmp_path: Path, fault: str, promise: str, sentence: str) -> None:
    test: Callable[[ConsumeRig], None] = getattr(ConsumeConformance(), promise)
    test(SpoolRig(tmp_path / "good", ""))
    with pytest.raises(AssertionError, match=sentence):
        test(SpoolRig(tmp_path / "bad", fault))


class LineServer:
    """Sends three lines to each connection and closes it."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                with client:
                    client.sendall((b"0\n" + b"." * 300 + b"\n") * 3 + b"end\n")

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


class LineReader(Connector):
    """Reads the lines of a `LineServer`, up to the line ``end``."""

    class Options(BaseModel):
        port: int
        fault: str

    _connection: socket.socket | None = None

    def partitions(self) -> Iterable[Partition]:
        return [Partition(name="lines")]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - one partition
        fault = self.options.fault
        try:
            connection = socket.create_connection(("127.0.0.1", self.options.port), timeout=0.6)
            with connection:
                self._connection = connection
                content = b""
                while part := connection.recv(1 << 16):
                    content += part
        except OSError as error:
            if self.options.fault == "no sentence":
                raise SourceUnavailable("E42") from error
            raise SourceUnavailable("The server is not reachable.") from error
        if not content.endswith(b"end\n") and fault != "incomplete":
            raise SourceUnavailable("The server ended the connection too early.")
        yield pack([{"line": line} for line in content.decode().split()], cursor={}, last=True)

    def interrupt(self) -> None:
        if self._connection is not None and self.options.fault != "deaf":
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)


class LineRig(FaultRig):
    def __init__(self, server: LineServer, fault: str) -> None:
        self._server = server
        self._fault = fault

    @property
    def port(self) -> int:
        return self._server.port

    def connector(self, port: int) -> LineReader:
        options = LineReader.Options(port=port, fault=self._fault)
        return LineReader(options, SourceContext(pipeline="t", base=Path(), now=time.time))


@pytest.fixture(scope="module")
def line_server() -> Iterator[LineServer]:
    server = LineServer()
    yield server
    server.close()


FAULTS_TEST = "test_after_any_fault_a_reading_ends_with_a_sentence_and_a_later_one_is_complete"


@pytest.mark.parametrize(
    ("fault", "promise", "sentence"),
    [
        ("incomplete", FAULTS_TEST, "With cut after 0% of the bytes, a reading ends without an error and has only"),
        ("no sentence", FAULTS_TEST, "With stall after 0% of the bytes, the error is not a sentence: 'E42'"),
        ("deaf", "test_a_reading_that_waits_for_a_silent_server_ends_soon", r"it must within 0\.2 seconds"),
    ],
)
def test_a_fault_of_a_client_fails_its_test(line_server: LineServer, fault: str, promise: str, sentence: str) -> None:
    test: Callable[[FaultRig], None] = getattr(FaultConformance(), promise)
    with pytest.raises(AssertionError, match=sentence):
        test(LineRig(line_server, fault))


CHILD = '''
from pathlib import Path
from pydantic import BaseModel
from ingestd.sdk import Connector, Partition, mark_last, pack

class Options(BaseModel):
    path: Path
    lines: int = 100

class Lines(Connector):
    """Lines of files, which are released by their removal."""
    Options = Options
    def partitions(self):
        return [Partition(name="lines", snapshot=False)]
    def read(self, partition, cursor):
        return mark_last(self.batches())
    def batches(self):
        number = 0
        for path in sorted(self.options.path.glob("*.txt")):
            with path.open() as file:
                while lines := [line for _, line in zip(range(self.options.lines), file)]:
                    records = [dict(zip(("name", "value"), line.split())) for line in lines]
                    self.before(path)
                    yield pack(records, positions=range(number, number + len(lines)), cursor={"n": number})
                    number += len(lines)
    def before(self, path):
        """Do nothing."""

class Eager(Lines):
    """Removes a file before its records are committed."""
    def before(self, path):
        path.unlink(missing_ok=True)

class Declared(Lines):
    """Says why memory grows."""
    memory_grows = "It grows, because all lines are one batch."
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the connectors for this process and its children."""
    Installer(tmp_path / "site", monkeypatch).install(
        "kit-lines", "kit_lines", CHILD, lines="Lines", eager="Eager", declared="Declared"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site" / "kit-lines"))


class LinesRig(MemoryRig):
    def __init__(self, folder: Path, connector: str, lines: int) -> None:
        self._folder = folder
        self._source = {"connector": connector, "path": str(folder), "lines": lines}

    def source(self) -> dict[str, Any]:
        return self._source

    def fill(self, records: int) -> None:
        with (self._folder / "a.txt").open("w") as file:
            file.writelines(f"n {number:0995}\n" for number in range(records))


@pytest.mark.usefixtures("installed")
def test_memory_that_grows_with_the_source_is_found_unless_the_connector_declares_it(tmp_path: Path) -> None:
    suite = MemoryConformance()
    with pytest.raises(AssertionError, match=r"A reading of 34 MiB more needs \d\d+ MiB more memory"):
        suite.test_memory_does_not_grow_with_the_source(LinesRig(tmp_path, "lines", 10**6), tmp_path)
    suite.test_memory_does_not_grow_with_the_source(LinesRig(tmp_path, "declared", 10**6), tmp_path)


class FileKillRig(KillRig):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def source(self) -> dict[str, Any]:
        return {"connector": "eager", "path": str(self._folder)}

    def entries(self) -> dict[str, Any]:
        return {"key": "{name}", "value": "{value}"}

    def step(self, number: int) -> None:
        (self._folder / f"{number}.txt").write_text(f"n{number} {number}.10\n")

    def wanted(self) -> dict[str, str]:
        return {"n0": "0.10"}


@pytest.mark.usefixtures("installed")
def test_a_source_that_is_released_before_the_commit_loses_what_a_killed_process_read(tmp_path: Path) -> None:
    test = KillConformance().test_a_kill_between_a_batch_and_its_commit_loses_nothing
    with pytest.raises(AssertionError, match=r"After a kill before the commit the sink has \{\}, not"):
        test(FileKillRig(tmp_path), tmp_path)
