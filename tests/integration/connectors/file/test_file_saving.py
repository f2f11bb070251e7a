"""One file that is saved repeatedly: when it is read, and when its content is not trusted."""

import os

import pytest

from connectors.beneath import Folder, RootedPath
from connectors.file import connector as connector_module
from connectors.files.file_batches import OpenFile, open_file
from ingestd.sdk import Batch, Partition, SourceBroken, SourceUnavailable
from tests.support.watched_files import Share, read_file

PARTITION = Partition(name="masses.xlsx")
ROWS = [["part", "mass"], ["A", "0.10"], ["B", "2"]]


def rows(batches: list[Batch]) -> list[tuple[str, ...]]:
    return [row for batch in batches for row in batch.records.rows()]


def test_each_stable_save_is_one_whole_reading(share: Share) -> None:
    connector = share.connector(settle_seconds=5, deletes="remove")
    share.save(ROWS)
    share.now += 10
    batches = read_file(connector)
    assert list(connector.partitions()) == [Partition(name="masses.xlsx", deletes="remove")]
    assert rows(batches) == [("A", "0.10"), ("B", "2")]
    assert batches[-1].facts["file.name"] == "masses.xlsx"
    share.now += 60
    share.save([*ROWS, ["C", "3"]])
    assert read_file(connector, batches[-1].cursor) == []
    assert connector.waiting() == 5
    assert "must be unchanged for 5.0 more seconds" in str(connector.explain("masses.xlsx", batches[-1].cursor))
    share.now += 5
    after = read_file(connector, batches[-1].cursor)
    assert rows(after) == [("A", "0.10"), ("B", "2"), ("C", "3")]
    assert connector.explain("masses.xlsx", after[-1].cursor) is None
    assert read_file(share.connector(), after[-1].cursor) == []
    assert share.book.exists()


def test_a_lock_file_is_reported_and_does_not_prevent_reading(share: Share) -> None:
    share.save(ROWS)
    (share.folder / "~$masses.xlsx").write_bytes(b"\x05Alice")
    connector = share.connector()
    assert len(rows(read_file(connector))) == 2
    assert "~$masses.xlsx exists" in str(connector.explain("masses.xlsx"))
    assert [step.name for step in connector.verify()] == ["folder", "file", "in use"]


def test_the_same_content_saved_again_is_reported_as_unchanged(share: Share) -> None:
    connector = share.connector("masses.csv")
    path = share.folder / "masses.csv"
    path.write_text("part,mass\nA,1\n")
    cursor = read_file(connector)[-1].cursor
    os.utime(path, (1, 1))
    (batch,) = read_file(connector, cursor)
    assert batch.unchanged
    assert batch.last


def test_a_missing_file_is_unavailable_and_not_empty(share: Share) -> None:
    connector = share.connector(deletes="remove")
    with pytest.raises(SourceUnavailable, match=r"masses\.xlsx does not exist\. Nothing that came from it is removed"):
        connector.partitions()
    assert [step.outcome for step in connector.verify()] == ["passed", "failed"]
    share.save(ROWS)
    assert len(rows(read_file(connector))) == 2
    with pytest.raises(SourceUnavailable, match="is the share mounted"):
        share.connector(path="nowhere/masses.xlsx").partitions()


def test_a_file_that_is_missing_during_a_save_is_waited_for(share: Share) -> None:
    connector = share.connector(settle_seconds=5)
    share.save(ROWS)
    share.now += 10
    cursor = read_file(connector)[-1].cursor
    share.book.unlink()
    assert list(connector.partitions()) == []
    assert connector.waiting() == 5
    share.now += 2
    assert list(connector.partitions()) == []
    share.save([*ROWS, ["C", "3"]])
    assert list(connector.partitions()) == []
    share.now += 5
    assert len(rows(read_file(connector, cursor))) == 3
    share.book.unlink()
    connector.partitions()
    share.now += 6
    assert connector.waiting() == 0, "there is no other trigger"
    with pytest.raises(SourceUnavailable):
        connector.partitions()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("part,mass\n", "has no rows"),
        ("part,mass\n\n\n", "has no rows"),
    ],
)
def test_a_file_that_lost_its_rows_is_broken_and_removes_nothing(text: str, words: str, share: Share) -> None:
    connector = share.connector("masses.csv", deletes="remove")
    path = share.folder / "masses.csv"
    path.write_text("part,mass\nA,1\n")
    cursor = read_file(connector)[-1].cursor
    path.write_text(text)
    with pytest.raises(SourceBroken, match=words):
        read_file(connector, cursor)
    assert words in str(connector.explain("masses.csv", cursor))
    assert list(connector.partitions()) == []  # until it changes
    path.write_text("part,mass\nA,2\n")
    assert rows(read_file(connector, cursor)) == [("A", "2")]


def test_a_file_without_rows_is_accepted_if_nothing_is_removed(share: Share) -> None:
    (share.folder / "masses.csv").write_text("part,mass\n")
    assert read_file(share.connector("masses.csv"))[-1].last


def test_a_partly_written_workbook_is_broken_until_it_is_saved_completely(share: Share) -> None:
    connector = share.connector(deletes="remove")
    whole = share.save(ROWS).read_bytes()
    share.book.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceBroken, match=r"masses\.xlsx"):
        read_file(connector)
    share.save(ROWS)
    assert len(rows(read_file(connector))) == 2


def test_a_file_that_is_saved_during_reading_is_read_again(share: Share, monkeypatch: pytest.MonkeyPatch) -> None:
    path = share.folder / "masses.csv"
    path.write_text("part,mass\n" + "A,1\n" * 10)
    connector = share.connector("masses.csv")
    connector.partitions()

    def saved_in_between(place: RootedPath, name: str) -> OpenFile:
        opened = open_file(place, name)
        path.write_text("part,mass\nC,3\n")
        return opened

    with monkeypatch.context() as context:
        context.setattr(connector_module, "open_file", saved_in_between)
        with pytest.raises(SourceUnavailable, match="was written to while it was read"):
            list(connector.read(PARTITION, None))
    connector.partitions()
    assert rows(list(connector.read(PARTITION, None))) == [("C", "3")]


def test_a_file_that_another_program_locks_is_read_when_it_is_released(
    share: Share, monkeypatch: pytest.MonkeyPatch
) -> None:
    share.save(ROWS)
    connector = share.connector()
    connector.partitions()

    def refused(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as context:
        context.setattr(Folder, "open_file", refused)
        with pytest.raises(SourceUnavailable, match="it is read once that program releases it"):
            list(connector.read(PARTITION, None))
    assert len(rows(list(connector.read(PARTITION, None)))) == 2


def test_the_file_is_recognised_by_its_path(share: Share) -> None:
    share.save(ROWS)
    connector = share.connector()
    cursor = read_file(connector)[-1].cursor
    assert connector.locate(share.book) == "masses.xlsx"
    assert connector.locate(share.folder / "other.xlsx") is None
    assert connector.describe_location("masses.xlsx", cursor) == "the file is unchanged"
    share.save([*ROWS, ["C", "3"]])
    assert connector.describe_location("masses.xlsx", cursor) == "the file was saved again after it was read"
    assert connector.explain("other.xlsx") is None
