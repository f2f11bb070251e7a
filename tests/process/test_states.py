"""One state for each pipeline: all views show the same word, and a rejection stays until it is handled."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.daemon_process import Daemon, here
from tests.support.document_server import DocumentServer
from tests.support.engineering_folder import Folder
from tests.support.listening_daemon import held_scene, hold_a_run, listening_daemon

EXPECTED = {"masses": "attention", "guarded": "held", "hostile": "attention", "away": "unavailable"}
GOOD, BROKEN, LATER = "part,mass\n00417,0.10\n", "part,weight\n00417,0.10\n", "part,mass\n00418,0.20\n"


@pytest.fixture
def scene(tmp_path: Path, server: DocumentServer) -> Iterator[tuple[Path, Daemon, httpx.Client]]:
    config = held_scene(tmp_path, server.url, {"address": "127.0.0.1:0"})
    with listening_daemon(tmp_path, config) as (daemon, client):
        hold_a_run(tmp_path, daemon)
        yield config, daemon, client


def test_all_views_show_the_same_state_of_each_pipeline(scene: tuple[Path, Daemon, httpx.Client]) -> None:
    config, daemon, client = scene

    def run(*words: str) -> str:
        return here(config.parent, *words, "-c", str(config)).stdout

    status = json.loads(run("status", "--json"))
    assert {one["name"]: one["state"] for one in status["states"]} == EXPECTED
    assert dict(re.findall(r"^pipeline (\w+): (\w+)(?: \(| *;|$)", run("status"), re.MULTILINE)) == EXPECTED
    top = dict(re.findall(r"^(\w+) +(\w+) ", run("top", "--once"), re.MULTILINE))
    assert {name: top[name] for name in EXPECTED} == EXPECTED
    page = client.get("/").text
    assert dict(re.findall(r'id="pipeline-(\w+)".*?class="state \w+">(\w+)<', page, re.DOTALL)) == EXPECTED
    for name, state in EXPECTED.items():
        assert re.search(r'<h1>.*?class="state \w+">(\w+)<', client.get(f"/pipelines/{name}").text)[1] == state  # type: ignore[index]
    ready = client.get("/readyz").json()
    assert (ready["pipelines"], ready["ready"]) == (EXPECTED, False)
    (reason,) = ready["reasons"]
    assert reason.startswith("away is unavailable: ")
    shown = {
        sample.labels["pipeline"]: sample.labels["state"]
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
        if sample.name == "ingestd_pipeline_state" and sample.value == 1
    }
    assert shown == EXPECTED
    assert 'ingestd_source_mounted{pipeline="away"} 0.0' in client.get("/metrics").text
    assert daemon.stop() == 0
    # Without a daemon only the state file is known: nothing was ever read from this one.
    alone = json.loads(run("status", "--json"))
    assert {one["name"]: one["state"] for one in alone["states"]} == EXPECTED | {"away": "waiting"}


def state(folder: Folder) -> tuple[str, list[str]]:
    (found,) = json.loads(folder.here("status", "--json").stdout)["states"]
    return found["state"], [one["sentence"] for one in found["reasons"]]


def rejected_then_good(folder: Folder) -> None:
    folder.write(BROKEN)
    assert folder.here("sync").returncode == 3
    word, (reason, count) = state(folder)
    assert (word, count) == ("attention", "1 rejection")
    assert reason.startswith("There is no column 'mass'; the columns are 'part', 'weight'.")
    folder.write(LATER, "later.csv")
    assert folder.here("sync").returncode == 3  # until it is handled
    assert state(folder) == ("attention", ["1 rejection"]), "whatever is delivered after it"


def test_a_rejected_file_is_handled_by_a_corrected_one(folder: Folder) -> None:
    rejected_then_good(folder)
    folder.write(GOOD)
    assert folder.here("sync").returncode == 0
    assert state(folder) == ("ok", [])


def test_a_rejected_file_is_handled_by_a_person_who_drops_the_rejection(folder: Folder) -> None:
    rejected_then_good(folder)
    assert folder.here("rejected", "drop", "--all").returncode == 0
    assert state(folder) == ("ok", [])


def test_a_rejected_file_is_handled_by_a_person_who_removes_it(folder: Folder) -> None:
    rejected_then_good(folder)
    (folder.drop / "budget.csv").unlink()
    assert folder.here("sync").returncode == 0
    assert state(folder) == ("ok", [])


def test_a_rejected_file_that_was_moved_to_the_folder_for_such_files_stays_rejected(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        folder = Folder(tmp_path, server, after=", after: archive, archive: archive")
        (folder.drop / "a.xlsx").write_bytes(b"this is no workbook")
        for _ in range(2):
            folder.here("sync")
            assert not (folder.drop / "a.xlsx").exists()
            assert state(folder)[0] == "attention"


def test_a_retry_does_not_hide_a_file_that_is_rejected_again(folder: Folder) -> None:
    rejected_then_good(folder)
    assert folder.here("rejected", "retry", "--all").returncode == 0
    assert state(folder)[0] == "attention", "it was not read yet"
    folder.here("sync")
    assert state(folder)[0] == "attention"


def test_an_unchanged_save_is_reported_as_unchanged_with_the_last_reading_that_had_records(folder: Folder) -> None:
    folder.write(GOOD)
    assert folder.here("sync").returncode == 0
    read = folder.here("status").stdout
    folder.write(GOOD)
    assert folder.here("sync").returncode == 0
    text = folder.here("status").stdout
    assert "0 records" not in text
    line = r"pipeline budget: ok; last run (\S+ \S+ UTC): unchanged since (\S+ \S+ UTC): 1 record, 1 created, 0 updated"
    found = re.search(line, text)
    assert found is not None, text
    assert f"last run {found[2]}: 1 record, 1 created" in read
    folder.write("part,mass\n")
    folder.here("sync")
    assert "0 records" in folder.here("status").stdout, "a file without a record is not unchanged"
