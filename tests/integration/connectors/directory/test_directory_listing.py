"""Which files are read, and when."""

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from connectors.directory import DirectoryOptions, local_folder
from ingestd.core.claims import ClaimedFiles
from ingestd.sdk import Partition, SourceBroken, SourceUnavailable, Watches
from tests.support.watched_files import Drop, read_all, ready_names


def test_files_are_selected_by_pattern_oldest_first(drop: Drop) -> None:
    for age, name in enumerate(["c.csv", "b.ndjson", "a.txt", "a.jsonl"]):
        os.utime(drop.write(name), (1000 + age, 1000 + age))
    assert ready_names(drop.connector()) == ["c.csv", "b.ndjson", "a.jsonl"]
    assert ready_names(drop.connector(pattern="a.*")) == ["a.txt", "a.jsonl"]


def test_temporary_names_and_objects_that_are_no_files_are_ignored(drop: Drop) -> None:
    for name in [".a.csv", "~$a.csv", "a.csv.tmp", "a.part", "a.crdownload", "A.FILEPART"]:
        drop.write(name)
    (drop.folder / "folder.csv").mkdir()
    os.mkfifo(drop.folder / "pipe.csv")
    assert ready_names(drop.connector(pattern="*")) == []


def test_sub_folders_are_read_only_if_configured_and_the_archive_never(drop: Drop) -> None:
    for name in ["a.csv", "x/b.csv", "x/y/c.csv", ".hidden/d.csv", "done/e.csv"]:
        drop.write(name)
    archived = {"after": "archive", "archive": "drop/../drop/done"}
    assert sorted(ready_names(drop.connector(recursive=True, **archived))) == ["a.csv", "x/b.csv", "x/y/c.csv"]
    assert ready_names(drop.connector(**archived)) == ["a.csv"]
    assert ready_names(drop.connector(recursive=True, pattern="x/*.csv", **archived))[0].startswith("x/")


def test_a_link_that_leaves_the_folder_is_rejected_and_one_inside_is_read(drop: Drop) -> None:
    outside = drop.base / "secret.csv"
    outside.write_text("part\nX\n")
    drop.write("a.csv")
    (drop.folder / "out.csv").symlink_to(outside)
    (drop.folder / "in.csv").symlink_to("a.csv")
    connector = drop.connector()
    assert sorted(ready_names(connector)) == ["a.csv", "in.csv"]
    assert "leads out of the folder" in (connector.explain("out.csv") or "")
    with pytest.raises(SourceBroken, match="leads out of the folder"):
        read_all(connector, "out.csv")
    with pytest.raises(SourceBroken, match="leads out of the folder"):
        read_all(connector, "../secret.csv")
    assert ready_names(drop.connector(after="delete")) == ["a.csv"]


def test_a_name_that_is_not_utf8_is_skipped_and_reported(drop: Drop) -> None:
    (Path(os.fsdecode(os.fsencode(drop.folder) + b"/caf\xe9.csv"))).write_text("a\n1\n")
    connector = drop.connector()
    assert ready_names(connector) == []
    (refused,) = [step for step in connector.verify() if step.name == "refused"]
    assert r"caf\xe9.csv: its name is not UTF-8" in refused.sentence


def test_a_file_is_read_after_it_was_observed_to_be_stable(drop: Drop) -> None:
    connector = drop.connector(settle_seconds=2)
    assert ready_names(connector) == []
    path = drop.write("a.csv")
    assert ready_names(connector) == []
    assert connector.waiting() == 2
    drop.now += 1
    path.write_text("part,mass\nA,0.10\nB,1\n")
    assert ready_names(connector) == []
    assert "must be unchanged for 2.0 more seconds" in (connector.explain("a.csv") or "")
    drop.now += 2
    assert ready_names(connector) == ["a.csv"]
    assert connector.waiting() is None
    assert connector.rescan_seconds == 30
    assert isinstance(connector, Watches)


def test_a_file_that_grows_after_the_scan_waits_until_it_is_stable(drop: Drop) -> None:
    path = drop.write("a.csv")
    connector = drop.connector(settle_seconds=2)
    assert ready_names(connector) == ["a.csv"]
    path.write_text("part,mass\nA,0.10\nhalf a li")
    assert read_all(connector, "a.csv") == []
    assert ready_names(connector) == []
    path.write_text("part,mass\nA,0.10\nhalf a line,2\n")
    assert ready_names(connector) == []
    drop.now += 2
    assert ready_names(connector) == ["a.csv"]
    (batch,) = read_all(connector, "a.csv")
    assert batch.records.height == 2


