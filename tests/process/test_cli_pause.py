"""`ingestd pause`, `resume` and `run PIPELINE`: what a paused pipeline does not do, without a daemon and with one."""

from __future__ import annotations

import getpass
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.api import sync
from tests.support.daemon_process import held_run, here, running_daemon
from tests.support.document_server import DocumentServer
from tests.support.plan_scene import PlanScene, plan_scene

PARTS = {"a": "1", "b": "2", "c": "3", "d": "4", "e": "5"}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[PlanScene]:
    """Sources with a first state that was delivered; the pipelines parts and drop share a sink."""
    with plan_scene(tmp_path / "scene") as made:
        made.write_parts(PARTS)
        made.write_drop("one.csv", [("f", "6")])
        made.append_readings([("p", "1")])
        assert made.here("sync").returncode == 0
        yield made


def masses(scene: PlanScene) -> dict[str, str | None]:
    return {key: value for key, (value, _) in scene.values()["Budget"].items()}


def test_a_sync_skips_a_paused_pipeline_and_delivers_the_others_of_its_sink(scene: PlanScene) -> None:
    paused = scene.here("pause", "parts")
    assert paused.stdout == (
        "Pipeline parts is paused: its source is not read, and its entries are not sent (0 pending entries) until "
        "'ingestd resume parts'. Requests in flight end.\n"
    )
    scene.write_parts({**PARTS, "a": "9"})
    scene.write_drop("two.csv", [("g", "7")])
    planned = scene.here("plan", "--exit-code")
    synced = scene.here("sync")
    assert (planned.returncode, synced.returncode) == (8, 8)
    sentence = f" by {getpass.getuser()}: its source is not read, and its 0 pending entries are not sent."
    for printed in (planned.stderr, synced.stderr, scene.here("status").stdout):
        assert "It is paused since 20" in printed
        assert f"{sentence} 'ingestd resume parts' ends the pause." in printed
    assert masses(scene) == {**{f"{part}.mass": mass for part, mass in PARTS.items()}, "f.mass": "6", "g.mass": "7"}
    (found,) = json.loads(scene.here("status", "--json").stdout)["paused"]
    assert (found["pipeline"], found["by"], found["pending"]) == ("parts", getpass.getuser(), 0)
    assert scene.here("resume", "parts").stdout == (
        "Pipeline parts is resumed, with 0 pending entries.\nNo daemon runs. "
        "The next run or sync reads the pipeline and sends its pending entries.\n"
    )
    assert scene.here("sync").returncode == 0
    assert masses(scene)["a.mass"] == "9"


def test_pending_entries_of_a_paused_pipeline_wait_and_do_not_fail_the_sync_of_another(scene: PlanScene) -> None:
    scene.write_parts({part: f"{mass}000" for part, mass in PARTS.items()})
    assert scene.here("sync").returncode == 8
    scene.here("pause", "parts")
    approved = scene.here("approve", str(held_run(scene.path)["run"])).stdout
    assert approved.endswith("The pipeline is paused: they are sent after 'ingestd resume parts'.\n")
    scene.write_drop("two.csv", [("g", "7")])
    other = scene.here("sync", "drop")
    assert (other.returncode, other.stderr) == (0, "")
    assert "its 5 pending entries are not sent" in scene.here("sync").stderr
    assert (masses(scene)["g.mass"], masses(scene)["a.mass"]) == ("7", "1")
    assert scene.here("resume", "parts").stdout.startswith("Pipeline parts is resumed, with 5 pending entries.")
    assert scene.here("sync").returncode == 0
    assert masses(scene)["a.mass"] == "1000"


def test_a_saved_plan_is_refused_if_a_pipeline_was_paused_since(scene: PlanScene) -> None:
    scene.write_parts({**PARTS, "a": "9"})
    assert scene.here("plan", "--save", "plan.json").returncode == 0
    scene.here("pause", "parts")
    refused = scene.here("sync", "--plan", "plan.json")
    assert refused.returncode == 10
    assert "Pipeline parts has changed: It is paused since" in refused.stderr


