"""What happens to an acknowledged file. tests/faults/test_file_crash_sweep.py has the crashes."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.beneath import Folder, RootedPath
from connectors.directory import disposal
from connectors.files.identity import Identity
from ingestd.sdk import Partition, SourceUnavailable
from ingestd.sdk.testing import acknowledgement
from tests.support.watched_files import Drop, acknowledge, read_all, ready_names

TEXT = "part,mass\nA,0.10\n"


def tree(folder: Path) -> dict[str, str]:
    """Return every file except receipts, which tests/integration/connectors/directory/test_receipts.py checks."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".receipt.json")]
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def test_a_kept_file_is_not_read_again_until_it_changes(drop: Drop) -> None:
    path = drop.write("a.csv")
    connector = drop.connector()
    cursor = read_all(connector, "a.csv")[-1].cursor
    assert ready_names(connector) == ["a.csv"]
    acknowledge(connector, "a.csv", cursor)
    assert ready_names(connector) == []
    assert "everything from it is delivered or rejected" in (connector.explain("a.csv") or "")
    path.write_text("part,mass\nB,1\n")
    assert ready_names(connector) == ["a.csv"]


def test_an_archived_file_keeps_its_sub_folder_and_overwrites_nothing(drop: Drop) -> None:
    connector = drop.connector(after="archive", archive="done", recursive=True)
    for number in range(3):
        drop.write("x/a.csv", f"part\n{number}\n")
        cursor = read_all(connector, "x/a.csv")[-1].cursor
        for _ in range(2):
            acknowledge(connector, "x/a.csv", cursor)
    assert tree(drop.done) == {"x/a.csv": "part\n0\n", "x/a~2.csv": "part\n1\n", "x/a~3.csv": "part\n2\n"}
    assert tree(drop.folder) == {}


def test_a_file_that_changed_after_it_was_read_is_not_archived(drop: Drop) -> None:
    for after_option in ["archive", "delete"]:
        connector = drop.connector(after=after_option, archive="done")
        drop.write("a.csv")
        cursor = read_all(connector, "a.csv")[-1].cursor
        drop.write("a.csv", "part\nnew\n")
        acknowledge(connector, "a.csv", cursor)
        assert tree(drop.folder) == {"a.csv": "part\nnew\n"}
    assert not drop.done.exists()


def test_a_deleted_file_is_deleted_once(drop: Drop) -> None:
    connector = drop.connector(after="delete")
    drop.write("a.csv")
    cursor = read_all(connector, "a.csv")[-1].cursor
    for _ in range(2):
        acknowledge(connector, "a.csv", cursor)
    assert tree(drop.folder) == {}


def test_equal_content_that_is_dropped_again_is_unchanged_and_is_archived(drop: Drop) -> None:
    connector = drop.connector(after="archive", archive="done")
    drop.write("a.csv")
    cursor = read_all(connector, "a.csv")[-1].cursor
    acknowledge(connector, "a.csv", cursor)
    drop.write("a.csv")
    again = drop.connector(after="archive", archive="done")
    (batch,) = read_all(again, "a.csv", cursor)
    assert batch.unchanged
    acknowledge(again, "a.csv", batch.cursor)
    assert tree(drop.done) == {"a.csv": TEXT, "a~2.csv": TEXT}
    assert tree(drop.folder) == {}


def test_if_the_archive_cannot_be_written_the_file_is_kept_and_retried(drop: Drop) -> None:
    drop.done.touch()
    connector = drop.connector(after="archive", archive="done")
    drop.write("a.csv")
    cursor = read_all(connector, "a.csv")[-1].cursor
    with pytest.raises(SourceUnavailable, match=r"can't be archived in .*done: .* stays until that is possible"):
        acknowledge(connector, "a.csv", cursor)
    assert tree(drop.folder) == {"a.csv": TEXT}
    drop.done.unlink()
    acknowledge(connector, "a.csv", cursor)
    assert tree(drop.done) == {"a.csv": TEXT}


def test_a_file_that_is_replaced_during_the_move_is_moved_back_unread(
    drop: Drop, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = drop.write("a.csv")
    identity = Identity.from_status(path.stat())
    move = Folder.move

    def replaced_meanwhile(folder: Folder, base: str, target: Folder, target_base: str) -> None:
        if folder.path == drop.folder:
            (drop.base / "new").write_text("part\nnew\n")
            (drop.base / "new").replace(path)
        move(folder, base, target, target_base)
        if folder.path == drop.folder and dropped_again:
            drop.write("a.csv", "part\nnewer\n")

    monkeypatch.setattr(Folder, "move", replaced_meanwhile)
    place, archive = RootedPath(drop.folder, "a.csv"), RootedPath(drop.done)
    for dropped_again in (False, True):
        path.write_text(TEXT)
        identity = Identity.from_status(path.stat())
        assert not disposal.archive(place, archive, "a.csv", identity=identity, sha256="")
        new = {"a~2.csv" if dropped_again else "a.csv": "part\nnew\n"}
        assert tree(drop.folder) == new | ({"a.csv": "part\nnewer\n"} if dropped_again else {})
        assert tree(drop.done) == {}


@pytest.fixture(params=["same file system", "another file system"])
def archive_folder(request: pytest.FixtureRequest, drop: Drop) -> Iterator[Path]:
    if request.param == "same file system":
        yield drop.done
        return
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == drop.folder.stat().st_dev:
        pytest.skip("no second file system: /dev/shm is not a separate tmpfs here")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder) / "deep" / "done"


def test_a_move_across_file_systems_keeps_times_and_content(drop: Drop, archive_folder: Path) -> None:
    path = drop.write("a.csv")
    os.utime(path, (5000, 5000))
    connector = drop.connector(after="archive", archive=str(archive_folder))
    connector.acknowledge(Partition(name="a.csv"), read_all(connector, "a.csv")[-1].cursor, acknowledgement())
    assert tree(archive_folder) == {"a.csv": TEXT}
    assert (archive_folder / "a.csv").stat().st_mtime == 5000


def test_a_folder_contains_a_file_until_it_is_removed_even_while_the_folder_is_unavailable(drop: Drop) -> None:
    drop.write("a.csv")
    drop.write("b.csv")
    connector = drop.connector(after="archive", archive="done")
    cursor = read_all(connector, "a.csv")[-1].cursor
    assert connector.holds("a.csv")
    acknowledge(connector, "a.csv", cursor)
    assert not connector.holds("a.csv")
    drop.folder.rename(drop.folder.with_name("elsewhere"))
    assert connector.holds("a.csv"), "files in a missing folder do not count as removed"
    assert connector.holds("b.csv")
