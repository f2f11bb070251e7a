"""Every kind of log rotation, and the message if a rotation cannot be followed."""

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.log import rotation
from tests.support.watched_files import Bench, Reading

HEADER = "t,value\n"


def packed(path: Path) -> Path:
    """Compress as gzip does, which keeps the time of the last write."""
    target = path.with_name(f"{path.name}.gz")
    target.write_bytes(gzip.compress(path.read_bytes()))
    os.utime(target, ns=(path.stat().st_mtime_ns, path.stat().st_mtime_ns))
    path.unlink()
    return target


def values(records: list[tuple[Any, ...]]) -> list[Any]:
    return [record[1] for record in records]


@pytest.fixture(params=["running", "restarted"])
def connectors(request: pytest.FixtureRequest, bench: Bench) -> Callable[[], Any]:
    """Return the connector of the next reading: always the same one, or a new one without memory."""
    same = bench.connector()
    return lambda: same if request.param == "running" else bench.connector()


def test_a_renamed_file_is_read_to_its_end_and_then_the_new_one(bench: Bench, connectors: Callable[[], Any]) -> None:
    run = Reading()
    path = bench.append(HEADER + "0,a\n")
    assert values(run.look(connectors())) == ["0"]
    bench.append("1,b\n")
    path.rename(bench.folder / "run.csv.1")
    assert run.look(connectors()) == [(3, "1", "b")]  # there is no new one yet
    bench.append(HEADER + "3,d\n")
    bench.append("2,c\n", "run.csv.1")  # the writer still had it open
    assert run.look(connectors()) == [(4, "2", "c"), (6, "3", "d")]
    assert run.batches[-2].facts["file.read_from"] == "run.csv.1"
    assert run.batches[-2].facts["file.name"] == "run.csv"
    assert run.look(connectors()) == []
    assert bench.reported == []


def test_a_file_with_an_unexpected_new_name_is_found_by_its_inode(bench: Bench, connectors: Callable[[], Any]) -> None:
    run = Reading()
    path = bench.append(HEADER + "0,a\n")
    run.look(connectors())
    bench.append("1,b\n")
    path.rename(bench.folder / "old of monday.txt")
    bench.append(HEADER + "2,c\n")
    assert values(run.look(connectors())) == ["1", "2"]


def test_unobserved_rotations_are_read_in_the_order_of_writing(bench: Bench, connectors: Callable[[], Any]) -> None:
    run = Reading()
    bench.append(HEADER + "0,a\n")
    run.look(connectors())
    bench.append("1,b\n")
    for number in range(2, 6):
        for older in range(number, 0, -1):
            if (path := bench.folder / f"run.csv.{older}").exists():
                path.rename(bench.folder / f"run.csv.{older + 1}")
        (bench.folder / "run.csv").rename(bench.folder / "run.csv.1")
        bench.append(HEADER + f"{number},x\n")
    packed(bench.folder / "run.csv.3")
    packed(bench.folder / "run.csv.4")
    assert values(run.look(connectors())) == ["1", "2", "3", "4", "5"]
    assert run.look(connectors()) == []
    assert values(Reading().look(bench.connector())) == ["0", "1", "2", "3", "4", "5"]


def test_reading_continues_in_the_copy_of_a_truncated_file(bench: Bench, connectors: Callable[[], Any]) -> None:
    run = Reading()
    path = bench.append(HEADER + "0,a\n")
    run.look(connectors())
    bench.append("1,b\n")
    shutil.copy(path, bench.folder / "run.csv.1")
    assert values(run.look(connectors())) == ["1"]  # from the original, which still exists
    bench.append("2,c\n")
    shutil.copy(path, bench.folder / "run.csv.1")
    os.truncate(path, 0)
    assert values(run.look(connectors())) == ["2"]
    bench.append(HEADER + "3,d\n4,e\n5,f\n6,g\n7,h\n")  # longer than before
    assert values(run.look(connectors())) == ["3", "4", "5", "6", "7"]
    assert run.look(connectors()) == []
    assert bench.reported == []


def test_a_truncated_file_that_is_longer_at_the_next_reading_is_recognised_as_new(
    bench: Bench, connectors: Callable[[], Any]
) -> None:
    run = Reading()
    path = bench.append(HEADER + "0,a\n1,b\n")
    run.look(connectors())
    shutil.copy(path, bench.folder / "run.csv.1")
    os.truncate(path, 0)
    bench.append(HEADER + "2,c\n3,d\n4,e\n")
    assert values(run.look(connectors())) == ["2", "3", "4"]


