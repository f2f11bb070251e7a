"""Many small files at once: stored in one transaction and archived together, and yet each on its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from msgspec.structs import replace

from connectors.beneath import Folder, RootedPath, system_calls
from connectors.directory import archiver, disposal
from connectors.directory.archiver import Archiver
from connectors.directory.disposal import Move, Note
from connectors.files.file_batches import open_file
from connectors.files.identity import Identity
from ingestd.core.errors import MirrorFull
from ingestd.core.mapping import Mapped, Mapping
from ingestd.intake.run import Run
from ingestd.sdk import SourceBroken, SourceUnavailable
from ingestd.telemetry.catalogue.intake import (
    AcknowledgementFailed,
    PartitionAcknowledged,
    PartitionRead,
    PartitionReadAgain,
)
from tests.support.file_flow import FileFlow

Open = Callable[..., FileFlow]

FILES = 12


def write_files(flow: FileFlow, count: int = FILES, value: str = "1") -> list[str]:
    """Write files that are read together, however slow the machine is."""
    flow.reader._clock = lambda: 0.0
    names = [f"f{number:02}.csv" for number in range(count)]
    for number, name in enumerate(names):
        flow.write(name, f"part,mass\nP{number},{value}\n")
    return names


def with_receipts(names: list[str]) -> list[str]:
    return sorted([*names, *(f"{name}.receipt.json" for name in names)])


def test_files_that_are_ready_together_are_stored_together(open_flow: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = open_flow()
    names = write_files(flow)
    batches: list[str] = []
    batch = flow.mirror.intake.batch

    def counted(name: str) -> Any:
        batches.append(name)
        return batch(name)

    monkeypatch.setattr(flow.mirror.intake, "batch", counted)
    flow.reader.read_pass()
    assert len(batches) == 1
    assert [event.partition for event in flow.events if isinstance(event, PartitionRead)] == names
    flow.pass_once()
    assert flow.files(flow.done) == with_receipts(names)
    assert [event.partition for event in flow.events if isinstance(event, PartitionAcknowledged)] == names
    assert flow.held == {f"P{number}": "1" for number in range(FILES)}


def test_a_bad_file_is_rejected_alone(open_flow: Open) -> None:
    flow = open_flow()
    names = write_files(flow)
    flow.write("f03.csv", "part,weight\nP3,1\n")  # the mapping rejects its header
    flow.write("f05.csv", "part,part\nP5,1\n")  # the connector can't read it
    report = flow.pass_once()
    flow.pass_once()
    assert sorted(sentence.split(":")[0] for sentence in report.rejected) == ["f03.csv", "f05.csv"]
    good = [name for name in names if name not in {"f03.csv", "f05.csv"}]
    assert [name for name in flow.files(flow.done) if not name.startswith("failed/")] == with_receipts(good)
    assert len(flow.held) == FILES - 2
    assert sorted(name for name, _ in flow.rejected()) == ["f03.csv", "f05.csv"]
    assert not flow.reader.read_pass().read, "a file that its mapping rejects is not read again until it changes"


def test_an_unforeseen_exception_undoes_no_other_file(open_flow: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = open_flow()
    names = write_files(flow)
    take = Run.take

    def fails(run: Run, batch: Any) -> Any:
        if batch.facts["file.name"] == names[4]:
            raise ZeroDivisionError
        return take(run, batch)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "take", fails)
        with pytest.raises(ZeroDivisionError):
            flow.reader.read_pass()
    others = [*names[:4], *names[5:]]
    assert [event.partition for event in flow.events if isinstance(event, PartitionRead)] == others
    flow.restart()
    assert len(flow.pass_once().read) == 1
    assert flow.files(flow.done) == with_receipts(names)


def test_a_file_that_cannot_be_mapped_keeps_no_other_file_of_its_batch_from_being_mapped(
    open_flow: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = open_flow()
    names = write_files(flow)
    apply = Mapping.apply

    def fails(mapping: Mapping, records: pl.DataFrame, *more: Any) -> Mapped:
        if "P4" in records["part"].to_list():
            raise ZeroDivisionError
        return apply(mapping, records, *more)

    monkeypatch.setattr(Mapping, "apply", fails)
    with pytest.raises(ZeroDivisionError):
        flow.reader.read_pass()
    others = [*names[:4], *names[5:]]
    assert [event.partition for event in flow.events if isinstance(event, PartitionRead)] == others


def test_nothing_is_reported_or_moved_if_the_state_file_fails(open_flow: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = open_flow()
    names = write_files(flow)
    flow.write("f05.csv", "part,part\nP5,1\n")
    finish, finished = flow.mirror.intake.finish_run, []

    def full(run: int, **more: Any) -> Any:
        finished.append(run)
        if len(finished) == FILES // 2:
            with flow.mirror._state.writing():
                raise MirrorFull("the disk is full")
        return finish(run, **more)

    with monkeypatch.context() as patched:
        patched.setattr(flow.mirror.intake, "finish_run", full)
        with pytest.raises(MirrorFull):
            flow.reader.read_pass()
    assert not flow.events
    assert flow.files(flow.drop) == names
    flow.pass_once()
    assert len(flow.held) == FILES - 1


def test_files_of_one_batch_that_name_the_same_keys_end_with_the_last_one(open_flow: Open) -> None:
    flow = open_flow(after="keep")
    for version in range(3):
        for number in range(FILES):
            path = flow.write(f"f{number:02}.csv", f"part,mass\nP1,{version}.{number}\nP{number % 3},{number}\n")
            modified = 1_000_000 + 100 * version + number
            os.utime(path, (modified, modified))
        flow.now += 10
        flow.pass_once()
        assert flow.held == {"P0": "9", "P1": f"{version}.11", "P2": "11"}


def test_a_file_of_a_batch_that_takes_a_key_from_another_file_is_read_again_as_a_whole(open_flow: Open) -> None:
    flow = open_flow(after="keep")
    flow.write("a.csv", "part,mass\nA,1\n")
    flow.pass_once()
    flow.write("b.csv", "part,mass\nB,2\n")
    flow.pass_once()
    flow.write("b.csv", "part,mass\nB,2\nA,10\n")
    flow.write("c.csv", "part,mass\nC,3\n")
    report = flow.pass_once()
    assert flow.held == {"A": "10", "B": "2", "C": "3"}
    assert [event.partition for event in flow.events if isinstance(event, PartitionReadAgain)] == ["b.csv"]
    assert len(report.read) == 2


def test_files_with_numbered_names_do_not_overwrite_each_other(open_flow: Open) -> None:
    """The archive has run.csv, so the new one becomes run~2.csv there: that is also the name of the other file."""
    flow = open_flow(receipt=False)
    flow.write("run.csv", "part,mass\nA,1\n")
    flow.pass_once()
    flow.write("run.csv", "part,mass\nB,2\n")
    flow.write("run~2.csv", "part,mass\nC,3\n")
    flow.pass_once()
    assert flow.files(flow.drop) == []
    texts = sorted((flow.done / name).read_text() for name in flow.files(flow.done))
    assert texts == [f"part,mass\n{part},{mass}\n" for part, mass in ("A1", "B2", "C3")]


def moves(folder: Path, done: Path, count: int = 4) -> list[Move]:
    found = []
    for number in range(count):
        path = folder / f"{number}.csv"
        path.write_text(f"content {number}")
        note = Note(
            path_for=lambda archived: archived.with_base(f"{archived.base}.txt"),
            content_for=lambda archived: archived.base.encode(),
        )
        identity = Identity.from_status(path.stat())
        place = RootedPath(folder, path.name)
        found.append(Move(path=place, folder=RootedPath(done), name=path.name, identity=identity, sha256="", note=note))
    return found


@pytest.mark.parametrize("has", ["renameat2", "links", "neither"])
def test_no_file_of_the_archive_is_overwritten_whatever_the_file_system_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has: str
) -> None:
    drop, done = tmp_path / "drop", tmp_path / "done"
    drop.mkdir()
    done.mkdir()
    (done / "1.csv").write_text("older")
    found = moves(drop, done)

    def refuses(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    if has != "renameat2":
        monkeypatch.setattr(system_calls, "_renameat2", lambda *_: False)
    if has == "neither":
        monkeypatch.setattr(os, "link", refuses)
    assert disposal.archive_together(found) == [True] * 4
    texts = {path.name: path.read_text() for path in done.glob("*.csv")}
    assert texts == {
        "0.csv": "content 0",
        "1.csv": "older",
        "1~2.csv": "content 1",
        "2.csv": "content 2",
        "3.csv": "content 3",
    }
    assert list(drop.iterdir()) == []


def test_a_file_to_which_a_crash_left_two_names_is_archived_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop, done = tmp_path / "drop", tmp_path / "done"
    drop.mkdir()
    done.mkdir()
    found = moves(drop, done)
    os.link(drop / "0.csv", done / "0.csv")
    found[0] = replace(found[0], identity=Identity.from_status((drop / "0.csv").stat()))  # as the next scan finds it
    (done / "0.csv.txt").write_text("0.csv")
    monkeypatch.setattr(system_calls, "_renameat2", lambda *_: False)
    assert disposal.archive_together(found) == [True] * 4
    assert list(drop.iterdir()) == []
    assert {path.name for path in done.glob("*.csv")} == {"0.csv", "1.csv", "2.csv", "3.csv"}


def test_a_file_that_cannot_be_moved_stays_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drop, done = tmp_path / "drop", tmp_path / "done"
    drop.mkdir()
    found = moves(drop, done)
    found[0].path.path.unlink()  # another program was faster
    move = Folder.move

    def fails(folder: Folder, base: str, target: Folder, target_base: str) -> None:
        if base == found[2].path.base:
            raise OSError(30, "Read-only file system")
        move(folder, base, target, target_base)

    monkeypatch.setattr(Folder, "move", fails)
    results = disposal.archive_together(found)
    assert [result if isinstance(result, bool) else type(result) for result in results] == [
        False,
        True,
        SourceUnavailable,
        True,
    ]
    assert sorted(path.name for path in drop.iterdir()) == ["2.csv"]
    assert sorted(path.name for path in done.iterdir()) == ["1.csv", "1.csv.txt", "3.csv", "3.csv.txt"]


def test_a_file_of_which_the_rejected_rows_cannot_be_written_stays_alone(
    open_flow: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = open_flow()
    names = write_files(flow)
    for name in names[3:6]:
        flow.write(name, f"part,mass\n,7\n{name},1\n")

    def fails(path: RootedPath, name: str) -> Any:
        if name == names[3]:
            raise OSError(5, "Input/output error")
        if name == names[4]:
            raise SourceBroken("It can't be opened.")
        return open_file(path, name)

    monkeypatch.setattr(archiver, "open_file", fails)
    flow.pass_once()
    assert flow.files(flow.drop) == names[3:5]
    sentences = [event.sentence for event in flow.events if isinstance(event, AcknowledgementFailed)]
    assert len(sentences) == 2
    assert not any("one by one" in sentence for sentence in sentences)


class Crash(BaseException):
    """Simulates the end of the process."""


STEPS = ["open", "close", "fsync", "rename", "unlink", "link", "mkdir", "lstat", "stat"]


def test_a_crash_at_any_step_moves_each_file_once_and_never_without_its_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept, crashed = 0, True
    while crashed:
        swept += 1
        drop, done = tmp_path / f"drop{swept}", tmp_path / f"done{swept}"
        drop.mkdir()
        found = moves(drop, done)
        with monkeypatch.context() as patched:
            crashed = crashes(lambda one=found: disposal.archive_together(one), swept, patched)  # type: ignore[misc]
        for move in found:
            assert move.path.path.exists() or (done / f"{move.name}.txt").exists(), f"step {swept}"
        disposal.archive_together(found)
        assert list(drop.iterdir()) == []
        expected = {f"{number}.csv": f"content {number}" for number in range(4)}
        notes = {f"{name}.txt": name for name in expected}
        assert {path.name: path.read_text() for path in done.iterdir()} == expected | notes, f"step {swept}"
    assert swept > 30


def crashes(call: Callable[[], object], at: int, patched: pytest.MonkeyPatch) -> bool:
    """Return whether the crash happened; False if there are fewer steps."""
    count = 0

    def crashing(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **more: Any) -> Any:
            nonlocal count
            count += 1
            if count >= at:  # nothing follows the end of a process
                raise Crash
            return real(*args, **more)

        return step

    for name in STEPS:
        patched.setattr(os, name, crashing(getattr(os, name)))
    for name in ("_openat2", "_renameat2"):
        patched.setattr(system_calls, name, crashing(getattr(system_calls, name)))
    try:
        call()
    except Crash:
        return True
    return False


def test_a_failure_of_the_common_acknowledgement_is_reported_and_each_file_is_moved_alone(
    open_flow: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = open_flow()
    names = write_files(flow)
    dispose = Archiver.dispose

    def fails(one: Archiver, files: Any) -> Any:
        if len(files) > 1:
            raise ZeroDivisionError("a bug")
        return dispose(one, files)

    monkeypatch.setattr(Archiver, "dispose", fails)
    flow.pass_once()
    assert flow.files(flow.done) == with_receipts(names)
    assert any("one by one: a bug" in str(event) for event in flow.events)
