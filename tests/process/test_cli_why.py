"""`ingestd why`: the sentence for each thing that can become of a file, with a daemon and without one."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.document_server import DocumentServer
from tests.support.engineering_folder import Folder
from tests.support.golden_output import check_golden

GOOD = "part,mass\nA,0.10\nB,2\n"


@pytest.fixture
def server() -> Iterator[DocumentServer]:
    with DocumentServer() as running:
        running.workspace("Bench")
        yield running


def ownerless(text: str, folder: Folder) -> str:
    """Without what differs from machine to machine."""
    return text.replace(f" of {getpass.getuser()}'s", " of <owner>'s").replace(str(folder.path), "<folder>")


def told(folder: Folder, *names: str) -> str:
    return ownerless("".join(folder.here("why", str(folder.drop / name)).stdout for name in names), folder)


def test_what_became_of_files_is_told_without_a_daemon(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path, server, after=", after: archive, archive: done, recursive: true")
    folder.write(GOOD)
    folder.write("part,mass\nC,1\nD\n", "bad-row.csv")
    assert folder.here("sync").returncode == 3
    folder.write(GOOD, "twin.csv")
    folder.write("mass\n1\n", "strange.csv")
    folder.write("part,mass\n", "photo.png")
    (folder.drop / "late.csv").write_text("")
    (folder.drop / ".hidden.csv").write_text(GOOD)
    (folder.drop / "link.csv").symlink_to("strange.csv")
    assert folder.here("sync").returncode == 3
    names = ["budget.csv", "bad-row.csv", "twin.csv", "strange.csv", "late.csv", "photo.png", ".hidden.csv", "link.csv"]
    check_golden("why", told(folder, *names))
    assert folder.here("why", "budget.csv").stdout == folder.here("why", str(tmp_path / "done" / "budget.csv")).stdout
    nobody = folder.here("why", "nothing.csv")
    assert (nobody.returncode, nobody.stdout) == (1, "")
    assert "knows 'nothing.csv'" in nobody.stderr


def test_what_a_file_waits_for_is_told_by_the_daemon(tmp_path: Path, server: DocumentServer) -> None:
    folder = Folder(tmp_path, server, after=", ready: [marker, sha256], canary: .mounted")
    (folder.drop / ".mounted").touch()
    folder.write(GOOD, "no-marker.csv")
    folder.write(GOOD, "no-checksum.csv")
    (folder.drop / "no-checksum.csv.done").touch()
    folder.write(GOOD, "other-checksum.csv")
    (folder.drop / "other-checksum.csv.done").touch()
    (folder.drop / "other-checksum.csv.sha256").write_text("0" * 64)
    with folder.daemon() as daemon:
        daemon.wait_for("partition_parked")
        names = ["no-marker.csv", "no-checksum.csv", "other-checksum.csv", "no-checksum.csv.done"]
        text = told(folder, *names)
        (folder.drop / ".mounted").unlink()
        check_golden("why-waiting", text + told(folder, "no-marker.csv"))
        assert daemon.stop() == 0