def test_a_copy_without_the_last_lines_loses_nothing(bench: Bench, connectors: Callable[[], Any]) -> None:
    run = Reading()
    path = bench.append(HEADER + "0,a\n")
    run.look(connectors())
    bench.append("1,b\n")
    run.look(connectors())
    (bench.folder / "run.csv.1").write_bytes(path.read_bytes())
    bench.append("2,c\n")
    assert values(run.look(connectors())) == ["2"]  # faster than the rotation that truncates it now
    os.truncate(path, 0)
    assert values(run.look(connectors())) in ([], ["1"])  # at most the last lines of the copy are repeated
    bench.append(HEADER + "3,d\n")
    assert values(run.look(connectors())) == ["3"]


def test_a_file_that_was_compressed_before_its_end_was_read_is_read_completely(
    bench: Bench, connectors: Callable[[], Any]
) -> None:
    run = Reading()
    path = bench.append(HEADER + "0,a\n1,b\n")
    run.look(connectors())
    bench.append("2,c\n3,without end")
    packed(path.rename(bench.folder / "run.csv-20261121"))
    bench.append(HEADER + "4,d\n")
    assert values(run.look(connectors())) == ["2", "3", "4"]
    assert run.look(connectors()) == []
    (bench.folder / "run.csv-20261121.gz").rename(bench.folder / "run.csv-2026.gz")
    assert run.look(connectors()) == []
    assert [sentence.partition(":")[2][:32] for sentence in bench.reported] == [" Its last line has no line end, "]


def test_files_with_the_same_beginning_are_distinguished(bench: Bench, connectors: Callable[[], Any]) -> None:
    run = Reading()
    path = bench.append(HEADER)
    assert run.look(connectors()) == []
    path.rename(bench.folder / "run.csv.1")
    bench.append("0,a\n", "run.csv.1")
    bench.append(HEADER + "1,b\n")
    assert values(run.look(connectors())) == ["0", "1"]


def test_a_file_that_is_being_compressed_is_not_read_twice(bench: Bench) -> None:
    run, connector = Reading(), bench.connector()
    path = bench.append(HEADER + "0,a\n")
    run.look(connector)
    older = path.rename(bench.folder / "run.csv.1")
    bench.append(HEADER + "1,b\n")
    whole = gzip.compress(older.read_bytes())
    (bench.folder / "run.csv.1.gz").write_bytes(whole[:10])
    assert values(run.look(connector)) == ["1"]
    (bench.folder / "run.csv.1.gz").write_bytes(whole)
    older.unlink()
    assert run.look(connector) == []


def test_a_damaged_compressed_file_is_reported_once_and_reading_continues(bench: Bench) -> None:
    run, connector = Reading(), bench.connector()
    bench.append(HEADER + "0,a\n")
    older = gzip.compress((HEADER + "1,b\n" * 50).encode())
    (bench.folder / "run.csv.1.gz").write_bytes(older[:-9])
    assert run.look(connector) == []  # it may still be written
    assert connector.waiting() is not None
    bench.now += 60
    assert "0" in values(run.look(connector))
    run.look(connector)
    assert len(bench.reported) == 1
    assert "run.csv.1.gz in" in bench.reported[0]
    assert "can't be unpacked" in bench.reported[0]


def test_a_file_truncated_without_a_copy_is_read_from_its_start_and_reported(
    bench: Bench, connectors: Callable[[], Any]
) -> None:
    run = Reading()
    path = bench.append(HEADER + "0,a\n1,b\n")
    run.look(connectors())
    path.write_text(HEADER + "5,x\n")
    assert run.look(connectors()) == [(5, "5", "x")]
    assert len(bench.reported) == 1
    assert "run.csv no longer begins with the 16 bytes that were read of it" in bench.reported[0]
    run.look(connectors())
    assert len(bench.reported) == 1


def test_reading_continues_in_a_longer_copy_that_replaced_the_file(bench: Bench, connectors: Callable[[], Any]) -> None:
    run = Reading()
    path = bench.append(HEADER + "0,a\n")
    run.look(connectors())
    other = bench.folder / ".tmp"
    other.write_text(path.read_text() + "1,b\n")
    other.rename(path)
    assert values(run.look(connectors())) == ["1"]
    assert bench.reported == []


