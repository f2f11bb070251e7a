"""Root's commands open the state file and the files beside it without following links of the account of the daemon."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ingestd.core.errors import MirrorError
from ingestd.mirror.sqlite.mirror import SqliteMirror

Plant = Callable[[Path, Path], None]


def symbolic(path: Path, target: Path) -> None:
    path.symlink_to(target)


def hard(path: Path, target: Path) -> None:
    path.hardlink_to(target)


def pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("name", ["i.db", "i.db.lock", ".i.db.sequence"])
@pytest.mark.parametrize(
    ("plant", "kind"),
    [(symbolic, "a symbolic link"), (hard, "a file with several names (hard links)"), (pipe, "no regular file")],
)
def test_what_another_account_put_beside_the_state_file_is_refused_and_named(
    tmp_path: Path, name: str, plant: Plant, kind: str
) -> None:
    target = tmp_path / "of-root"
    target.write_bytes(b"")
    folder = tmp_path / "var"
    folder.mkdir()
    plant(folder / name, target)
    with pytest.raises(MirrorError) as refused:
        SqliteMirror.open(folder / "i.db")
    assert str(refused.value).startswith(f"{folder / name} is {kind}. ")
    assert target.read_bytes() == b""


def test_a_link_to_a_missing_file_creates_nothing(tmp_path: Path) -> None:
    (tmp_path / "i.db.lock").symlink_to(tmp_path / "made")
    with pytest.raises(MirrorError):
        SqliteMirror.open(tmp_path / "i.db")
    assert not (tmp_path / "made").exists()
