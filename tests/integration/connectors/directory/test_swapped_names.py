"""Attacks of a person who may only write into a drop folder. Each name is exchanged at a fixed moment."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.beneath import Folder, RootedPath
from connectors.directory import DirectoryConnector
from connectors.directory.readiness.evaluation import Readiness
from ingestd.sdk import AcknowledgeLater, Partition, Rejected, SourceBroken, SourceError, SourceUnavailable
from ingestd.sdk.testing import acknowledgement
from tests.support.swapped_names import SECRET, SWAPS, by_link, by_pipe, within
from tests.support.watched_files import Drop, acknowledge

TEXT = "part,mass\nA,0.10\n"
FACTS = {"file.sha256": "x"}


@pytest.fixture
def secret(drop: Drop) -> Path:
    """Return a file of another account, in a folder that the person can't write to."""
    path: Path = drop.base / "other" / "b.csv"
    path.parent.mkdir()
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


@pytest.fixture(autouse=True)
def nothing_escapes(secret: Path) -> Iterator[None]:
    yield
    assert {path.name: path.read_text() for path in secret.parent.iterdir()} == {"b.csv": SECRET}
    assert secret.stat().st_mode & 0o777 == 0o600


def texts(connector: DirectoryConnector, name: str) -> str:
    """Return what a reading yields, as text, or why there is none."""
    try:
        return "".join(str(batch.records.rows()) for batch in connector.read(Partition(name=name), None))
    except SourceError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("seconds", [0, 2])
