"""Inaccessible folders and files: nothing is lost, and the reason is reported."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from connectors.directory import DirectoryConnector, DirectoryOptions
from ingestd.sdk import Batch, Partition, SourceBroken, SourceContext, SourceUnavailable
from ingestd.sdk.testing import acknowledgement
from tests.support.daemon_process import ROOT
from tests.support.watched_files import Drop, read_all, ready_names

OTHER_USER = 65534


@contextmanager
def as_other_user() -> Iterator[None]:
    """Run as another account, because root may read everything."""
    os.seteuid(OTHER_USER)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def shared() -> Iterator[Path]:
    """Return a folder that every account may enter."""
    if os.geteuid():
        pytest.skip("only root can switch to an account without permission")
    with tempfile.TemporaryDirectory(prefix="ingestd-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "drop").mkdir(mode=0o755)
        yield folder


def over(folder: Path, **options: Any) -> DirectoryConnector:
    settings = DirectoryOptions.model_validate({"path": "drop", "settle_seconds": 0} | options)
    return DirectoryConnector(settings, SourceContext(pipeline="test", base=folder, now=lambda: 4e9))


def test_an_unreadable_file_is_rejected_until_it_is_readable(shared: Path) -> None:
    path = shared / "drop" / "a.csv"
    path.write_text("part,mass\nA,1\n")
    path.chmod(0o600)
    connector = over(shared)
    with as_other_user():
        assert ready_names(connector) == ["a.csv"]
        with pytest.raises(SourceBroken, match=r"a\.csv can't be opened: Permission denied\. Allow ingestd's user"):
            read_all(connector, "a.csv")
        assert ready_names(connector) == []
        assert "Permission denied" in (connector.explain("a.csv") or "")
    path.chmod(0o644)
    with as_other_user():
        assert ready_names(connector) == ["a.csv"]
        assert read_all(connector, "a.csv")[0].records.height == 1


def test_a_folder_without_permission_to_list_is_unavailable_and_such_a_sub_folder_is_rejected(shared: Path) -> None:
    (shared / "drop" / "secret").mkdir(mode=0o700)
    (shared / "drop" / "a.csv").write_text("part\nA\n")
    connector = over(shared, recursive=True)
    with as_other_user():
        assert ready_names(connector) == ["a.csv"]
        assert "can't be listed: Permission denied" in (connector.explain("secret") or "")
    (shared / "drop").chmod(0o700)
    with (
        as_other_user(),
        pytest.raises(SourceUnavailable, match=r"can't be listed: Permission denied\. Allow ingestd's user"),
    ):
        ready_names(connector)


def test_a_folder_without_write_permission_keeps_its_files_and_the_state(shared: Path) -> None:
    (shared / "drop" / "a.csv").write_text("part\nA\n")
    (shared / "done").mkdir(mode=0o777)
    (shared / "done").chmod(0o777)
    connector = over(shared, after="archive", archive="done")
    with as_other_user():
        cursor = read_all(connector, "a.csv")[-1].cursor
        with pytest.raises(
            SourceUnavailable, match=r"a\.csv can't be archived in .*done: Permission denied\. Allow.* It stays"
        ):
            connector.acknowledge(Partition(name="a.csv"), cursor, acknowledgement())
        assert read_all(connector, "a.csv", cursor) == []
        (watching,) = [step for step in connector.verify() if step.name == "watching"]
        assert "events could not be tested (Permission denied)" in watching.sentence
    (shared / "drop").chmod(0o777)
    with as_other_user():
        connector.acknowledge(Partition(name="a.csv"), cursor, acknowledgement())
    assert (shared / "done" / "a.csv").exists()


READ_ONLY = """
import subprocess, sys
from pathlib import Path
from connectors.directory import DirectoryConnector, DirectoryOptions
from ingestd.sdk import Partition, SourceContext, SourceUnavailable
from ingestd.sdk.testing import acknowledgement
base = Path(sys.argv[1])
for after in ("archive", "delete"):
    (base / "drop" / "a.csv").write_text("part\\nA\\n")
    subprocess.run(["mount", "--bind", base / "drop", base / "drop"], check=True)
    subprocess.run(["mount", "-o", "remount,ro,bind", base / "drop"], check=True)
    options = DirectoryOptions.model_validate({"path": "drop", "settle_seconds": 0, "after": after, "archive": "done"})
    connector = DirectoryConnector(options, SourceContext(pipeline="t", base=base, now=lambda: 4e9))
    (partition,) = connector.partitions()
    cursor = list(connector.read(partition, None))[-1].cursor
    try:
        connector.acknowledge(partition, cursor, acknowledgement())
    except SourceUnavailable as error:
        print(str(error).replace(str(base), ""))
    print(sorted(path.name for path in (base / "drop").iterdir()))
    subprocess.run(["mount", "-o", "remount,rw,bind", base / "drop"], check=True)
    connector.acknowledge(partition, cursor, acknowledgement())
    print(sorted(path.name for path in (base / "drop").iterdir()))
