"""`ingestd sync` with real processes: its effect and its exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemon_process import here, ingestd, running_daemon, write_configuration
from tests.support.document_server import Delay, DocumentServer, Refuse
from tests.support.engineering_folder import Folder


def last_line(text: str) -> str:
    return text.splitlines()[-1]


def test_everything_delivered_is_0_and_a_second_sync_writes_nothing(tmp_path: Path, server: DocumentServer) -> None:
    write_configuration(tmp_path, server.url, {"upto": 3}, {"upto": 4})
    first = here(tmp_path, "sync")
    assert (first.returncode, last_line(first.stdout)) == (0, "7 entries delivered, 0 pending, 0 rejected.")
    assert "p0: numbers: 3 records read: 3 created" in first.stdout
    assert {key: value for key, (value, _) in server.values("Sink 0").items()} == {"0.0": "0", "0.1": "1", "0.2": "2"}
    server.forget_requests()
    second = here(tmp_path, "sync")
    assert (second.returncode, last_line(second.stdout)) == (0, "0 entries delivered, 0 pending, 0 rejected.")
    assert server.writes() == []


# Packages of modules that are executed only if something has changed. A package with a deferred import has no submodules.
ONLY_FOR_CHANGES = (
    "polars.", "structlog.", "sqlglot.", "pint.", "apscheduler", "openpyxl", "python_calamine",
    "xlrd", "defusedxml", "psycopg", "pymysql", "ingestd.commands.sync_plan",
    "connectors.formats.csv.reader", "connectors.formats.ndjson.reader",
    "connectors.formats.json.reader", "connectors.formats.columnar", "connectors.formats.excel", "connectors.formats.xml",
    "connectors.formats.fixed_width", "connectors.formats.junit", "numpy", "h5py", "nptdms", "asammdf", "scipy",
)  # fmt: skip

UNNEEDED_BY_SMALL_REQUESTS = ("httpx.", "httpcore", "rich")
ONLY_FOR_REQUESTS = (*UNNEEDED_BY_SMALL_REQUESTS, "ingestd.client.programs")


def modules_of(config: Path, *verb: str) -> list[str]:
    """Run a verb in a new process, and return the modules that it has executed at its end."""
    script = (
        "import sys\nfrom ingestd.cli import main\n"
        f"try:\n    main({[*verb]}, standalone_mode=False)\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=config.parent, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout.splitlines()[-1].split()


def test_an_unchanged_sync_imports_no_data_frames_and_no_reader_of_a_format(
    tmp_path: Path, server: DocumentServer
) -> None:
    """It makes one request for each sink: whether the service still has it."""
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "masses.csv").write_text("part,mass\nP1,1.50\nP2,2.50\n")
    source = {"connector": "directory", "path": str(tmp_path / "drop"), "settle_seconds": 0}
    config = tmp_path / "ingestd.yaml"
    pipeline = {
        "name": "masses", "source": source, "sink": {"workspace": "Bench", "label": "Masses"},
        "entries": {"key": "{part}", "value": "{mass}"},
    }  # fmt: skip
    service = {"url": server.url, "api_key": "test-key", "client_id": "test"}
    config.write_text(json.dumps({"service": service, "state": "var/ingestd.db", "pipelines": [pipeline]}))
    first = modules_of(config, "sync")
    assert [
        name for name in ("polars.", "httpx.", "connectors.formats.csv.reader") if not with_prefix(first, name)
    ] == []
    assert [value for value, _ in server.values("Masses").values()] == ["1.50", "2.50"]
    server.forget_requests()
    again = modules_of(config, "sync")
    assert [
        name for prefix in ONLY_FOR_CHANGES + UNNEEDED_BY_SMALL_REQUESTS for name in with_prefix(again, prefix)
    ] == []
    assert server.writes() == []
    for verb in (("status",), ("why", str(tmp_path / "drop" / "masses.csv"))):
        loaded = modules_of(config, *verb)
        assert [name for prefix in ONLY_FOR_CHANGES + ONLY_FOR_REQUESTS for name in with_prefix(loaded, prefix)] == []


def with_prefix(modules: list[str], prefix: str) -> list[str]:
    return [name for name in modules if name.startswith(prefix)]


def test_only_named_pipelines_are_read(tmp_path: Path, server: DocumentServer) -> None:
    write_configuration(tmp_path, server.url, {"upto": 3}, {"upto": 4}, {"away": True})
    run = here(tmp_path, "sync", "p1")
    assert (run.returncode, last_line(run.stdout)) == (0, "4 entries delivered, 0 pending, 0 rejected.")


def test_an_unknown_pipeline_is_reported_with_the_nearest_name(tmp_path: Path, server: DocumentServer) -> None:
    write_configuration(tmp_path, server.url, {"upto": 3})
    run = here(tmp_path, "sync", "p00")
    assert run.returncode == 2
    assert "There is no pipeline 'p00'" in run.stderr
    assert "'p0'?" in run.stderr


def test_a_rejected_record_is_3_as_long_as_it_is_open(tmp_path: Path, server: DocumentServer) -> None:
    write_configuration(tmp_path, server.url, {"upto": 3, "rejects": 2}, {"upto": 1})
    first = here(tmp_path, "sync")
    assert (first.returncode, last_line(first.stdout)) == (3, "4 entries delivered, 0 pending, 2 rejected.")
    assert here(tmp_path, "sync").returncode == 3
    assert here(tmp_path, "sync", "p1").returncode == 0


def test_a_rejected_entry_is_3(tmp_path: Path, server: DocumentServer) -> None:
    write_configuration(tmp_path, server.url, {"upto": 1})
    assert here(tmp_path, "sync").returncode == 0
    write_configuration(tmp_path, server.url, {"upto": 3})
    server.fail(Refuse(status=400), when=lambda request: request.writes)
    run = here(tmp_path, "sync")
    assert (run.returncode, last_line(run.stdout)) == (3, "1 entry delivered, 0 pending, 1 rejected.")


def test_pending_entries_at_the_timeout_are_4_and_are_delivered_by_the_next_sync(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        url = server.url
    write_configuration(tmp_path, url, {"upto": 3})
    run = here(tmp_path, "sync", "--timeout", "1.5")
    assert (run.returncode, last_line(run.stdout)) == (4, "0 entries delivered, 3 pending, 0 rejected.")
    assert "The timeout has expired" in run.stderr
    with DocumentServer() as server:
        server.workspace("Bench")
        write_configuration(tmp_path, server.url, {"upto": 3})
        assert here(tmp_path, "sync").returncode == 0
        assert len(server.values("Sink 0")) == 3


def test_an_invalid_key_is_4_without_waiting(tmp_path: Path) -> None:
    with DocumentServer(api_key="another") as server:
        server.workspace("Bench")
        write_configuration(tmp_path, server.url, {"upto": 3})
        run = here(tmp_path, "sync")
    assert run.returncode == 4
    assert last_line(run.stdout) == "0 entries delivered, 3 pending, 0 rejected."
    assert "paused" in run.stderr
    assert "test-key" not in run.stdout + run.stderr


@pytest.mark.parametrize("source", [{"away": True}, {"broken": True}])
def test_an_unreadable_source_is_5_and_the_others_are_delivered(
    tmp_path: Path, server: DocumentServer, source: dict[str, bool]
) -> None:
    write_configuration(tmp_path, server.url, source, {"upto": 4})
    run = here(tmp_path, "sync")
    assert (run.returncode, last_line(run.stdout)) == (5, "4 entries delivered, 0 pending, 0 rejected.")
    assert "p0: The numbers are" in run.stderr


def test_a_signal_ends_a_sync_cleanly_with_4(tmp_path: Path, server: DocumentServer) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 1})
    assert here(tmp_path, "sync").returncode == 0
    config = write_configuration(tmp_path, server.url, {"upto": 2000})
    server.forget_requests()
    server.fault_of = lambda request: Delay(seconds=0.05) if request.writes else None
    with running_daemon(tmp_path, "sync", "-c", str(config)) as (sync, _):
        while not server.writes():
            server.arrived.clear()
            assert server.writes() or server.arrived.wait()
        assert sync.stop(signal.SIGTERM) == 4
        delivered, waiting = (int(word) for word in sync.lines[-1].split() if word.isdigit() and word != "0")
        assert delivered + waiting == 1999
        assert delivered == len(server.values("Sink 0")) - 1
    server.fault_of = None
    assert here(tmp_path, "sync").returncode == 0
    assert len(server.values("Sink 0")) == 2000


@pytest.mark.slow
def test_a_hanging_source_does_not_extend_the_timeout(tmp_path: Path, server: DocumentServer) -> None:
    config = write_configuration(tmp_path, server.url, {"hang": str(tmp_path / "mark")})
    run = ingestd(tmp_path, "sync", "--timeout", "1", "-c", str(config))
    assert run.returncode == 4
    assert "drain_overran" in run.stderr
    assert (tmp_path / "mark").exists()


def drop_folder(tmp_path: Path, url: str, settle_seconds: float) -> Path:
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "mass.csv").write_text("part,mass\nA-1,0.10\nA-2,12\n")
    config = tmp_path / "ingestd.yaml"
    config.write_text(f"""
