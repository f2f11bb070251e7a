"""`ingestd.sync` and `ingestd.plan`: one-off runs in the process of another program, against real services."""

from __future__ import annotations

import asyncio
import importlib
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ingestd
from ingestd.core.errors import ConfigurationError, MirrorBusy
from ingestd.daemon.configuration import PipelineUnknown
from ingestd.daemon.exit_codes import ExitCode
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.process.deferred_imports import defer_imports, is_deferred
from tests.support.document_server import Delay, DocumentServer, Fault, Refuse
from tests.support.document_server import Request as Received

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def server() -> Iterator[DocumentServer]:
    with DocumentServer() as running:
        running.workspace("Rover")
        yield running


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "masses.csv").write_text("part,mass\n00417,0.10\n,2\n01523,2\n")
    return tmp_path


def service(server: DocumentServer) -> dict[str, str]:
    return {"url": server.url, "api_key": server.api_key}


def pipeline(**changes: Any) -> dict[str, Any]:
    return {
        "name": "masses",
        "source": {"connector": "directory", "path": Path("drop"), "settle_seconds": 0},
        "sink": {"workspace": "Rover", "label": "Masses"},
        "entries": {"key": "{part}.mass", "value": "{mass}"},
        **changes,
    }


def test_one_pipeline_and_a_service_are_enough(folder: Path, server: DocumentServer) -> None:
    result = ingestd.sync(pipeline(), service=service(server))
    (one,) = result.pipelines
    assert (result.delivered, result.pending, result.ok, result.exit_code) == (2, 0, False, ExitCode.REJECTED)
    assert (one.name, one.sink, one.records, one.created, one.removed) == ("masses", "Masses in Rover", 3, 2, 0)
    assert [(found.position, found.reason) for found in one.rejections] == [
        (3, "'part' is empty; the key '{part}.mass' needs it.")
    ]
    assert server.values("Masses") == {"00417.mass": ("0.10", "scalar"), "01523.mass": ("2", "scalar")}


