"""A source with an unexpected failure stops no other, in any command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.daemon_process import here, running_daemon, write_configuration
from tests.support.document_server import DocumentServer
from tests.support.listening_daemon import listening_daemon, write_listening_configuration


@pytest.mark.parametrize("where", ["opening", "listing", "closing"])
def test_sync_reports_the_failing_source_and_delivers_the_others(
    tmp_path: Path, server: DocumentServer, where: str
) -> None:
    config = write_configuration(tmp_path, server.url, {"bug": where}, {"upto": 4})
    run = here(tmp_path, "sync", "-c", str(config))
    assert run.returncode == (0 if where == "closing" else 5), run.stderr
    assert len(server.values("Sink 1")) == 4
    assert "RuntimeError: Symlink loop" in run.stdout + run.stderr
    assert "a bug in ingestd" not in run.stderr


def test_run_restarts_the_failing_source_and_shows_it_in_status(tmp_path: Path, server: DocumentServer) -> None:
    config = write_configuration(tmp_path, server.url, {"bug": "listing"}, {"upto": 4})
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, _):
        first = daemon.wait_for("part_failed", part="intake p0")
        assert "Traceback" in first["traceback"]
        assert daemon.wait_for("part_failed", nth=2, part="intake p0")["traceback"] == ""
        daemon.wait_for("partition_acknowledged", pipeline="p1")
        status = json.loads(here(tmp_path, "status", "--json", "-c", str(config)).stdout)
        (failed,) = status["failed_parts"]
        assert (failed["part"], failed["sentence"]) == ("intake p0", "RuntimeError: Symlink loop")
        assert daemon.stop() == 0


def test_a_source_that_fails_to_report_is_named_by_the_status_the_health_and_the_pages(
    tmp_path: Path, server: DocumentServer
) -> None:
    pipeline = {
        "name": "failing",
        "source": {"connector": "numbers", "bug": "reporting"},
        "entries": {"key": "{n}", "value": "{n}"},
        "sink": {"workspace": "Bench", "label": "Sink 1"},
        "schedule": {"every": "1h"},
    }
    config = write_listening_configuration(tmp_path, server.url, [pipeline])
    sentence = "The connector failed to {}: RuntimeError: Symlink loop. Please report it."
    with listening_daemon(tmp_path, config) as (daemon, client):
        daemon.wait_for("partition_acknowledged")
        status = json.loads(here(tmp_path, "status", "--json", "-c", str(config)).stdout)
        (state,) = status["states"]
        assert state["state"] == "attention"
        expected = [sentence.format(what) for what in ("report its notices", "count the files that wait")]
        assert [reason["sentence"] for reason in state["reasons"]] == expected
        assert client.get("/readyz").json() == {"ready": True, "reasons": [], "pipelines": {"failing": "attention"}}
        assert 'ingestd_pipeline_state{pipeline="failing",state="attention"} 1.0' in client.get("/metrics").text
        assert expected[0] in client.get("/").text
        assert sentence.format("list the files that wait") in client.get("/pipelines/failing").text
        assert daemon.stop() == 0


@pytest.mark.parametrize("where", ["opening", "verifying", "closing"])
def test_check_fails_the_failing_source_and_checks_the_others(
    tmp_path: Path, server: DocumentServer, where: str
) -> None:
    config = write_configuration(tmp_path, server.url, {"bug": where}, {"upto": 4})
    run = here(tmp_path, "check", "-c", str(config))
    assert run.returncode == 5
    lines = run.stdout.splitlines()
    assert "failed  p0 · access: The connector failed: RuntimeError: Symlink loop. Please report it." in lines
    assert "passed  p1 · counting: One, two, three." in lines


LOOPS = """\
service: {{url: "{url}", api_key: test-key}}
state: ingestd.db
pipelines:
  - name: loops
    source: {{connector: directory, path: loops, settle_seconds: 0, recursive: true}}
    entries: {{key: "{{part}}", value: "{{mass}}"}}
    sink: {{workspace: Bench, label: Loops}}
  - name: other
    source: {{connector: directory, path: other, settle_seconds: 0}}
    entries: {{key: "{{part}}", value: "{{mass}}"}}
    sink: {{workspace: Bench, label: Other}}
"""


def test_a_link_to_itself_in_a_drop_folder_stops_no_command(tmp_path: Path, server: DocumentServer) -> None:
    for name in ("loops", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_text("part,mass\nA,1\n")
    (tmp_path / "loops" / "b.csv").symlink_to("b.csv")
    (tmp_path / "loops" / "folder").symlink_to("folder")
    config = tmp_path / "ingestd.yaml"
    config.write_text(LOOPS.format(url=server.url))
    run = here(tmp_path, "sync", "-c", str(config))
    assert (run.returncode, run.stderr.count("Traceback")) == (0, 0), run.stderr
    why = here(tmp_path, "why", str(tmp_path / "loops" / "b.csv"), "-c", str(config))
    assert "Too many levels of symbolic links" in why.stdout
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, _):
        daemon.wait_for("daemon_ready")
        (tmp_path / "loops" / "c.csv").write_text("part,mass\nC,1\n")
        daemon.wait_for("partition_acknowledged", pipeline="loops", partition="c.csv")
        assert not [event for event in daemon.events if event["event"] == "part_failed"]
        assert daemon.stop() == 0
