"""`ingestd backup` and `ingestd restore`: what a copy holds, what is refused, and that old copies do not change new values."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.engineering_folder import Folder, OtherProgram


@pytest.fixture
def folder(tmp_path: Path, service: OtherProgram) -> Folder:
    return Folder(tmp_path, service)


def state_of(folder: Folder) -> Path:
    return folder.path / "var/ingestd.db"


def succeeds(folder: Folder, *words: str) -> str:
    run = folder.here(*words)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_a_copy_beside_the_daemon_restores_its_state(folder: Folder, service: OtherProgram) -> None:
    folder.write("part,mass\na,1\nb,2\n")
    backup = folder.path / "backup"
    with folder.daemon() as daemon:
        daemon.wait_for("partition_acknowledged")
        assert "is a copy of" in succeeds(folder, "backup", str(backup))
        refused = folder.here("restore", str(backup))
        assert (refused.returncode, "process" in refused.stderr) == (75, True)
        assert daemon.stop() == 0
    assert backup.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.path.iterdir() if "backup" in path.name] == ["backup"]
    before = service.values()
    folder.write("part,mass\na,10\nb,2\nc,3\n")
    succeeds(folder, "sync")
    after = service.values()
    assert after != before

    assert ".replaced-1" in succeeds(folder, "restore", str(backup))
    succeeds(folder, "sync")
    assert service.values() == after
    assert "0 pending" in succeeds(folder, "status")
    assert folder.here("drift").returncode == 0


def test_values_of_a_file_that_is_gone_keep_their_newer_value(folder: Folder, service: OtherProgram) -> None:
    folder.write("part,mass\na,1\nb,2\n", "first.csv")
    succeeds(folder, "sync")
    succeeds(folder, "backup", str(folder.path / "backup"))
    folder.write("part,mass\na,10\n", "second.csv")
    succeeds(folder, "sync")
    for file in folder.drop.iterdir():
        file.unlink()
    newer = service.values()
    assert newer["a.mass"] == "10"
    succeeds(folder, "restore", str(folder.path / "backup"))
    succeeds(folder, "sync")
    assert service.values() == newer
    assert folder.here("drift").returncode == 6, "the value that the restored state does not know is listed"


def test_a_damaged_state_file_is_replaced_and_kept(folder: Folder, service: OtherProgram) -> None:
    folder.write("part,mass\na,1\n")
    succeeds(folder, "sync")
    succeeds(folder, "backup", str(folder.path / "backup"))
    state = state_of(folder)
    damaged = b"no database" * 1000
    state.write_bytes(damaged)
    succeeds(folder, "restore", str(folder.path / "backup"))
    assert state.with_name(f"{state.name}.replaced-1").read_bytes() == damaged
    succeeds(folder, "restore", str(folder.path / "backup"))
    assert state.with_name(f"{state.name}.replaced-2").exists()
    succeeds(folder, "sync")
    assert len(service.values()) == 1


@pytest.mark.parametrize("kind", ["missing", "empty", "text", "other database", "damaged", "newer", "folder"])
def test_what_is_no_backup_changes_nothing(folder: Folder, kind: str) -> None:
    folder.write("part,mass\n" + "".join(f"p{number},{number}\n" for number in range(3000)))
    succeeds(folder, "sync")
    state = state_of(folder)
    backup = folder.path / "backup"
    match kind:
        case "empty":
            backup.touch()
        case "text":
            backup.write_text("part,mass\n" * 1000, encoding="utf-8")
        case "other database":
            with closing(sqlite3.connect(backup)) as database:
                database.execute("CREATE TABLE part (number)")
        case "damaged":
            content = bytearray(state.read_bytes())
            content[8192 * 3 : 8192 * 30] = bytes(8192 * 27)
            backup.write_bytes(content)
        case "folder":
            backup.mkdir()
        case "newer":
            shutil.copy(state, backup)
            with closing(sqlite3.connect(backup)) as database:
                database.execute("PRAGMA user_version = 9999")
    before = state.read_bytes()
    run = folder.here("restore", str(backup))
    assert (run.returncode, run.stdout) == (74, "")
    assert str(backup) in run.stderr
    # The state file in use is intact, so advice about it would be wrong.
    assert ("Nothing was changed." in run.stderr) is (kind != "newer")
    assert "Move it away" not in run.stderr
    assert "'state'" not in run.stderr
    assert state.read_bytes() == before
    assert not list(folder.path.rglob(".*.part"))
    assert not list(folder.path.rglob("*.replaced-*"))


def test_a_backup_overwrites_nothing_and_needs_a_state_file(folder: Folder) -> None:
    missing = folder.here("backup", str(folder.path / "backup"))
    assert (missing.returncode, "There is no state file" in missing.stderr) == (74, True)
    folder.write("part,mass\na,1\n")
    succeeds(folder, "sync")
    (folder.path / "backup").write_text("mine", encoding="utf-8")
    run = folder.here("backup", str(folder.path / "backup"))
    assert (run.returncode, "File exists" in run.stderr) == (74, True)
    assert (folder.path / "backup").read_text(encoding="utf-8") == "mine"
    run = folder.here("backup", str(folder.path / "no" / "folder"))
    assert (run.returncode, "No such file or directory" in run.stderr) == (74, True)


@pytest.mark.parametrize("verb", [["backup", "copy"], ["plan"], ["status"], ["sync"]])
def test_a_folder_in_the_place_of_the_state_file_is_no_failure_of_the_disk(folder: Folder, verb: list[str]) -> None:
    state_of(folder).mkdir(parents=True)
    run = folder.here(*verb)
    assert (run.returncode, run.stdout) == (74, "")
    assert run.stderr == f"{state_of(folder)} is a folder. Configure a file in 'state', or remove the folder.\n"