def test_a_file_that_existed_before_the_start_is_read_immediately(drop: Drop) -> None:
    drop.write("a.csv")
    assert ready_names(drop.connector(settle_seconds=3600)) == ["a.csv"]


def test_a_missing_folder_is_unavailable_until_it_returns(drop: Drop) -> None:
    drop.folder.rmdir()
    connector = drop.connector()
    with pytest.raises(SourceUnavailable, match=r"drop can't be listed: No such file"):
        ready_names(connector)
    drop.folder.mkdir()
    drop.write("a.csv")
    assert ready_names(connector) == ["a.csv"]


def test_a_broken_file_is_read_again_only_after_a_change(drop: Drop) -> None:
    path = drop.write("a.csv", "a,a\n1,2\n")
    drop.write("b.csv")
    connector = drop.connector()
    with pytest.raises(SourceBroken, match=r"a\.csv: the header has more than one column 'a'"):
        read_all(connector, "a.csv")
    assert ready_names(connector) == ["b.csv"]
    assert "more than one column" in (connector.explain("a.csv") or "")
    path.write_text("a,b\n1,2\n")
    assert sorted(ready_names(connector)) == ["a.csv", "b.csv"]
    path.write_text("a,a\n1,2\n")
    assert sorted(ready_names(drop.connector())) == ["a.csv", "b.csv"]


def test_an_invalid_configuration_is_reported_in_one_sentence() -> None:
    with pytest.raises(ValidationError, match="needs a folder: set archive"):
        DirectoryOptions.model_validate({"path": "drop", "after": "archive"})
    with pytest.raises(ValidationError, match="another folder than path"):
        DirectoryOptions.model_validate({"path": "drop", "after": "archive", "archive": "drop/"})


def test_an_archive_that_is_the_same_folder_by_another_name_is_rejected(drop: Drop) -> None:
    (drop.base / "other").symlink_to(drop.folder)
    connector = drop.connector(after="archive", archive="other")
    with pytest.raises(SourceBroken, match=r"the folder .* itself"):
        ready_names(connector)
    assert "failed" in {step.outcome for step in connector.verify()}


def test_verify_reports_mistakes_and_the_files_found(drop: Drop) -> None:
    drop.write("a.csv")
    drop.write("b.csv", "")
    steps = {step.name: step for step in drop.connector(after="archive", archive="done").verify()}
    assert [step.outcome for step in steps.values()] == ["passed"] * 8
    assert "is watched by events" in steps["watching"].sentence
    assert "one file system" in steps["file system"].sentence
    assert "1 file;" in steps["files"].sentence
    (drop.base / "file").touch()
    steps = {step.name: step for step in drop.connector(after="archive", archive="file/done").verify()}
    assert steps["archive"].outcome == "failed"
    drop.folder.rename(drop.base / "away")
    (step,) = drop.connector().verify()
    assert (step.name, step.outcome) == ("folder", "failed")


def test_a_scan_opens_no_file(drop: Drop, monkeypatch: pytest.MonkeyPatch) -> None:
    drop.write("a.csv")
    monkeypatch.setattr(local_folder, "open_file", None)  # a call would be an error
    assert ready_names(drop.connector()) == ["a.csv"]


def test_events_and_new_folders_wake_the_reader(drop: Drop) -> None:
    import threading

    woken = threading.Event()
    connector = drop.connector()
    with connector.watch(woken.set):
        drop.write("a.csv")
        assert woken.wait(10)
        assert [p.name for p in connector.partitions()] == ["a.csv"]
    assert Partition(name="a.csv").snapshot


def test_a_file_that_was_read_before_a_restart_is_checked_immediately(drop: Drop) -> None:
    path = drop.write("a.csv")
    drop.write("b.csv")
    cursor = read_all(drop.connector(), "a.csv")[-1].cursor
    again = drop.connector()
    assert sorted(ready_names(again)) == ["a.csv", "b.csv"]
    assert read_all(again, "a.csv", cursor) == []
    assert ready_names(again) == ["b.csv"]
    again.reset()
    assert sorted(ready_names(again)) == ["a.csv", "b.csv"]
    assert read_all(again, "a.csv", cursor) == []
    path.write_text("part,mass\nX,2\n")
    assert "a.csv" in ready_names(again)