@pytest.mark.parametrize("after", ["keep", "archive", "delete"])
def test_a_file_that_is_exchanged_after_the_scan_is_not_read(
    drop: Drop, secret: Path, swap: Callable[[Path, Path], None], seconds: float, after: str
) -> None:
    path = drop.write("a.csv")
    connector = drop.connector(after=after, archive="done", settle_seconds=seconds)
    assert [partition.name for partition in connector.partitions()] == ["a.csv"]
    swap(path, secret)
    assert "SECRET" not in within(20, lambda: texts(connector, "a.csv"))


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("after", ["keep", "archive"])
def test_a_file_that_is_exchanged_between_status_and_open_is_not_read(
    drop: Drop, secret: Path, swap: Callable[[Path, Path], None], after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = drop.write("a.csv")
    connector = drop.connector(after=after, archive="done")
    list(connector.partitions())
    open_file = Folder.open_file

    def exchanged(folder: Folder, base: str) -> int:
        swap(path, secret)
        return open_file(folder, base)

    monkeypatch.setattr(Folder, "open_file", exchanged)
    assert "SECRET" not in within(20, lambda: texts(connector, "a.csv"))


@pytest.mark.parametrize("after", ["keep", "archive", "delete"])
def test_a_folder_that_is_exchanged_for_a_link_is_not_entered(drop: Drop, secret: Path, after: str) -> None:
    drop.write("sub/b.csv")
    connector = drop.connector(after=after, archive="done", recursive=True)
    assert [partition.name for partition in connector.partitions()] == ["sub/b.csv"]
    cursor = list(connector.read(Partition(name="sub/b.csv"), None))[-1].cursor
    (drop.folder / "sub").rename(drop.base / "away")
    (drop.folder / "sub").symlink_to(secret.parent)
    assert "SECRET" not in texts(connector, "sub/b.csv")
    # Even if the other file has the identity of the one that was read.
    (drop.base / "away" / "b.csv").replace(drop.base / "kept")
    status = secret.stat()
    cursor = {
        **cursor,
        "device": status.st_dev,
        "inode": status.st_ino,
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
    }
    with pytest.raises(SourceError, match=r"symbolic link|leads out of the folder"):
        connector.acknowledge(Partition(name="sub/b.csv"), cursor, acknowledgement())
    assert list(connector.partitions()) == []
    assert not drop.done.exists()


@pytest.mark.parametrize("rule", ["sha256", "complete", "trailer", "not-open"])
@pytest.mark.parametrize("swap", SWAPS)
def test_a_file_that_is_exchanged_before_its_rules_are_evaluated_does_not_block(
    drop: Drop, secret: Path, rule: str, swap: Callable[[Path, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = drop.write("a.json", "[]")
    (drop.folder / "a.json.sha256").write_text("0" * 64)
    connector = drop.connector(ready=[rule])
    update = Readiness.update

    def exchanged(readiness: Readiness, files: Any) -> None:
        update(readiness, files)
        swap(path, secret)

    monkeypatch.setattr(Readiness, "update", exchanged)
    assert within(20, lambda: list(connector.partitions())) == []


@pytest.mark.parametrize("companion", ["a.csv.sha256", "export.manifest"])
def test_a_pipe_in_place_of_a_checksum_or_manifest_does_not_block(drop: Drop, companion: str) -> None:
    drop.write("a.csv")
    os.mkfifo(drop.folder / companion)
    connector = drop.connector(ready=["sha256" if companion.endswith("sha256") else "manifest"])
    assert within(20, lambda: list(connector.partitions())) == []


@pytest.mark.parametrize("swap", [by_link, by_pipe])
def test_a_companion_that_is_exchanged_is_not_archived(
    drop: Drop, secret: Path, swap: Callable[[Path, Path], None]
) -> None:
    drop.write("a.csv")
    drop.write("a.csv.done", "")
    connector = drop.connector(after="archive", archive="done", ready=["marker"])
    assert [partition.name for partition in connector.partitions()] == ["a.csv"]
    cursor = list(connector.read(Partition(name="a.csv"), None))[-1].cursor
    swap(drop.folder / "a.csv.done", secret)
    within(20, lambda: acknowledge(connector, "a.csv", cursor))
    assert sorted(path.name for path in drop.done.iterdir()) == ["a.csv", "a.csv.receipt.json"]


@pytest.mark.parametrize("swap", [by_link, by_pipe])
def test_an_unreadable_file_that_is_exchanged_is_not_moved(
    drop: Drop, secret: Path, swap: Callable[[Path, Path], None]
) -> None:
    path = drop.write("a.csv", "a,a\n1,2\n")
    connector = drop.connector(after="archive", archive="done")
    list(connector.partitions())
    with pytest.raises(SourceBroken):
        list(connector.read(Partition(name="a.csv"), None))
    swap(path, secret)
    within(20, lambda: connector.failed(Partition(name="a.csv"), "It is unreadable."))
    assert not drop.done.exists()


def rejecting() -> Any:
    reject = Rejected(
        reference="1-00aa", subject="record", position=2, reason="It is bad.", field="part",
        record={"part": "A", "mass": "0.10"}, facts=FACTS,
    )  # fmt: skip
    return acknowledgement(rejects=[reject], records=1, facts=FACTS)


def dispose(connector: DirectoryConnector, result: Any) -> str:
    """Read and acknowledge the file a.csv; return the reason why it can't be removed."""
    list(connector.partitions())
    cursor = list(connector.read(Partition(name="a.csv"), None))[-1].cursor
    try:
        connector.acknowledge(Partition(name="a.csv"), cursor, result)
    except (SourceUnavailable, AcknowledgeLater) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("settings", [
    {"after": "archive", "archive": "drop/done"},
    {"after": "archive", "archive": "drop/x/done"},
    {"after": "archive", "archive": "archive", "receipts": "drop/done"},
    {"after": "archive", "archive": "archive", "quarantine": "drop/done"},
    {"after": "keep", "receipts": "drop/done"},
    {"after": "delete", "receipts": "drop/done"},
])  # fmt: skip
def test_nothing_is_written_through_a_link_in_place_of_a_folder(
    drop: Drop, secret: Path, settings: dict[str, str]
) -> None:
    connector = drop.connector(**settings)
    path = drop.write("a.csv")
    where = "x" if "x/done" in str(settings) else "done"
    (drop.folder / where).symlink_to(secret.parent)
    assert "symbolic link" in dispose(connector, rejecting())
    assert path.read_text() == TEXT
    (drop.folder / where).unlink()
    assert dispose(connector, rejecting()) == ""


def test_prepared_names_in_the_output_folders_are_not_written_through(drop: Drop, secret: Path) -> None:
    """Every name that is written there, hidden ones included, is that of a link to another file."""
    settings = {"after": "archive", "archive": "drop/done"}
    written: list[RootedPath] = []
    create = Folder.create

    def recorded(folder: Folder, base: str, mode: int) -> int:
        written.append(RootedPath(folder.path, base))
        return create(folder, base, mode)

    drop.write("a.csv")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Folder, "create", recorded)
        assert dispose(drop.connector(**settings), rejecting()) == ""
    hidden = {path.path for path in written}
    named = [path for path in (drop.folder / "done").rglob("*") if path.is_file()]
    assert len(hidden) == 2
    assert len(named) == 3
    for path in named:
        by_link(path, secret)
    drop.write("a.csv")

    planted: set[str] = set()

    def prepared(folder: Folder, base: str, mode: int) -> int:
        if base not in planted:
            (folder.path / base).symlink_to(secret)
            planted.add(base)
        return create(folder, base, mode)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Folder, "create", prepared)
        assert dispose(drop.connector(**settings), rejecting()) == ""
    assert (drop.folder / "done" / "a~2.csv").read_text() == TEXT
    receipt = json.loads((drop.folder / "done" / "a~2.csv.receipt.json").read_text())
    assert receipt["rejected"]["rows_in"] == "drop/done/rejected/a.csv.rejected~2.csv"


@pytest.mark.parametrize("what", ["pipe", "link", "file"])
def test_what_has_the_name_of_the_self_test_does_not_block(drop: Drop, secret: Path, what: str) -> None:
    place = drop.folder / ".ingestd-self-test.tmp"
    match what:
        case "pipe":
            os.mkfifo(place)
        case "link":
            place.symlink_to(secret)
        case _:
            place.touch()
    steps = {step.name: step for step in within(30, lambda: list(drop.connector().verify()))}
    assert "a test file caused an event" in steps["watching"].sentence
    assert not os.path.lexists(place)


def test_a_link_is_no_canary(drop: Drop, secret: Path) -> None:
    drop.write("a.csv")
    (drop.folder / ".mounted").symlink_to(secret)
    with pytest.raises(SourceUnavailable, match="canary"):
        list(drop.connector(canary=".mounted").partitions())


def test_an_archived_copy_that_is_exchanged_is_not_traced(drop: Drop, secret: Path) -> None:
    drop.write("a.csv")
    connector = drop.connector(after="archive", archive="drop/done")
    list(connector.partitions())
    batch = list(connector.read(Partition(name="a.csv"), None))[-1]
    connector.acknowledge(Partition(name="a.csv"), batch.cursor, acknowledgement())
    assert [found.records.rows() for found in connector.read_copy("a.csv", batch.facts)] == [[("A", "0.10")]]
    (drop.folder / "done").rename(drop.base / "moved")
    (drop.folder / "done").symlink_to(drop.base / "moved")
    assert list(connector.read_copy("a.csv", batch.facts)) == []


@pytest.fixture(params=["here", "elsewhere"])
def archive(request: pytest.FixtureRequest, drop: Drop) -> Iterator[Path]:
    if request.param == "here":
        yield drop.done
        return
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == drop.folder.stat().st_dev:
        pytest.skip("this machine has no second file system at /dev/shm")
    with tempfile.TemporaryDirectory(dir=memory, prefix="ingestd-test-") as name:
        yield Path(name)


@pytest.mark.parametrize(
    ("mode", "umask", "others"), [(0o600, 0o022, 0o600), (0o640, 0o027, 0o640), (0o666, 0o022, 0o644)]
)
def test_permissions_in_the_archive_are_those_of_the_file_or_narrower(
    drop: Drop, archive: Path, mode: int, umask: int, others: int
) -> None:
    """Not the copy on another file system, not the receipt, and not the rejected rows."""
    former = os.umask(umask)
    try:
        drop.write("a.csv").chmod(mode)
        connector = drop.connector(after="archive", archive=str(archive))
        assert dispose(connector, rejecting()) == ""
        drop.write("b.csv", "a,a\n1,2\n").chmod(mode)
        list(connector.partitions())
        with pytest.raises(SourceBroken):
            list(connector.read(Partition(name="b.csv"), None))
        connector.failed(Partition(name="b.csv"), "It is unreadable.")
    finally:
        os.umask(former)
    modes = {
        str(path.relative_to(archive)): path.stat().st_mode & 0o777 for path in archive.rglob("*") if path.is_file()
    }
    is_moved = archive == drop.done
    assert modes == {
        "a.csv": mode if is_moved else others,
        "a.csv.receipt.json": others,
        "rejected/a.csv.rejected.csv": others,
        "failed/b.csv": mode if is_moved else others,
        "failed/b.csv.reason.txt": others,
    }


def test_the_group_of_a_copy_is_that_of_the_file_or_none(
    drop: Drop, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid():
        pytest.skip("only root can give a file to a group that it is no member of")
    for number, is_member in enumerate((True, False)):
        os.chown(drop.write("a.csv", f"part,mass\nA,{number}\n"), -1, 65534)
        (drop.folder / "a.csv").chmod(0o640)

        def refused(*_: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        if not is_member:
            monkeypatch.setattr(os, "fchown", refused)
        assert dispose(drop.connector(after="archive", archive=str(archive)), rejecting()) == ""
        status = (archive / ("a~2.csv.receipt.json" if number else "a.csv.receipt.json")).stat()
        if is_member:
            assert (status.st_mode & 0o777, status.st_gid) == (0o640, 65534)
        else:
            assert (status.st_mode & 0o777, status.st_gid) == (0o600, os.getegid())
