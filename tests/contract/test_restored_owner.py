"""The owner of the files that `ingestd restore` writes: root restores for the account of the daemon."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ingestd.core.errors import MirrorError
from ingestd.daemon.kept_files import restore_kept
from ingestd.mirror.sqlite import SqliteMirror, back_up_state, restore_state

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may change owners")

ACCOUNT = (4242, 4243)


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    state = tmp_path / "former" / "ingestd.db"
    SqliteMirror.open(state).close()
    back_up_state(state, tmp_path / "backup", kept=lambda: [("p.1", "client", b"id")])
    return tmp_path / "backup"


def restored_owners(state: Path, backup: Path) -> dict[str, tuple[int, int]]:
    """Restore the backup; return the owners of everything in the folder by its name."""
    restore_state(state, backup, restore_kept=lambda files: restore_kept(state, files))
    return {
        path.name: (found.st_uid, found.st_gid) for path in state.parent.rglob("*") for found in [path.stat()]
    }  # fmt: skip


def test_restored_files_belong_to_the_owner_of_the_folder_if_there_was_no_state_file(
    tmp_path: Path, backup: Path
) -> None:
    state = tmp_path / "var" / "ingestd.db"
    state.parent.mkdir()
    os.chown(state.parent, *ACCOUNT)
    owners = restored_owners(state, backup)
    assert owners == dict.fromkeys(
        ["ingestd.db", "ingestd.db.lock", "ingestd.db.connectors", "p%2E1", "client"], ACCOUNT
    )  # fmt: skip


def test_a_missing_folder_is_created_for_the_owner_of_the_one_above(tmp_path: Path, backup: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, *ACCOUNT)
    assert set(restored_owners(home / "a" / "b" / "ingestd.db", backup).values()) == {ACCOUNT}
    assert {((home / name).stat().st_uid, (home / name).stat().st_gid) for name in ("a", "a/b")} == {ACCOUNT}


def test_the_owner_of_the_replaced_file_is_kept(tmp_path: Path, backup: Path) -> None:
    state = tmp_path / "var" / "ingestd.db"
    SqliteMirror.open(state).close()
    os.chown(state, *ACCOUNT)
    owners = restored_owners(state, backup)
    assert owners["ingestd.db"] == owners["ingestd.db.replaced-1"] == ACCOUNT


def test_a_link_in_the_folder_of_the_state_file_ends_a_restore_before_anything_is_written(
    tmp_path: Path, backup: Path
) -> None:
    state = tmp_path / "var" / "ingestd.db"
    SqliteMirror.open(state).close()
    before = state.read_bytes()
    private = tmp_path / "private"
    private.touch(mode=0o600)
    state.with_name("ingestd.db.lock").unlink()
    os.link(private, state.with_name("ingestd.db.lock"))
    with pytest.raises(MirrorError, match="several names"):
        restored_owners(state, backup)
    assert (state.read_bytes(), private.stat().st_uid) == (before, 0)
