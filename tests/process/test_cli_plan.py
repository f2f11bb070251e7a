"""`ingestd plan` and `ingestd sync --plan` with real files, state files and services."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ingestd.cli.progress import reading_progress
from ingestd.commands.sync_plan.execution import plan as make_plan
from ingestd.daemon.configuration import read_configuration
from tests.support.daemon_process import environment, running_daemon
from tests.support.engineering_folder import Folder, program_beside_workspaced
from tests.support.golden_texts import check_command_output
from tests.support.plan_scene import PlanScene, apply_plan, plan_scene

PARTS = {"a": "1", "b": "2", "c": "3", "d": "4", "e": "5"}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[PlanScene]:
    """Sources with a first state that was delivered."""
    with plan_scene(tmp_path / "scene") as made:
        made.write_parts(PARTS)
        made.write_drop("one.csv", [("f", "6"), ("g", "7")])
        made.append_readings([("p", "1")])
        assert made.here("sync").returncode == 0
        yield made


def save(scene: PlanScene) -> Path:
    path = scene.path / "plan.json"
    assert scene.here("plan", "--exit-code", "--save", str(path)).returncode in {8, 9}
    return path


def test_a_plan_replaces_a_plan_and_no_other_file(scene: PlanScene) -> None:
    scene.write_drop("two.csv", [("h", "8")])
    former = save(scene).read_bytes()
    scene.write_drop("three.csv", [("i", "9")])
    assert save(scene).read_bytes() != former
    configuration = scene.config.read_bytes()
    refused = scene.here("plan", "--save", str(scene.config))
    assert (refused.returncode, refused.stderr) == (
        73,
        f"{scene.config} exists, and is not overwritten. Name another file.\n",
    )
    assert scene.config.read_bytes() == configuration


def test_without_new_content_a_sync_has_nothing_to_do(scene: PlanScene) -> None:
    found = scene.here("plan", "--exit-code")
    assert found.returncode == 0
    assert "new content: 1" not in found.stdout
    assert found.stdout.splitlines()[-1] == (
        "A sync would create 0, change 0 and remove 0 entries, reject 0, and hold 0 runs. Nothing was written."
    )


@pytest.mark.parametrize(("golden", "more"), [("plan", {}), ("plan-rejected", {"": "9"})])
def test_a_plan_shows_each_kind_of_change_and_rejected_records(
    scene: PlanScene, golden: str, more: dict[str, str]
) -> None:
    # Nothing is removed beside a rejected record with an unknown key.
    scene.write_parts({"a": "1", "b": "20", "c": "3", "d": "text", "h": "8", **more})
    found = scene.here("plan", "--exit-code")
    assert found.returncode == 9
    check_command_output(golden, found.stdout)


def test_without_the_option_only_an_unreadable_source_is_an_exit_code(scene: PlanScene) -> None:
    scene.write_parts({"a": "10", "b": "20", "c": "30", "d": "40", "e": "50"})
    assert scene.here("plan").returncode == 0
    (scene.path / "parts.csv").unlink()
    away = scene.here("plan")
    assert away.returncode == 5
    assert "parts: " in away.stderr


def test_rows_limits_what_is_shown_and_nothing_that_is_counted(scene: PlanScene) -> None:
    scene.write_drop("two.csv", [(f"n{number}", "1") for number in range(30)])
    found = scene.here("plan", "--exit-code", "--rows", "2", "drop")
    assert "+ n1.mass: 1 (scalar)" in found.stdout
    assert "n2.mass" not in found.stdout
    assert "… 28 more changes; --rows N shows more" in found.stdout
    assert "A sync would create 30," in found.stdout


def test_a_plan_writes_nothing_and_sends_nothing(scene: PlanScene, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = scene.path.with_name("temporary")
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    scene.write_parts({"a": "1"})
    scene.write_drop("two.csv", [("f", "60")])
    scene.write_drop("broken.xlsx", [("no", "workbook")])
    scene.append_readings([("p", "2")])
    scene.server.forget_requests()
    before = scene.fingerprint()
    assert scene.here("plan", "--exit-code").returncode == 5
    assert scene.fingerprint() == before
    assert scene.server.requests == []
    assert list(temporary.iterdir()) == []


def test_a_plan_before_the_first_sync_creates_no_state_file(tmp_path: Path) -> None:
    with plan_scene(tmp_path / "scene") as scene:
        scene.write_parts(PARTS)
        found = scene.here("plan", "--exit-code", "parts")
        assert found.returncode == 9
        assert "The content of the sink Budget in Bench is not known yet" in found.stdout
        assert not scene.state.parent.exists()
        assert scene.server.requests == []


def test_the_first_sync_can_be_planned(tmp_path: Path) -> None:
    with plan_scene(tmp_path / "scene") as scene:
        scene.write_parts(PARTS)
        made = scene.plan("parts")
        saved = str(scene.path / "plan.json")
        scene.here("plan", "parts", "--save", saved)
        assert scene.here("sync", "--plan", saved).returncode == 0
        assert scene.values() == apply_plan({"Budget": {}, "Readings": {}}, made)
        status = json.loads(scene.here("status", "--json").stdout)
        assert [sink["doubt"] for sink in status["sinks"]] == [""]
        assert scene.here("plan", "--exit-code", "parts").returncode == 0


def test_a_held_run_is_shown_and_stays_held_by_the_execution(scene: PlanScene) -> None:
    scene.write_parts({"a": "10", "b": "20", "c": "30", "d": "40", "e": "50"})
    scene.write_drop("two.csv", [("f", "60")])
    before = scene.values()
    found = scene.here("plan", "--exit-code")
    assert found.returncode == 8
    assert "parts.csv: 5 records, 0 rejected; would be held; entries: 0 created, 5 changed" in found.stdout
    assert "held: It changes 5 of 5 entries (100.0 %); the limit is 60 %." in found.stdout
    assert "~ a.mass: 1 (scalar) → 10 (scalar)" in found.stdout
    made, saved = scene.plan(), save(scene)
    assert scene.here("sync", "--plan", str(saved)).returncode == 8
    assert scene.values() == apply_plan(before, made)
    assert scene.values()["Budget"]["f.mass"] == ("60", "scalar")
    assert scene.values()["Budget"]["a.mass"] == ("1", "scalar")
    assert "is held since" in scene.here("status").stdout


def test_pending_entries_are_part_of_the_plan(scene: PlanScene) -> None:
    configuration = scene.config.read_text(encoding="utf-8")
    scene.config.write_text(configuration.replace(scene.server.api_key, "refused"), encoding="utf-8")
    scene.write_parts({**PARTS, "a": "10"})
    assert scene.here("sync").returncode == 4
    scene.config.write_text(configuration, encoding="utf-8")
    found = scene.here("plan", "--exit-code")
    assert found.returncode == 9
    assert "Pending in the sink Budget in Bench from before: 1 entry." in found.stdout
    saved = save(scene)
    assert scene.here("sync").returncode == 0
    refused = scene.here("sync", "--plan", str(saved))
    assert refused.returncode == 10
    assert "The state has changed: 0 entries pending now; the plan has 1 pending, or different ones." in refused.stderr


def test_entries_that_no_source_names_are_shown_and_kept_by_the_execution(scene: PlanScene) -> None:
    scene.configure(parts="other.csv")
    scene.write_parts({"a": "1", "b": "2"}, "other.csv")
    found = scene.here("plan", "--exit-code")
    assert found.returncode == 9
    assert (
        "No source names 3 entries of the sink Budget in Bench any more. A sync removes such entries after it has compared the "
        "sink; 'sync --plan' keeps them."
    ) in found.stdout
    assert scene.here("sync", "--plan", str(save(scene))).returncode == 0
    assert {"c.mass", "d.mass", "e.mass"} <= scene.values()["Budget"].keys()
    assert scene.here("sync").returncode == 0
    assert sorted(scene.values()["Budget"]) == ["a.mass", "b.mass", "f.mass", "g.mass"]
    assert scene.here("plan", "--exit-code").returncode == 0


def test_the_execution_acknowledges_files_as_a_sync_does(scene: PlanScene) -> None:
    scene.write_drop("two.csv", [("f", "60")])
    assert scene.here("sync", "--plan", str(save(scene))).returncode == 0
    assert list((scene.path / "drop").glob("*.csv")) == []
    assert {path.name for path in (scene.path / "done").glob("*.csv")} == {"one.csv", "two.csv"}
    assert scene.here("plan", "--exit-code").returncode == 0


def refusal(scene: PlanScene, saved: Path) -> str:
    """Return why a plan is refused, after a check that nothing was delivered or stored."""
    before = scene.values()
    scene.server.forget_requests()
    planned = scene.plan()
    refused = scene.here("sync", "--plan", str(saved))
    assert refused.returncode == 10
    assert refused.stderr.endswith("is refused, and nothing was delivered. Make a new plan with 'ingestd plan'.\n")
    assert scene.server.writes() == []
    assert scene.values() == before
    assert {**scene.plan(), "made": ""} == {**planned, "made": ""}
    return refused.stderr


def change_state(scene: PlanScene) -> None:
    scene.write_parts({**PARTS, "a": "11"})
    assert scene.here("sync").returncode == 0
    scene.write_parts({**PARTS, "a": "10"})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda scene: scene.write_parts({**PARTS, "a": "10", "b": "20"}),
            "parts.csv (pipeline parts) has other content than in the plan: 5 instead of 5 records; entries: 0 created, 2",
        ),
        (
            lambda scene: scene.write_parts({**PARTS, "a": "20"}),
            "has other content than in the plan: the same number of records and changed entries, but different values.",
        ),
        (
            lambda scene: scene.append_readings([("p", "2")]),
            "(pipeline readings) is not in the plan. It has new content: 1 record",
        ),
        (
            lambda scene: (scene.path / "drop" / "two.csv").unlink(),
            "two.csv (pipeline drop) has nothing to read any more. The plan has 1 record of this partition.",
        ),
        (
            lambda scene: scene.configure(value="{mass}0"),
            "source, entries, contract, guard, sink or lookup files of pipeline parts are not the same as in the plan",
        ),
        (lambda scene: scene.configure(guard="off"), "guard"),
        (
            change_state,
            "The state has changed: 1 commits have changed entries of pipeline parts since the plan was made.",
        ),
    ],
    ids=["records", "values", "other source", "changed back", "mapping", "guard", "state"],
)
def test_a_plan_is_refused_after_a_change(
    scene: PlanScene, change: Callable[[PlanScene], object], sentence: str
) -> None:
    scene.write_parts({**PARTS, "a": "10"})
    if "two.csv" in sentence:
        scene.write_drop("two.csv", [("f", "60")])
    saved = save(scene)
    change(scene)
    sentences = refusal(scene, saved)
    assert sentence in sentences
    if "lookup files" in sentence:
        assert "pipeline readings" not in sentences.split("The source has changed")[0]


def test_a_file_outside_the_plan_that_is_written_again_with_the_same_bytes_changes_nothing(scene: PlanScene) -> None:
    scene.append_readings([("p", "2")])
    saved = save(scene)
    scene.write_parts(PARTS)
    done = scene.here("sync", "--plan", str(saved))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_plan_can_be_executed_once(scene: PlanScene) -> None:
    scene.write_parts({**PARTS, "a": "10"})
    saved = save(scene)
    assert scene.here("sync", "--plan", str(saved)).returncode == 0
    assert scene.values()["Budget"]["a.mass"] == ("10", "scalar")
    assert "The state has changed" in refusal(scene, saved)


def test_a_saved_plan_is_private_and_checked(scene: PlanScene) -> None:
    scene.write_parts({**PARTS, "a": "10"})
    saved = save(scene)
    assert saved.stat().st_mode & 0o777 == 0o600
    content = saved.read_text(encoding="utf-8")
    for broken, reason in (
        (content.replace('"version": 1', '"version": 7'), "has version 7 of a plan"),
        (content.replace('"partitions"', '"files"'), "is no plan of 'ingestd plan --save'"),
        ("", "is no plan of 'ingestd plan --save'"),
    ):
        saved.write_text(broken, encoding="utf-8")
        refused = scene.here("sync", "--plan", str(saved))
        assert refused.returncode == 2
        assert reason in refused.stderr
    assert "--plan takes no names" in scene.here("sync", "parts", "--plan", str(saved)).stderr
    nowhere = scene.here("plan", "--exit-code", "--save", str(scene.path / "missing" / "plan.json"))
    assert nowhere.returncode == 73


def test_a_plan_beside_a_running_daemon(scene: PlanScene) -> None:
    with running_daemon(scene.path, "run", "-c", str(scene.config), "--log-level", "debug") as (daemon, manager):
        manager.wait_for("READY")
        scene.write_parts({**PARTS, "a": "10", "b": "20", "c": "30", "d": "40", "e": "50"})
        daemon.wait_for("run_held")
        found = scene.here("plan", "--exit-code")
        assert found.returncode == 8
        saved = save(scene)
        assert scene.here("sync", "--plan", str(saved)).returncode == 75
        scene.append_readings([("q", "3")])
        daemon.wait_for("entries_delivered")
        assert daemon.stop() == 0
    assert scene.values()["Readings"]["q.mass"] == ("3", "scalar")


def test_a_signal_ends_a_plan_and_removes_its_copies(scene: PlanScene) -> None:
    text = scene.config.read_text(encoding="utf-8")
    scene.config.write_text(text.replace("settle_seconds: 0", "settle_seconds: 300"), encoding="utf-8")
    scene.write_parts({**PARTS, "a": "10"})
    temporary = scene.path / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "ingestd", "plan", "-c", str(scene.config)],
        cwd=scene.path, env=environment(scene.path, TMPDIR=str(temporary)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    folder = _wait_for_copy(temporary)
    assert folder.stat().st_mode & 0o777 == 0o700
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 143
    assert list(temporary.iterdir()) == []


def _wait_for_copy(temporary: Path) -> Path:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = list(temporary.glob("*/after.db-wal"))
        if found:
            return found[0].parent
        os.sched_yield()
    raise AssertionError("no copy within 30 s")


@pytest.mark.parametrize("milliseconds", [300, 900])
def test_a_killed_execution_leaves_nothing_or_all_of_the_plan(scene: PlanScene, milliseconds: int) -> None:
    scene.write_parts({**PARTS, "a": "10"})
    scene.write_drop("two.csv", [("f", "60")])
    scene.append_readings([("p", "2")])
    before, made, saved = scene.values(), scene.plan(), save(scene)
    process = subprocess.Popen(
        [sys.executable, "-m", "ingestd", "sync", "--plan", str(saved), "-c", str(scene.config)],
        cwd=scene.path, env=environment(scene.path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        process.wait(timeout=milliseconds / 1000)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    after = scene.plan()
    counts = [part["created"] + part["changed"] for part in after["partitions"]]
    assert counts in ([], [1, 1, 1]), "either the whole plan is stored, or nothing of it"
    assert scene.here("sync").returncode == 0
    assert scene.values() == apply_plan(before, made)


def test_a_plan_is_executed_at_the_service(tmp_path: Path) -> None:
    with program_beside_workspaced(tmp_path / "data") as service:
        folder = Folder(tmp_path / "here", service)
        folder.write("part,mass\n417,0.30\n418,1\n")
        assert folder.here("sync").returncode == 0
        folder.write("part,mass\n417,0.35\n418,1\n419,2\n")
        saved = str(tmp_path / "plan.json")
        assert folder.here("plan", "--exit-code", "--save", saved).returncode == 9
        assert service.values() == {"417.mass": "0.30", "418.mass": "1"}
        assert folder.here("sync", "--plan", saved).returncode == 0
        assert service.values() == {"417.mass": "0.35", "418.mass": "1", "419.mass": "2"}
        assert json.loads(folder.here("status", "--json").stdout)["pending"] == 0


def test_a_plan_says_what_a_sync_says_of_repeated_keys(scene: PlanScene) -> None:
    scene.write_drop("two.csv", [("h", "8"), ("h", "9")])
    (notice,) = (one["notice"] for one in scene.plan()["partitions"] if one["partition"].endswith("two.csv"))
    assert "h.mass" in notice
    assert f"  {notice}\n" in scene.here("plan").stdout
    assert notice in scene.here("sync").stdout


def test_a_plan_shows_the_number_of_read_records_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    for terminal, shown in ((True, "reading: 65000 records"), (False, "")):
        with reading_progress(terminal=terminal) as on_records:
            on_records(60_000)
            on_records(5_000)
        printed = capsys.readouterr()
        assert printed.out == "", "standard output has the plan alone"
        assert shown in printed.err
        assert bool(printed.err) == terminal


def test_a_plan_counts_the_records_while_it_reads(scene: PlanScene) -> None:
    scene.append_readings([(f"q{number}", "1") for number in range(20)])
    read: list[int] = []
    configuration = read_configuration(scene.config, environment={}, cwd=scene.path)
    asyncio.run(make_plan(configuration, ["readings"], rows=0, emit=lambda _: None, on_records=read.append))
    assert sum(read) == 20
