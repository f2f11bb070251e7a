"""The files that a folder has not read, counted and listed by reason, without another scan."""

from __future__ import annotations

import pytest

from ingestd.sdk import SourceBroken
from tests.support.watched_files import Drop, read_all, ready_names


def test_each_waiting_file_has_the_reason_for_which_it_is_counted(drop: Drop) -> None:
    drop.write("ready.csv")
    drop.write("ready.csv.done", "")
    drop.write("unmarked.csv")
    drop.write("broken.xlsx", "no workbook")
    drop.write("broken.xlsx.done", "")
    connector = drop.connector(ready=["marker"], settle_seconds=5, empty_seconds=60)
    assert not any(connector.count_waiting().values())
    assert sorted(ready_names(connector)) == ["broken.xlsx", "ready.csv"]
    drop.write("empty.csv", "")
    drop.write("growing.csv")
    drop.now += 1
    ready_names(connector)
    assert connector.count_waiting() == {"unstable": 1, "not ready": 1, "empty": 1, "unreadable": 0}
    with pytest.raises(SourceBroken):
        read_all(connector, "broken.xlsx")
    listed = {one.name: (one.reason, one.sentence) for one in connector.list_waiting(10)}
    assert connector.count_waiting()["unreadable"] == 1
    assert {name: reason for name, (reason, _) in listed.items()} == {
        "growing.csv": "unstable",
        "unmarked.csv": "not ready",
        "empty.csv": "empty",
        "broken.xlsx": "unreadable",
    }
    assert listed["growing.csv"][1] == "growing.csv must be unchanged for 5.0 more seconds (settle_seconds)."
    assert "waits for its marker unmarked.csv.done" in listed["unmarked.csv"][1]
    assert listed["broken.xlsx"][1].startswith("broken.xlsx can't be read")


def test_a_list_of_waiting_files_is_no_longer_than_requested(drop: Drop) -> None:
    for number in range(5):
        drop.write(f"{number}.csv")
    connector = drop.connector(ready=["marker"])
    ready_names(connector)
    assert [one.name for one in connector.list_waiting(3)] == ["0.csv", "1.csv", "2.csv"]
    assert connector.count_waiting()["not ready"] == 5


def test_a_file_that_was_read_no_longer_waits(drop: Drop) -> None:
    drop.write("run.csv")
    connector = drop.connector(ready=["marker"])
    ready_names(connector)
    drop.write("run.csv.done", "")
    assert ready_names(connector) == ["run.csv"]
    assert connector.list_waiting(10) == []
