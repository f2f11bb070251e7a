"""Folders and files that resist: nothing is lost, and what is in the way is said."""

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
from ingestd.sdk.testing import settlement
from tests.support.daemon_process import ROOT

Names = Callable[[DirectoryConnector], list[str]]
Read = Callable[..., list[Batch]]
NOBODY = 65534


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything, so it has to be somebody else."""
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every account may enter."""
    if os.geteuid():
        pytest.skip("only root can become somebody who may not")
    with tempfile.TemporaryDirectory(prefix="ingestd-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "drop").mkdir(mode=0o755)
        yield folder


def over(folder: Path, **options: Any) -> DirectoryConnector:
    settings = DirectoryOptions.model_validate({"path": "drop", "settle_seconds": 0} | options)
    return DirectoryConnector(settings, SourceContext(pipeline="test", base=folder, now=lambda: 4e9))


def test_a_file_that_may_not_be_read_is_parked_until_it_may(shared: Path, names_of: Names, read_all: Read) -> None:
    path = shared / "drop" / "a.csv"
    path.write_text("part,mass\nA,1\n")
    path.chmod(0o600)
    connector = over(shared)
    with as_nobody():
        assert names_of(connector) == ["a.csv"]
        with pytest.raises(SourceBroken, match=r"a\.csv can't be opened: Permission denied\. Allow ingestd's user"):
            read_all(connector, "a.csv")
        assert names_of(connector) == []
        assert "Permission denied" in (connector.explain("a.csv") or "")
    path.chmod(0o644)
    with as_nobody():
        assert names_of(connector) == ["a.csv"]
        assert read_all(connector, "a.csv")[0].records.height == 1


def test_a_folder_that_may_not_be_listed_is_away_and_a_sub_folder_is_refused(shared: Path, names_of: Names) -> None:
    (shared / "drop" / "secret").mkdir(mode=0o700)
    (shared / "drop" / "a.csv").write_text("part\nA\n")
    connector = over(shared, recursive=True)
    with as_nobody():
        assert names_of(connector) == ["a.csv"]
        assert "can't be listed: Permission denied" in (connector.explain("secret") or "")
    (shared / "drop").chmod(0o700)
    with (
        as_nobody(),
        pytest.raises(SourceUnavailable, match=r"can't be listed: Permission denied\. Create or mount it"),
    ):
        names_of(connector)


def test_a_folder_that_may_not_be_written_keeps_its_files_and_the_state(shared: Path, read_all: Read) -> None:
    (shared / "drop" / "a.csv").write_text("part\nA\n")
    (shared / "done").mkdir(mode=0o777)
    (shared / "done").chmod(0o777)
    connector = over(shared, after="archive", archive="done")
    with as_nobody():
        cursor = read_all(connector, "a.csv")[-1].cursor
        with pytest.raises(
            SourceUnavailable, match=r"a\.csv can't be archived in .*done: Permission denied\. It stays"
        ):
            connector.settled(Partition(name="a.csv"), cursor, settlement())
        assert read_all(connector, "a.csv", cursor) == []
        (watching,) = [step for step in connector.verify() if step.name == "watching"]
        assert "events could not be tried out (Permission denied)" in watching.sentence
    (shared / "drop").chmod(0o777)
    with as_nobody():
        connector.settled(Partition(name="a.csv"), cursor, settlement())
    assert (shared / "done" / "a.csv").exists()


READ_ONLY = """
import subprocess, sys
from pathlib import Path
from connectors.directory import DirectoryConnector, DirectoryOptions
from ingestd.sdk import Partition, SourceContext, SourceUnavailable
from ingestd.sdk.testing import settlement
base = Path(sys.argv[1])
subprocess.run(["mount", "--bind", base / "drop", base / "drop"], check=True)
subprocess.run(["mount", "-o", "remount,ro,bind", base / "drop"], check=True)
options = DirectoryOptions.model_validate({"path": "drop", "settle_seconds": 0, "after": sys.argv[2], "archive": "done"})
connector = DirectoryConnector(options, SourceContext(pipeline="t", base=base, now=lambda: 4e9))
(partition,) = connector.partitions()
cursor = list(connector.read(partition, None))[-1].cursor
try:
    connector.settled(partition, cursor, settlement())
except SourceUnavailable as error:
    print(str(error).replace(str(base), ""))
print(sorted(path.name for path in (base / "drop").iterdir()))
subprocess.run(["mount", "-o", "remount,rw,bind", base / "drop"], check=True)
connector.settled(partition, cursor, settlement())
print(sorted(path.name for path in (base / "drop").iterdir()))
"""


@pytest.mark.parametrize("after", ["archive", "delete"])
def test_a_read_only_mount_keeps_its_files_until_it_can_be_written(tmp_path: Path, after: str) -> None:
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "a.csv").write_text("part\nA\n")
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this account may not mount in a namespace of its own")
    command = ["unshare", "-m", sys.executable, "-c", READ_ONLY, str(tmp_path), after]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    told, before, afterwards = run.stdout.splitlines()
    assert told.startswith(
        "/drop/a.csv can't be moved: its folder can't be written to. It was read and is not read again"
    )
    assert (before, afterwards) == ("['a.csv']", "[]")


def test_a_hard_link_is_a_file_of_its_own_and_goes_alone(drop: Any, names_of: Names, read_all: Read) -> None:
    first = drop.write("a.csv")
    os.link(first, drop.folder / "b.csv")
    connector = drop.connector(after="archive", archive="done", receipt=False)
    assert sorted(names_of(connector)) == ["a.csv", "b.csv"]
    connector.settled(Partition(name="a.csv"), read_all(connector, "a.csv")[-1].cursor, settlement())
    assert [path.name for path in drop.folder.iterdir()] == ["b.csv"]
    assert read_all(connector, "b.csv")[0].records.height == 1


def test_without_its_canary_a_folder_is_away_and_a_settled_file_not_taken_for_gone(
    drop: Any, names_of: Names, read_all: Read
) -> None:
    canary = drop.write(".mounted", "")
    path = drop.write("a.csv")
    connector = drop.connector(canary=".mounted", after="archive", archive="done", receipt=False)
    assert names_of(connector) == ["a.csv"]
    cursor = read_all(connector, "a.csv")[-1].cursor
    away = drop.base / "away"
    drop.folder.rename(away)
    drop.folder.mkdir()  # what lies below the mount point
    for ask in (lambda: names_of(connector), lambda: connector.settled(Partition(name="a.csv"), cursor, settlement())):
        with pytest.raises(SourceUnavailable, match=r"does not hold \.mounted \(canary\)"):
            ask()
    assert "canary" in (connector.explain("a.csv") or "")
    (step,) = connector.verify()
    assert (step.name, step.outcome) == ("folder", "failed")
    drop.folder.rmdir()
    away.rename(drop.folder)
    assert canary.exists()
    connector.settled(Partition(name="a.csv"), cursor, settlement())
    assert not path.exists()