def test_patterns_ignore_case_unless_configured_otherwise(drop: Drop) -> None:
    for name in ("RUN01.CSV", "run02.csv", "Sub/RUN03.Csv"):
        drop.write(name)
    taken = {"recursive": True, "pattern": ["*.csv", "SUB/*.csv"]}
    assert sorted(ready_names(drop.connector(**taken))) == ["RUN01.CSV", "Sub/RUN03.Csv", "run02.csv"]
    exact = drop.connector(**taken, case_sensitive=True)
    assert ready_names(exact) == ["run02.csv"]
    (sentence,) = exact.notices()
    assert sentence.startswith("No pattern matches 2 files (")


def test_files_that_match_no_pattern_are_counted_without_companions_and_hidden_files(drop: Drop) -> None:
    for name in ("a.csv", "a.csv.done", ".hidden", "half.part", "b.bin", *(f"{number}.log" for number in range(7))):
        drop.write(name)
    connector = drop.connector(ready=["marker"])
    assert ready_names(connector) == ["a.csv"]
    (sentence,) = connector.notices()
    assert sentence.startswith("No pattern matches 8 files (")
    assert "and 3 more)" in sentence


def test_many_patterns_are_reported_in_a_short_form(drop: Drop) -> None:
    drop.write("a.csv")
    for pattern, words in (
        (
            [f"run{number}*.csv" for number in range(80)],
            "Matching run0*.csv, run1*.csv, run2*.csv, run3*.csv, run4*.csv and 75 more: 0 files;",
        ),
        ("*.csv", "Matching *.csv: 1 file;"),
    ):
        (step,) = [step for step in drop.connector(pattern=pattern).verify() if step.name == "files"]
        assert words in step.sentence


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("**/*.csv", ["a.csv", "x/b.csv", "x/y/c.csv"]),
        ("x/**/*.csv", ["x/b.csv", "x/y/c.csv"]),
        ("**/y/**/*.csv", ["x/y/c.csv"]),
        ("**/x/*.csv", ["x/b.csv", "x/y/c.csv"]),
    ],
)
def test_two_asterisks_match_any_number_of_folders(drop: Drop, pattern: str, found: list[str]) -> None:
    for name in ("a.csv", "x/b.csv", "x/y/c.csv", "x/d.txt"):
        drop.write(name)
    connector = drop.connector(pattern=pattern, recursive=True)
    assert sorted(ready_names(connector)) == found
    (claim,) = type(connector).claims(connector.options, drop.base)
    files = ClaimedFiles([("test", claim)])
    assert [
        name for name in ("a.csv", "x/b.csv", "x/y/c.csv") if files.readers(str(drop.folder.resolve() / name))
    ] == found


def test_files_of_the_system_and_of_editors_are_never_read_nor_counted(drop: Drop) -> None:
    ignored = (
        "desktop.ini", "Thumbs.db", "ehthumbs.db", ".DS_Store", "._a.csv", "~$a.xlsx", ".~lock.a.ods#", "a.csv.crdownload",
        "a.csv.part",
        "a.csv.partial", "a.csv.download", "a.csv~", "#a.csv#", ".a.csv.swp", "a.csv.tmp", "Icon\r",
        "$RECYCLE.BIN/$R1.csv", "System Volume Information/a.csv", "lost+found/a.csv", "@eaDir/a.csv", "#recycle/a.csv",
        "__MACOSX/a.csv",
    )  # fmt: skip
    for name in (*ignored, "run~1.csv", "partial.csv", "x/recycled.csv"):
        drop.write(name)
    connector = drop.connector(pattern="*", format="csv", recursive=True)
    assert sorted(ready_names(connector)) == ["partial.csv", "run~1.csv", "x/recycled.csv"]
    assert list(connector.notices()) == []
    assert "hidden, incomplete or system file" in str(connector.explain("desktop.ini"))


def test_a_link_to_a_folder_is_reported(drop: Drop) -> None:
    drop.write("x/a.csv")
    (drop.folder / "y").symlink_to("x")
    (drop.folder / "itself").symlink_to("itself")
    connector = drop.connector(after="keep", recursive=True)
    assert ready_names(connector) == ["x/a.csv"]
    assert ["y" in notice and "a link to a folder" in notice for notice in connector.notices()] == [True]
