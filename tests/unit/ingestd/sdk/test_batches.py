"""Batches of single records, some of them unreadable."""

from collections.abc import Iterator, Mapping

import pytest

from ingestd.sdk import Batch, RecordUnreadable, Reject, SourceBroken, pack
from ingestd.sdk.batches import attach_rejects

BAD = RecordUnreadable("The line has no semicolon.", position=7, field="mass", record={"text": "x"})


def parse(line: str) -> Mapping[str, str | None]:
    part, separator, mass = line.partition(";")
    if not separator:
        raise RecordUnreadable("The line has no semicolon.")
    return {"part": part, "mass": mass}


def test_pack_rejects_the_elements_that_parse_cannot_read_and_keeps_the_others() -> None:
    batch = pack(["a;1", "b", "c;3"], parse=parse, cursor={"line": 3})
    assert batch.records.rows() == [("a", "1"), ("c", "3")]
    assert batch.positions.to_list() == [1, 3]
    assert batch.rejects == (Reject(position=2, reason="The line has no semicolon.", record={"text": "b"}),)


def test_pack_prefers_the_details_in_the_error() -> None:
    def fail(_line: str) -> Mapping[str, str | None]:
        raise BAD

    batch = pack(["b"], parse=fail, cursor={}, positions=["row 2"])
    assert batch.rejects == (
        Reject(position=7, reason="The line has no semicolon.", field="mass", record={"text": "x"}),
    )
    assert batch.positions.len() == 0


def test_pack_requires_as_many_positions_as_records() -> None:
    with pytest.raises(ValueError, match="zip"):
        pack([{"part": "a"}], cursor={}, positions=[1, 2])


def test_an_unreadable_record_becomes_a_reject_of_the_next_batch() -> None:
    def read() -> Iterator[Batch | RecordUnreadable]:
        yield pack([{"part": "a"}], cursor={"line": 1})
        yield BAD
        yield pack([{"part": "c"}], cursor={"line": 3}, rejects=(Reject(position=3, reason="It is empty."),))

    first, second = attach_rejects(read())
    assert first.rejects == ()
    assert [reject.position for reject in second.rejects] == [7, 3]
    assert second.rejects[0].record == {"text": "x"}


def test_an_unreadable_record_without_a_position_or_a_later_batch_is_an_error_of_the_connector() -> None:
    with pytest.raises(SourceBroken, match="without its position"):
        list(attach_rejects([RecordUnreadable("It is bad."), pack([], cursor={})]))
    with pytest.raises(SourceBroken, match="no batch after the unreadable record 7"):
        list(attach_rejects([pack([], cursor={}), BAD]))
