"""Entries of an earlier state file, pipeline or mapping: the sink becomes equal to the source, and `drift` reports it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.engineering_folder import LABEL, Folder, OtherProgram, program_beside_workspaced
from tests.support.workspaced_process import new_key

BUDGET = "part,mass\n00417,0.10\n00418,2\n00419,1e-7\n"
DELIVERED = {"00417.mass": "0.10", "00418.mass": "2", "00419.mass": "1e-7"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("service") / "data"


@pytest.fixture(scope="module")
def program(data: Path) -> Iterator[OtherProgram]:
    with program_beside_workspaced(data) as program:
        yield program


@pytest.fixture
def service(program: OtherProgram) -> Iterator[OtherProgram]:
    """Return the service, with an empty workspace."""
    yield program
    program.replace_workspace()


class OneFile(Folder):
    """One file that is read whole; its vanished rows are removed."""

    def configure(
        self, *, name: str = "budget", key: str = "{part}.mass", more: str = "", deletes: str = "remove"
    ) -> None:
        self.config.write_text(
            f"service: {{url: '{self._service.url}', api_key: '{self._service.api_key}'}}\nstate: var/ingestd.db\npipelines:\n"
            f"  - {{name: {name}, source: {{connector: file, path: budget.csv, settle_seconds: 0, deletes: {deletes}}},\n"
            f"     sink: {{workspace: Bench, label: {LABEL}}}, entries: {{key: '{key}', value: '{{mass}}'}}{more}}}\n"
        )

    def __init__(self, path: Path, service: OtherProgram) -> None:
        super().__init__(path, service)
        self._service = service
        self.configure()

    def save(self, text: str) -> None:
        waiting = self.path / "budget.csv.new"
        waiting.write_text(text)
        waiting.rename(self.path / "budget.csv")

    def sync(self) -> None:
        run = self.here("sync")
        assert run.returncode == 0, run.stdout + run.stderr

    @property
    def state(self) -> Path:
        return self.path / "var" / "ingestd.db"

    def lose_state(self, *, everything: bool = False) -> None:
        if everything:
            shutil.rmtree(self.state.parent)
        else:
            for file in self.state.parent.glob("ingestd.db*"):
                file.unlink()

    def drift(self) -> tuple[int, str]:
        run = self.here("drift")
        return run.returncode, run.stdout


@pytest.fixture
def folder(tmp_path: Path, service: OtherProgram) -> OneFile:
    """Return a folder with files that are all delivered."""
    made = OneFile(tmp_path, service)
    made.save(BUDGET)
    made.sync()
    return made


def test_rows_that_vanish_while_the_state_file_is_lost_are_removed(folder: OneFile, service: OtherProgram) -> None:
    assert service.values() == DELIVERED
    folder.lose_state()
    folder.save("part,mass\n00417,0.10\n00419,1e-7\n")
    folder.sync()
    assert service.values() == {"00417.mass": "0.10", "00419.mass": "1e-7"}
    assert folder.drift() == (0, "Budget in Bench: 2 entries, as delivered.\n")


def test_rows_that_vanish_while_all_state_is_lost_are_listed_and_removed_if_configured(
    folder: OneFile, service: OtherProgram
) -> None:
    folder.lose_state(everything=True)
    folder.save("part,mass\n00417,0.10\n00419,1e-7\n")
    folder.sync()
    assert service.values() == DELIVERED, "no evidence shows that this daemon wrote them"
    code, output = folder.drift()
    assert code == 0
    assert "as delivered" not in output
    assert 'Budget in Bench · 00418.mass no source explains: "2" (scalar); it was found in the service' in output
    assert "Budget in Bench: 3 entries; 1 that no source explains" in output
    assert "1 that no source explains" in folder.here("status").stdout
    (one,) = [json.loads(line) for line in folder.here("drift", "--json").stdout.splitlines()]
    assert (one["what"], one["key"], one["why"]) == ("unexplained", "00418.mass", "found")
    folder.configure(more=", unexplained: remove")
    folder.sync()
    assert service.values() == {"00417.mass": "0.10", "00419.mass": "1e-7"}
    assert folder.drift() == (0, "Budget in Bench: 2 entries, as delivered.\n")


def test_nothing_is_removed_with_unexplained_keep_nor_with_deletes_keep(folder: OneFile, service: OtherProgram) -> None:
    folder.lose_state()
    folder.save("part,mass\n00417,0.10\n")
    for settings in (
        {"more": ", unexplained: keep"},
        {"deletes": "keep"},
        {"deletes": "keep", "more": ", unexplained: remove"},
    ):
        folder.configure(**settings)
        folder.sync()
        assert service.values() == DELIVERED, settings
        assert "2 that no source explains" in folder.drift()[1]


def test_nothing_is_removed_while_a_pipeline_of_the_sink_is_unavailable_or_a_row_is_rejected(
    tmp_path: Path, service: OtherProgram
) -> None:
    folder = OneFile(tmp_path, service)
    second = (
        "}\n  - {name: other, source: {connector: file, path: other.csv, settle_seconds: 0, deletes: remove},\n"
        f"     sink: {{workspace: Bench, label: {LABEL}}}, entries: {{key: '{{part}}.mass', value: '{{mass}}'}}"
    )
    folder.configure(more=second)
    (folder.path / "other.csv").write_text("part,mass\nX,1\n")
    folder.save(BUDGET)
    folder.sync()
    everything = {**DELIVERED, "X.mass": "1"}
    assert service.values() == everything
    folder.lose_state()
    (folder.path / "other.csv").rename(folder.path / "away.csv")
    folder.save("part,mass\n00417,0.10\n")
    assert folder.here("sync").returncode == 5
    assert service.values() == everything
    (folder.path / "away.csv").rename(folder.path / "other.csv")
    folder.save("part,mass\n00417,0.10\n,7\n")
    assert folder.here("sync").returncode == 3
    assert service.values() == everything, "the rejected row may be one of these"
    folder.save("part,mass\n00417,0.10\n")
    folder.sync()
    assert service.values() == {"00417.mass": "0.10", "X.mass": "1"}


def test_entries_written_with_another_key_are_never_removed(folder: OneFile, service: OtherProgram, data: Path) -> None:
    with closing(OtherProgram(service.url, new_key(data, name="ada"))) as ada:
        ada.add("note by Ada", "9")
        ada.change("00418.mass", "3")
    folder.lose_state()
    folder.save("part,mass\n00417,0.10\n")
    folder.sync()
    assert service.values() == {"00417.mass": "0.10", "00418.mass": "3", "note by Ada": "9"}
    assert "2 that no source explains" in folder.drift()[1]


def test_the_running_daemon_removes_entries_of_the_lost_state_file(folder: OneFile, service: OtherProgram) -> None:
    folder.lose_state()
    folder.save("part,mass\n00417,0.10\n")
    with folder.daemon("--log-level", "debug") as daemon:
        assert daemon.wait_for("unexplained_removed")["entries"] == 2
        daemon.wait_for("entries_delivered")
        daemon.stop()
    assert service.values() == {"00417.mass": "0.10"}


def test_a_renamed_pipeline_removes_the_rows_that_vanish(folder: OneFile, service: OtherProgram) -> None:
    folder.configure(name="masses")
    folder.save("part,mass\n00417,0.10\n00419,1e-7\n")
    folder.sync()
    assert service.values() == {"00417.mass": "0.10", "00419.mass": "1e-7"}
    assert folder.drift() == (0, "Budget in Bench: 2 entries, as delivered.\n")


def test_entries_of_a_removed_pipeline_are_listed_with_its_name(folder: OneFile, service: OtherProgram) -> None:
    (folder.path / "other.csv").write_text("part,mass\n00417,0.10\n")
    folder.config.write_text(folder.config.read_text().replace("budget.csv", "other.csv").replace("budget,", "other,"))
    folder.sync()
    assert service.values() == DELIVERED
    output = folder.drift()[1]
    assert "Budget in Bench: 3 entries; 2 that no source explains" in output
    assert (
        "00418.mass no source explains: \"2\" (scalar); pipeline 'budget' wrote it and is no longer configured"
        in output
    )


def test_a_changed_key_template_removes_all_previous_keys(folder: OneFile, service: OtherProgram) -> None:
    folder.configure(key="{part}.weight")
    folder.sync()
    assert service.values() == {"00417.weight": "0.10", "00418.weight": "2", "00419.weight": "1e-7"}
    assert folder.drift() == (0, "Budget in Bench: 3 entries, as delivered.\n")


def test_another_file_in_the_same_pipeline_removes_all_previous_rows(folder: OneFile, service: OtherProgram) -> None:
    (folder.path / "other.csv").write_text("part,mass\n00417,0.10\n7,7\n")
    folder.config.write_text(folder.config.read_text().replace("budget.csv", "other.csv"))
    folder.sync()
    assert service.values() == {"00417.mass": "0.10", "7.mass": "7"}


def backed_up(folder: OneFile) -> Path:
    """Return a backup of the state file, made with SQLite's backup function."""
    copy = folder.path / "backup.db"
    with closing(sqlite3.connect(folder.state)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


def restore(folder: OneFile, copy: Path) -> None:
    for name in ("ingestd.db-wal", "ingestd.db-shm"):
        (folder.state.parent / name).unlink(missing_ok=True)
    shutil.copyfile(copy, folder.state)


def test_values_that_changed_twice_after_a_backup_are_repaired_once_it_is_restored(
    folder: OneFile, service: OtherProgram
) -> None:
    copy = backed_up(folder)
    folder.save(BUDGET.replace("0.10", "0.11") + "00420,4\n")
    folder.sync()
    assert service.values() == {**DELIVERED, "00417.mass": "0.11", "00420.mass": "4"}
    folder.save(BUDGET)
    restore(folder, copy)
    run = folder.here("sync")
    assert run.returncode == 0
    assert "replaced by an older copy" in run.stderr
    assert service.values() == DELIVERED
    assert folder.drift() == (0, "Budget in Bench: 3 entries, as delivered.\n")
    assert "older copy" not in folder.here("sync").stderr, "a second one has no effect"


def test_a_restored_state_file_is_reported_until_its_sinks_are_repaired(folder: OneFile, service: OtherProgram) -> None:
    copy = backed_up(folder)
    folder.save(BUDGET.replace("0.10", "0.11"))
    folder.sync()
    (folder.path / "budget.csv").unlink()
    restore(folder, copy)
    assert folder.here("sync").returncode == 5
    assert service.values()["00417.mass"] == "0.11", "nothing confirms the older value"
    assert "replaced by an older copy" in folder.here("status").stdout
    folder.save(BUDGET)
    with folder.daemon("--log-level", "debug") as daemon:
        daemon.wait_for("drift_repaired", entries=1)
        daemon.wait_for("entries_delivered")
        daemon.stop()
    assert service.values() == DELIVERED
    assert "replaced by an older copy" not in folder.here("status").stdout


def test_the_newest_state_file_causes_no_reading_back(folder: OneFile) -> None:
    folder.save(BUDGET.replace("0.10", "0.11"))
    run = folder.here("sync")
    assert "older copy" not in run.stderr
    with closing(sqlite3.connect(folder.state)) as state:
        assert state.execute("SELECT count(*) FROM drift_check").fetchone() == (0,)


class TwoAddresses(OneFile):
    """A sink that the configuration names by its label or by its visible id."""

    def name_sinks(self, **addresses: str) -> None:
        """Let each pipeline, with a file of its name, write the sink with this address."""
        pipelines = "".join(
            f"  - {{name: {name}, source: {{connector: file, path: {name}.csv, settle_seconds: 0, deletes: remove}},\n"
            f"     sink: {{workspace: Bench, {address}}}, entries: {{key: '{{part}}.mass', value: '{{mass}}'}}}}\n"
            for name, address in addresses.items()
        )
        self.config.write_text(self.config.read_text().split("pipelines:")[0] + f"pipelines:\n{pipelines}")


BY_LABEL, BY_ID = f"label: {LABEL}", "visible_id: SNK-1"


def test_a_sink_that_was_written_under_another_address_gets_the_values_of_its_sources_again(
    tmp_path: Path, service: OtherProgram
) -> None:
    folder = TwoAddresses(tmp_path, service)
    for address, mass in [(BY_LABEL, "1"), (BY_ID, "2"), (BY_LABEL, "1"), (BY_ID, "2"), (BY_LABEL, "2"), (BY_ID, "1")]:
        folder.name_sinks(budget=address)
        folder.save(f"part,mass\n00417,{mass}\n00418,7\n")
        folder.sync()
        assert service.values() == {"00417.mass": mass, "00418.mass": "7"}, address


def test_a_sink_has_one_address_in_all_its_pipelines(tmp_path: Path, service: OtherProgram) -> None:
    folder = TwoAddresses(tmp_path, service)
    folder.save("part,mass\n00417,1\n00418,1\n")
    (folder.path / "loads.csv").write_text("part,mass\n00417,2\n00419,2\n")
    folder.name_sinks(budget=BY_LABEL)
    folder.sync()
    folder.name_sinks(budget=BY_LABEL, loads=BY_ID)
    blocked = folder.here("sync")
    assert blocked.returncode == 4, blocked.stdout
    assert (
        f"SNK-1 in Bench and {LABEL} in Bench are the same sink of the service, SNK-1. Nothing is sent to SNK-1 in Bench, "
        f"because its pipelines would overwrite values of the pipelines of {LABEL} in Bench. Name the sink in the same way in "
        "all these pipelines."
    ) in blocked.stderr
    assert service.values() == {"00417.mass": "1", "00418.mass": "1"}


def test_a_file_is_archived_after_the_name_of_its_workspace_was_corrected(
    tmp_path: Path, service: OtherProgram
) -> None:
    folder = Folder(tmp_path, service, after=", after: archive, archive: done")
    right = folder.config.read_text()
    folder.config.write_text(right.replace("workspace: Bench", "workspace: Bnech"))
    folder.write(BUDGET)
    wrong = folder.here("sync")
    assert wrong.returncode == 4
    assert "has no workspace 'Bnech'" in wrong.stderr
    folder.config.write_text(right)
    corrected = folder.here("sync")
    assert corrected.returncode == 0, corrected.stdout + corrected.stderr
    assert "3 entries delivered, 0 pending" in corrected.stdout
    assert service.values() == DELIVERED
    assert (tmp_path / "done" / "budget.csv").exists()


def test_entries_of_a_sink_that_no_pipeline_writes_any_more_are_listed(folder: OneFile, service: OtherProgram) -> None:
    folder.config.write_text(folder.config.read_text().replace(f"label: {LABEL}", "label: Masses"))
    folder.sync()
    assert (
        "sink Budget in Bench: 3 entries, 0 pending, 0 rejected; 3 that no source explains"
        in folder.here("status").stdout
    )
    code, output = folder.drift()
    assert code == 0
    assert "Budget in Bench · 00418.mass no source explains" in output
    assert "pipeline 'budget' wrote it and now writes another sink" in output
    assert "Masses in Bench: 3 entries, as delivered." in output
    assert service.values() == DELIVERED