"""


def test_a_read_only_mount_keeps_its_files_until_it_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "drop").mkdir()
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this account may not mount in a private namespace")
    command = ["unshare", "-m", sys.executable, "-c", READ_ONLY, str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    for reported, before, afterwards in (lines[:3], lines[3:]):
        assert reported.startswith(
            "/drop/a.csv can't be moved: its folder can't be written to. The file was read and is not read again"
        )
        assert (before, afterwards) == ("['a.csv']", "[]")


def test_a_hard_link_is_a_separate_file_and_is_archived_alone(drop: Drop) -> None:
    first = drop.write("a.csv")
    os.link(first, drop.folder / "b.csv")
    connector = drop.connector(after="archive", archive="done", receipt=False)
    assert sorted(ready_names(connector)) == ["a.csv", "b.csv"]
    connector.acknowledge(Partition(name="a.csv"), read_all(connector, "a.csv")[-1].cursor, acknowledgement())
    assert [path.name for path in drop.folder.iterdir()] == ["b.csv"]
    assert ready_names(connector) == ["b.csv"]
    assert read_all(connector, "b.csv")[0].records.height == 1


def test_without_its_canary_a_folder_is_unavailable_and_an_acknowledged_file_is_not_removed(drop: Drop) -> None:
    canary = drop.write(".mounted", "")
    path = drop.write("a.csv")
    connector = drop.connector(canary=".mounted", after="archive", archive="done", receipt=False)
    assert ready_names(connector) == ["a.csv"]
    cursor = read_all(connector, "a.csv")[-1].cursor
    away = drop.base / "away"
    drop.folder.rename(away)
    drop.folder.mkdir()  # the folder below the mount point
    for ask in (
        lambda: ready_names(connector),
        lambda: connector.acknowledge(Partition(name="a.csv"), cursor, acknowledgement()),
    ):
        with pytest.raises(SourceUnavailable, match=r"does not hold \.mounted \(canary\)"):
            ask()
    assert "canary" in (connector.explain("a.csv") or "")
    (step,) = connector.verify()
    assert (step.name, step.outcome) == ("folder", "failed")
    drop.folder.rmdir()
    away.rename(drop.folder)
    assert canary.exists()
    connector.acknowledge(Partition(name="a.csv"), cursor, acknowledgement())
    assert not path.exists()


def test_a_link_to_itself_is_rejected_and_other_files_are_read(drop: Drop) -> None:
    drop.write("a.csv")
    (drop.folder / "loop.csv").symlink_to("loop.csv")
    (drop.folder / "one.csv").symlink_to("two.csv")
    (drop.folder / "two.csv").symlink_to("one.csv")
    connector = drop.connector()
    with connector.watch(lambda: None):
        assert ready_names(connector) == ["a.csv"]
    assert "its status can't be read: Too many levels of symbolic links" in str(connector.explain("loop.csv"))
    assert connector.locate(drop.folder / "loop.csv") == "loop.csv"
    (refused,) = [step for step in connector.verify() if step.name == "refused"]
    assert "3 are skipped" in refused.sentence


def test_a_folder_that_is_a_link_to_itself_is_unavailable(drop: Drop) -> None:
    drop.folder.rmdir()
    drop.folder.symlink_to("drop")
    connector = drop.connector(after="archive", archive="done")
    for ask in asked(connector):
        assert "Too many levels of symbolic links" in ask()


def asked(connector: DirectoryConnector) -> list[Callable[[], str]]:
    """Return the message of every method of a connector that lists or reads files."""

    def raised(call: Callable[[], object]) -> Callable[[], str]:
        def ask() -> str:
            with pytest.raises(SourceUnavailable) as error:
                call()
            return str(error.value)

        return ask

    def read() -> list[Batch]:
        return list(connector.read(Partition(name="a.csv"), None))

    def watched() -> list[Partition]:
        with connector.watch(lambda: None):
            return list(connector.partitions())

    return [
        raised(lambda: list(connector.partitions())),
        raised(watched),
        raised(read),
        raised(lambda: connector.acknowledge(Partition(name="a.csv"), CURSOR, acknowledgement())),
        lambda: connector.explain("a.csv") or "",
        lambda: next(iter(connector.verify())).sentence,
    ]


CURSOR = {"device": 1, "inode": 1, "size": 1, "mtime_ns": 1, "sha256": ""}


def test_a_folder_below_an_inaccessible_one_is_unavailable_at_every_call(shared: Path) -> None:
    (shared / "drop" / "in").mkdir()
    (shared / "drop" / "in" / "a.csv").write_text("part\nA\n")
    for options in ({}, {"canary": ".mounted"}, {"after": "archive", "archive": "drop/done"}):
        connector = over(shared, path="drop/in", **options)
        (shared / "drop").chmod(0o700)
        with as_other_user():
            for ask in asked(connector):
                assert "Permission denied. Allow ingestd's user" in ask()
            assert connector.locate(shared / "drop" / "in" / "a.csv") == "a.csv"
        (shared / "drop").chmod(0o755)
        assert connector.waiting() is None


def test_a_folder_with_a_file_or_a_too_long_name_in_its_path_is_unavailable(drop: Drop) -> None:
    drop.write("file")
    for path, words in (
        ("drop/file/in", "Not a directory. A part of its path is not a folder"),
        ("drop/" + "x" * 256, "File name too long. Its path is longer"),
    ):
        for ask in asked(drop.connector(path=path)):
            assert words in ask()


DEAD_MOUNT = """
import ctypes, os, sys
from pathlib import Path
from connectors.directory import DirectoryConnector, DirectoryOptions
from ingestd.sdk import SourceContext
from tests.integration.connectors.directory.test_inaccessible_folders import asked
base = Path(sys.argv[1])
context = SourceContext(pipeline="t", base=base, now=lambda: 4e9)
options = {"path": "drop", "settle_seconds": 0, "recursive": True, "after": "archive", "archive": "done"}
libc = ctypes.CDLL(None, use_errno=True)
def connector_over(folder):
    connector = DirectoryConnector(DirectoryOptions.model_validate(options), context)
    assert [partition.name for partition in connector.partitions()] == ["a.csv", "sub/b.csv"]
    fuse = os.open("/dev/fuse", os.O_RDWR)
    settings = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"sshfs", os.fsencode(base / folder), b"fuse.sshfs", 0, settings):
        raise OSError(ctypes.get_errno(), "no mount")
    os.close(fuse)  # as when the process that served the mount was killed
    return connector
