"""Bodies with half of a surrogate pair, which a service may escape although it is no character."""

from __future__ import annotations

import msgspec
import pytest

from ingestd.client.bodies import decode_json
from ingestd.client.readers import reader
from ingestd.client.records import SinkSummary
from ingestd.client.response import parse_problem


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (rb'"a\ud83d"', "a\ufffd"),
        (rb'"\uDE00a"', "\ufffda"),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"),
        (rb'"\ude00\ud83d"', "\ufffd\ufffd"),
        (rb'"\\ud83d\ud83d"', "\\ud83d\ufffd"),
        (rb'"\\\ud83d"', "\\\ufffd"),
        (rb'"\"\ud83d\n"', '"\ufffd\n'),
    ],
)
def test_half_of_a_surrogate_pair_is_a_replacement_character(body: bytes, expected: str) -> None:
    assert decode_json(body) == expected


@pytest.mark.parametrize("body", [b"", b"<html>", rb'{"a": "\ud83d"', rb'"\ud83'])
def test_other_bodies_are_unreadable(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_json(body)


def test_a_rejection_with_a_cut_message_is_one_of_the_service() -> None:
    problem = parse_problem(400, rb'{"error": "value too long: \ud83d"}')
    assert (problem.recognized, problem.error) == (True, "value too long: \ufffd")


def test_the_label_of_another_sink_does_not_make_a_list_unreadable() -> None:
    sinks = reader(tuple[SinkSummary, ...])(rb'[{"id": "a", "label": "mass"}, {"id": "b", "label": "\ud83d"}]', {})
    assert [sink.label for sink in sinks] == ["mass", "\ufffd"]