def test_a_temporary_state_is_deleted_and_a_repetition_sends_nothing(
    folder: Path, server: DocumentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = folder / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    ingestd.sync(pipeline(), service=service(server))
    server.forget_requests()
    assert ingestd.sync(pipeline(), service=service(server)).delivered == 0
    assert server.writes() == []
    assert list(temporary.iterdir()) == []


def test_a_temporary_state_removes_nothing_and_a_state_file_removes_what_it_delivered(
    folder: Path, server: DocumentServer
) -> None:
    source = {"connector": "file", "path": "drop/masses.csv", "settle_seconds": 0, "deletes": "remove"}
    for state in (None, "sync.db"):
        (folder / "drop" / "masses.csv").write_text("part,mass\n00417,0.10\n01523,2\n")
        ingestd.sync(pipeline(source=source), service=service(server), state=state)
        (folder / "drop" / "masses.csv").write_text("part,mass\n00417,0.10\n")
        result = ingestd.sync(pipeline(source=source), service=service(server), state=state)
        assert (len(server.values("Masses")), result.pipelines[0].removed) == ((2, 0) if state is None else (1, 1))
    assert (folder / "sync.db").exists()


def test_without_a_state_file_the_guard_compares_with_the_entries_of_the_sink(
    folder: Path, server: DocumentServer
) -> None:
    for factor, expected in ((1, (ExitCode.DONE, 30, 0)), (1000, (ExitCode.HELD, 0, 1))):
        rows = "".join(f"{part},{part * factor}\n" for part in range(1, 31))
        (folder / "drop" / "masses.csv").write_text(f"part,mass\n{rows}")
        result = ingestd.sync(pipeline(), service=service(server))
        assert (result.exit_code, result.delivered, len(result.pipelines[0].held)) == expected
    assert ingestd.sync(pipeline(guard="off"), service=service(server)).delivered == 30


def test_a_file_a_mapping_and_settings_are_configurations(folder: Path, server: DocumentServer) -> None:
    content = {"service": service(server), "state": "var/state.db", "pipelines": [pipeline()]}
    (folder / "ingestd.yaml").write_bytes(msgspec.json.encode(content, enc_hook=str))
    assert [ingestd.sync(one).delivered for one in (content, None, "ingestd.yaml", folder / "ingestd.yaml")] == [
        2,
        0,
        0,
        0,
    ]
    from ingestd.daemon.configuration import read_configuration

    settings = read_configuration(folder / "ingestd.yaml", environment={}, cwd=folder).settings
    assert ingestd.sync(settings).delivered == 0
    assert ingestd.sync(settings, state="other.db", pipelines="masses").pipelines[0].created == 2


def test_a_running_event_loop_signal_handlers_and_the_log_stay_as_they_are(
    folder: Path, server: DocumentServer, capfd: pytest.CaptureFixture[str]
) -> None:
    before = (
        [signal.getsignal(number) for number in SIGNALS],
        list(logging.getLogger().handlers),
        sys.getswitchinterval(),
    )

    async def cell() -> int:
        made = ingestd.plan(pipeline(), service=service(server))
        return ingestd.sync(pipeline(), service=service(server)).delivered + made.partitions[0].created

    assert asyncio.run(cell()) == 4
    after = (
        [signal.getsignal(number) for number in SIGNALS],
        list(logging.getLogger().handlers),
        sys.getswitchinterval(),
    )
    assert before == after
    assert capfd.readouterr() == ("", "")
    assert [one.name for one in threading.enumerate() if one.name.startswith("ingestd")] == []


def test_a_plan_has_the_changes_and_writes_nothing(folder: Path, server: DocumentServer) -> None:
    made = ingestd.plan(pipeline(), service=service(server), state="sync.db", rows=1)
    (part,) = made.partitions
    assert (part.created, part.rejected, len(part.changes), len(part.rejects)) == (2, 1, 1, 1)
    assert server.requests == []
    ingestd.sync(pipeline(), service=service(server), state="sync.db")
    assert ingestd.plan(pipeline(), service=service(server), state="sync.db").partitions == ()


def test_a_time_limit_ends_the_sync_and_not_the_process(folder: Path, server: DocumentServer) -> None:
    server.fail(Delay(seconds=1.0))
    before = set(threading.enumerate())
    result = ingestd.sync(pipeline(), service=service(server), timeout_seconds=0)
    assert (result.timed_out, result.exit_code) == (True, ExitCode.PENDING)
    started = set(threading.enumerate()) - before
    assert all(one.finished.is_set() for one in started if isinstance(one, threading.Timer))


def test_deferred_imports_are_complete_before_a_time_limit_begins(
    folder: Path, server: DocumentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "late_library.py").write_text("VALUE = 7\n")
    monkeypatch.syspath_prepend(folder)
    defer_imports("late_library")
    importlib.import_module("late_library")
    ingestd.sync(pipeline(), service=service(server))
    assert is_deferred("late_library")
    ingestd.sync(pipeline(), service=service(server), timeout_seconds=60)
    assert not is_deferred("late_library")


def test_an_interrupt_ends_a_sync_that_waits_and_its_state_stays_usable(folder: Path, server: DocumentServer) -> None:
    main = threading.main_thread().ident
    assert main is not None

    ended = threading.Event()

    def interrupt(request: Received) -> Fault | None:
        if request.writes and not ended.is_set():
            signal.pthread_kill(main, signal.SIGINT)
            ended.wait()
        return None

    server.fault_of = interrupt
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ingestd.sync(pipeline(), service=service(server), state="sync.db")
    finally:
        signal.signal(signal.SIGINT, before)
        ended.set()
    assert ingestd.sync(pipeline(), service=service(server), state="sync.db").pending == 0
    assert len(server.values("Masses")) == 2


def test_a_held_run_and_an_unavailable_source_are_in_the_result_each_sentence_once(
    folder: Path, server: DocumentServer
) -> None:
    contract = {"new": "hold", "columns": {"part": {}}}
    held = ingestd.sync(pipeline(contract=contract), service=service(server))
    assert [one.reasons[0] for one in held.pipelines[0].held] == ["Column 'mass' is new."]
    away = ingestd.sync(pipeline(source={"connector": "directory", "path": "gone"}), service=service(server))
    assert (away.exit_code, len(away.pipelines[0].failures)) == (ExitCode.SOURCE_FAILED, 1)
    server.fail(Refuse(status=401))
    refused = ingestd.sync(pipeline(), service=service(server))
    assert (refused.pending, len(refused.blocked)) == (2, 1)
    sentences = refused.blocked[0].split(". ")
    assert len(sentences) == len(set(sentences))


@pytest.mark.parametrize(
    ("config", "arguments", "sentence"),
    [
        ({"pipelines": []}, {}, "configuration in Python: service: The key 'service' is missing"),
        (pipeline(entires={}), {}, r"configuration in Python: pipelines\[0\].entires: There is no key 'entires'"),
        ("gone.yaml", {}, "gone.yaml: There is no such file."),
        (None, {}, "There is no configuration file. Tried:"),
    ],
)
def test_a_mistake_in_a_configuration_names_its_key(
    folder: Path, config: Mapping[str, Any] | str | None, arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        ingestd.sync(config, **arguments)


def test_other_arguments_that_cannot_be_used_are_refused(folder: Path, server: DocumentServer) -> None:
    with pytest.raises(PipelineUnknown, match=r"There is no pipeline 'mases' .* Did you mean 'masses'"):
        ingestd.sync(pipeline(), service=service(server), pipelines="mases")
    with pytest.raises(TypeError, match="'service' is for a configuration that is a mapping"):
        ingestd.plan("ingestd.yaml", service=service(server))
    with pytest.raises(TypeError, match="no values of the type set"):
        ingestd.plan(pipeline(entries={1}), service=service(server))
    held = SqliteMirror.open(folder / "sync.db")
    try:
        with pytest.raises(MirrorBusy):
            ingestd.sync(pipeline(), service=service(server), state="sync.db")
    finally:
        held.close()


def test_importing_the_package_imports_nothing_else() -> None:
    script = (
        "import importlib, sys; before = set(sys.modules); import ingestd; print(*(set(sys.modules) - before)); "
        "ingestd.nothing"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["ingestd"]
    assert "AttributeError: module 'ingestd' has no attribute 'nothing'" in run.stderr