service: {{url: {url}, api_key: test-key}}
state: var/ingestd.db
pipelines:
  - name: mass
    source:
      {{connector: directory, path: drop, pattern: "*.csv", settle_seconds: {settle_seconds}, after: archive, archive: done}}
    entries: {{key: "{{part}}", value: "{{mass}}"}}
    sink: {{workspace: Bench, label: Mass}}
""")
    return config


def test_a_recently_written_file_is_waited_for_and_archived(tmp_path: Path, server: DocumentServer) -> None:
    drop_folder(tmp_path, server.url, settle_seconds=1.5)
    run = here(tmp_path, "sync")
    assert (run.returncode, last_line(run.stdout)) == (0, "2 entries delivered, 0 pending, 0 rejected.")
    assert {key: value for key, (value, _) in server.values("Mass").items()} == {"A-1": "0.10", "A-2": "12"}
    assert list((tmp_path / "drop").iterdir()) == []
    assert sorted(path.name for path in (tmp_path / "done").iterdir()) == ["mass.csv", "mass.csv.receipt.json"]


def test_waiting_for_a_file_is_limited_by_the_timeout(tmp_path: Path, server: DocumentServer) -> None:
    drop_folder(tmp_path, server.url, settle_seconds=600)
    run = here(tmp_path, "sync", "--timeout", "1")
    assert (run.returncode, last_line(run.stdout)) == (4, "0 entries delivered, 0 pending, 0 rejected.")
    assert (tmp_path / "drop" / "mass.csv").exists()


def test_a_sync_and_the_status_say_each_sentence_once(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path / "here", server)
    folder.write("part,mass\na,1\n")
    assert folder.here("sync").returncode == 0
    server.api_key = "another-key"
    folder.write("part,mass\na,2\n", "again.csv")
    folder.write("part,part\na,2\n", "unreadable.csv")
    synced = folder.here("sync")
    assert synced.returncode == 4
    folder.here("drift")
    for printed, sentences in (
        (synced.stdout + synced.stderr, ("The service does not know the API key", "unreadable.csv: ")),
        (folder.here("status").stdout, ("The service does not know the API key",)),
    ):
        assert [printed.count(one) for one in sentences] == [1] * len(sentences), printed
    assert "could not be read back" in printed
    assert "for the same reason" in printed
