"""A file that took the place of another file with its name, inode, size and time, as when an archive is unpacked again."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.directory import DirectoryConnector, DirectoryOptions
from connectors.file import FileConnector, FileOptions
from connectors.files import identity
from connectors.files.identity import Identity
from connectors.log import LogConnector, LogOptions
from connectors.mounts import has_change_time
from ingestd.intake.lookup_files import _signature
from ingestd.sdk import Batch, Connector, Cursor, Partition, SourceContext
from ingestd.sdk.testing import acknowledgement

NOW = 4_000_000_000.0
HEADER = "part,mass\n"


def replace(path: Path, text: str) -> None:
    """Give a file other content; inode, size and time of the last write stay."""
    before = path.stat()
    with path.open("r+") as file:
        file.write(text)
    os.utime(path, ns=(before.st_mtime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (before.st_ino, before.st_size, before.st_mtime_ns)


def directory(base: Path, **options: Any) -> DirectoryConnector:
    settings = DirectoryOptions.model_validate({"path": ".", "settle_seconds": 0} | options)
    return DirectoryConnector(settings, SourceContext(pipeline="test", base=base, now=lambda: NOW))


def file(base: Path) -> FileConnector:
    settings = FileOptions.model_validate({"path": "a.csv", "settle_seconds": 0})
    return FileConnector(settings, SourceContext(pipeline="test", base=base, now=lambda: NOW))


def log(base: Path) -> LogConnector:
    settings = LogOptions.model_validate({"path": ".", "pattern": "*.csv"})
    return LogConnector(settings, SourceContext(pipeline="test", base=base, now=lambda: NOW))


def scan(connector: Connector, cursor: Cursor | None) -> tuple[list[tuple[str, ...]], Cursor | None]:
    """Return what a scan finds, and the cursor after it."""
    rows: list[tuple[str, ...]] = []
    for partition in connector.partitions():
        for batch in connector.read(Partition(name=partition.name, snapshot=partition.snapshot), cursor):
            assert isinstance(batch, Batch)
            rows += batch.records.rows()
            cursor = batch.cursor
    return rows, cursor


@pytest.fixture(params=["change time", "no change time"])
def file_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have files with a time of each change, or without one, as on FAT or sshfs."""
    if request.param == "no change time":
        status = Identity.from_status
        monkeypatch.setattr(Identity, "from_status", lambda found: status(found)._replace(ctime_ns=0))
        monkeypatch.setattr(identity, "has_change_time", lambda _: False)
    return str(request.param)


@pytest.mark.usefixtures("file_system")
@pytest.mark.parametrize("open_connector", [directory, file, log])
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_replaced_file_is_read(
    tmp_path: Path, open_connector: Callable[[Path], Connector], is_restarted: bool
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{HEADER}A,21.00\n")
    connector = open_connector(tmp_path)
    rows, cursor = scan(connector, None)
    assert rows == [("A", "21.00")]
    assert scan(connector, cursor)[0] == []
    replace(path, f"{HEADER}A,22.00\n")
    if is_restarted:
        connector = open_connector(tmp_path)
    found = [row for _ in range(2) for row in scan(connector, cursor)[0]][:1]
    assert found == [("A", "22.00")]


@pytest.mark.usefixtures("file_system")
def test_a_file_that_is_replaced_before_its_acknowledgement_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{HEADER}A,21.00\n")
    connector = directory(tmp_path, after="delete")
    _, cursor = scan(connector, None)
    assert cursor is not None
    replace(path, f"{HEADER}A,22.00\n")
    connector.acknowledge(Partition(name="a.csv"), cursor, acknowledgement())
    assert path.exists()
    rows, cursor = scan(connector, cursor)
    assert rows == [("A", "22.00")]
    assert cursor is not None
    connector.acknowledge(Partition(name="a.csv"), cursor, acknowledgement())
    assert not path.exists()


def test_changed_permissions_cause_no_second_reading_of_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{HEADER}A,21.00\n")
    connector = directory(tmp_path)
    _, cursor = scan(connector, None)
    path.chmod(0o640)
    rows, after = scan(connector, cursor)
    assert rows == []
    assert after != cursor
    assert scan(connector, after) == ([], after)


def test_a_scan_compares_a_bounded_number_of_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_system: str
) -> None:
    monkeypatch.setattr("connectors.directory.folder_state._COMPARED_BYTES", 40)
    for name in "abcd":
        (tmp_path / f"{name}.csv").write_text(f"{HEADER}A,21.00\n")
    connector = directory(tmp_path)
    cursors: dict[str, Cursor] = {}

    def look() -> list[str]:
        read = []
        for partition in connector.partitions():
            for batch in connector.read(partition, cursors.get(partition.name)):
                cursors[partition.name] = batch.cursor
                read.append(partition.name)
        return read

    assert look() == ["a.csv", "b.csv", "c.csv", "d.csv"]
    assert look() == []
    for name in "abcd":
        replace(tmp_path / f"{name}.csv", f"{HEADER}A,22.00\n")
    found = [look() for _ in range(4)]
    assert sorted(name for names in found for name in names) == ["a.csv", "b.csv", "c.csv", "d.csv"]
    assert max(map(len, found)) == (2 if file_system == "no change time" else 4)


def test_a_replaced_table_of_a_lookup_is_read(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text("key,value\n1,a\n")
    before = _signature(path)
    replace(path, "key,value\n1,b\n")
    assert _signature(path) != before


def test_a_file_system_without_change_times_is_recognised(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "21 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n22 21 8:17 / /mnt/stick rw - vfat /dev/sdb1 rw\n"
        "30 21 0:50 / /mnt/there rw - fuse.sshfs user@host: rw\nnonsense\n"
    )
    assert has_change_time(os.makedev(8, 1), table)
    assert not has_change_time(os.makedev(8, 17), table)
    assert not has_change_time(os.makedev(0, 50), table)
    assert has_change_time(0, table)
    assert has_change_time(os.makedev(8, 1), tmp_path / "absent")