def test_a_pause_is_repeatable_and_names_unknown_pipelines(scene: PlanScene) -> None:
    assert scene.here("resume", "parts").stdout.startswith("Pipeline parts is not paused.")
    scene.here("pause", "parts")
    again = scene.here("pause", "parts")
    assert again.returncode == 0
    assert again.stdout.endswith(f" by {getpass.getuser()} already.\n")
    unknown = scene.here("pause", "part")
    assert (unknown.returncode, unknown.stderr) == (1, "There is no pipeline 'part'. Did you mean 'parts'?\n")
    assert scene.here("run", "parts").returncode == 75
    assert "Without a daemon, 'ingestd sync parts' reads the pipeline now." in scene.here("run", "parts").stderr


def test_the_pause_of_a_pipeline_that_is_not_configured_any_more_can_be_ended(scene: PlanScene) -> None:
    scene.here("pause", "drop")
    scene.configure(parts="others.csv")
    (scene.path / "others.csv").write_text("part,mass\na,1\n")
    assert scene.here("pause", "drop").returncode == 1
    assert "pipeline drop: It is paused since" in scene.here("status").stdout
    assert scene.here("resume", "drop").returncode == 0
    assert "paused" not in scene.here("status").stdout


def test_a_sync_in_python_reports_a_paused_pipeline(scene: PlanScene) -> None:
    scene.here("pause", "parts")
    result = sync(scene.config, pipelines="parts")
    assert not result.ok
    assert result.pipelines[0].failures[0].startswith("It is paused since ")


def test_a_renamed_pipeline_stays_paused(scene: PlanScene) -> None:
    scene.here("pause", "parts")
    scene.config.write_text(scene.config.read_text().replace("{name: parts,", "{name: masses,"))
    scene.write_parts({**PARTS, "a": "9"})
    assert "masses: It is paused since" in scene.here("sync").stderr
    assert masses(scene)["a.mass"] == "1"


def test_a_daemon_keeps_a_pause_over_a_restart_and_reads_on_demand(tmp_path: Path, server: DocumentServer) -> None:
    config = tmp_path / "ingestd.yaml"
    config.write_text(
        f"service: {{url: '{server.url}', api_key: test-key}}\nstate: ingestd.db\npipelines:\n"
        + "".join(
            f"  - {{name: {name}, source: {{connector: directory, path: {name}, settle_seconds: 0}}, {schedule}\n"
            f"     sink: {{workspace: Bench, label: Budget}}, entries: {{key: '{name}.{{part}}', value: '{{mass}}'}}}}\n"
            for name, schedule in (("live", ""), ("hourly", "schedule: {every: 1h},"))
        )
    )

    def write(name: str, file: str, mass: str) -> None:
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / f"{file}.csv").write_text(f"part,mass\n{file},{mass}\n")

    for name in ("live", "hourly"):
        write(name, "a", "1")
    with running_daemon(tmp_path, "run") as (daemon, _):
        for name in ("live", "hourly"):
            daemon.wait_for("partition_acknowledged", pipeline=name)
        assert here(tmp_path, "pause", "live").returncode == 0
        assert daemon.wait_for("pipeline_paused")["by"] == getpass.getuser()
        write("live", "b", "2")
        write("hourly", "b", "2")
        asked = here(tmp_path, "run", "hourly")
        assert asked.stdout == "The daemon reads pipeline hourly now. 'ingestd status' shows the result.\n"
        daemon.wait_for("partition_acknowledged", pipeline="hourly", partition="b.csv")
        assert daemon.wait_for("pipeline_requested", pipeline="hourly")["by"] == getpass.getuser()
        refused = here(tmp_path, "run", "live")
        assert refused.returncode == 1
        assert refused.stderr.endswith("'ingestd resume live' ends the pause.\n")
        assert "It is paused since" in here(tmp_path, "why", "live/b.csv").stdout
        assert daemon.stop() == 0
    with running_daemon(tmp_path, "run") as (daemon, manager):
        manager.wait_for("READY")  # commands find it from then on
        assert here(tmp_path, "reload").returncode == 0
        write("hourly", "c", "3")
        here(tmp_path, "run", "hourly")
        daemon.wait_for("partition_acknowledged", pipeline="hourly", partition="c.csv")
        assert sorted(server.values("Budget")) == ["hourly.a", "hourly.b", "hourly.c", "live.a"]
        assert here(tmp_path, "resume", "live").stdout == "Pipeline live is resumed, with 0 pending entries.\n"
        daemon.wait_for("partition_acknowledged", pipeline="live", partition="b.csv")
        assert "live.b" in server.values("Budget")