def unmount(folder):
    if libc.umount2(os.fsencode(base / folder), 2):
        raise OSError(ctypes.get_errno(), "still mounted")
connector = connector_over("done")
print(next(step.sentence for step in connector.verify() if step.name == "archive"))
unmount("done")
connector = connector_over("drop/sub")
print(next(found := connector.partitions()).name)
for ask in asked(connector)[:2]:
    print(ask())
print(connector.explain("a.csv"))
unmount("drop/sub")
for ask in asked(connector_over("drop")):
    print(ask())
"""
DEAD = (
    "Transport endpoint is not connected. Its file system does not respond: check the disk or the server, and mount it"
)


def test_what_is_on_a_dead_mount_is_unavailable_and_the_rest_is_read(tmp_path: Path) -> None:
    for path in ("drop/sub", "done"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "drop" / "a.csv").write_text("part\nA\n")
    (tmp_path / "drop" / "sub" / "b.csv").write_text("part\nB\n")
    if (
        not os.access("/dev/fuse", os.R_OK | os.W_OK)
        or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("this account may not mount in a private namespace, or there is no FUSE")
    command = ["unshare", "-m", sys.executable, "-c", DEAD_MOUNT, str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    archive, first, listed, watched, explained, *of_the_folder = run.stdout.splitlines()
    assert f"The archive {tmp_path}/done can't be written: {DEAD}" in archive
    assert first == "a.csv"
    assert f"{tmp_path}/drop/sub can't be used: {DEAD}" in listed
    assert listed == watched
    assert "is read next" in explained
    assert [DEAD in sentence for sentence in of_the_folder] == [True] * 6