def test_files_that_change_during_matching_are_matched_again_immediately(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, connector = Reading(), bench.connector()
    bench.append(HEADER + "0,a\n")
    monkeypatch.setattr(rotation.FileMatcher, "_is_same_listing", lambda *_: False)
    assert run.look(connector) == []
    assert connector.waiting() == pytest.approx(0.05)
    monkeypatch.undo()
    assert values(run.look(connector)) == ["0"]


def test_rotated_names_with_a_date_inside_are_read_if_one_log_is_named(bench: Bench) -> None:
    run = Reading()
    options = {"pattern": "run.csv", "rotated": "run-*.csv"}
    path = bench.append(HEADER + "0,a\n")
    run.look(bench.connector(**options))
    bench.append("1,b\n")
    packed(path.rename(bench.folder / "run-2026-11-21.csv"))
    bench.append(HEADER + "2,c\n")
    assert values(run.look(bench.connector(**options))) == ["1", "2"]


def test_the_cursor_stays_small_through_many_rotations(bench: Bench) -> None:
    run, connector = Reading(), bench.connector()
    for number in range(100):
        path = bench.append(HEADER + f"{number},x\n")
        assert values(run.look(connector)) == [str(number)]
        path.unlink()  # a rotation that keeps nothing
    assert len(str(run.cursor)) < 10_000


def test_a_truncated_file_without_a_second_header_is_read_with_the_first_header(
    bench: Bench, connectors: Callable[[], Any]
) -> None:
    run = Reading()
    path = bench.append(HEADER + "0,a\n1,b\n")
    run.look(connectors())
    for number in (2, 4):
        shutil.copy(path, bench.folder / f"run.csv.{number}")
        os.truncate(path, 0)
        bench.append(f"{number},c\n{number + 1},d\n")
        assert values(run.look(connectors())) == [str(number), str(number + 1)]
        assert run.batches[-1].records.columns == run.batches[0].records.columns
    bench.append("6,e\n")
    assert values(run.look(connectors())) == ["6"]
    assert values(Reading().look(bench.connector())) == ["0", "1", "2", "3", "4", "5", "6"]


def test_the_first_row_is_a_header_if_it_repeats_the_names_or_has_those_of_another_layout(
    bench: Bench, connectors: Callable[[], Any]
) -> None:
    run = Reading()
    path = bench.append("time;state;note\n0;on;a\n")
    run.look(connectors())
    for head, row in (("state;time;note\n", "on;1;b\n"), ("time;load;speed;state\n", "2;9;8;on\n")):
        shutil.copy(path, bench.folder / "run.csv.1")
        os.truncate(path, 0)
        bench.append(head + row)
        run.look(connectors())
        assert run.batches[-1].records.to_dicts() == [
            dict(zip(head.strip().split(";"), row.strip().split(";"), strict=True))
        ]


def test_words_in_the_first_row_that_are_no_header_are_a_record(bench: Bench, connectors: Callable[[], Any]) -> None:
    run = Reading()
    path = bench.append("level,part,message\nINFO,pump,started\n")
    run.look(connectors())
    shutil.copy(path, bench.folder / "run.csv.1")
    os.truncate(path, 0)
    bench.append("ERROR,pump,hot\n")
    run.look(connectors())
    assert run.batches[-1].records.to_dicts() == [{"level": "ERROR", "part": "pump", "message": "hot"}]


def test_a_log_that_begins_with_its_separator(bench: Bench, connectors: Callable[[], Any]) -> None:
    run = Reading()
    bench.append("sep=;\npart;mass\nA;1,5\n")
    run.look(connectors())
    assert run.batches[-1].records.to_dicts() == [{"part": "A", "mass": "1,5"}]


def test_a_folder_contains_a_log_while_it_has_one_of_its_files(bench: Bench) -> None:
    connector = bench.connector()
    path = bench.append("t,value\n0,1\n")
    assert connector.holds("run.csv")
    path.unlink()
    assert not connector.holds("run.csv")


def test_a_log_with_a_name_in_another_case_is_followed_through_rotation(bench: Bench) -> None:
    options = {"pattern": "run.csv", "rotated": "run-*.csv"}
    run = Reading()
    path = bench.append(HEADER + "0,a\n", "Run.CSV")
    assert values(run.look(bench.connector(**options))) == ["0"]
    bench.append("1,b\n", "Run.CSV")
    path.rename(bench.folder / "Run-1.CSV")
    bench.append(HEADER + "2,c\n", "Run.CSV")
    connector = bench.connector(**options)
    assert values(run.look(connector)) == ["1", "2"]
    assert run.batches[-1].facts["file.read_from"] == "Run.CSV"
    assert connector.locate(bench.folder / "Run-1.CSV") == "run.csv"
    assert list(bench.connector(**options, case_sensitive=True).partitions()) == []
    assert bench.reported == []
