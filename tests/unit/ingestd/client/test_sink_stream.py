"""The incremental JSON reader compared with the standard library, with the text split at every position."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.client.bodies import UnreadableBody
from ingestd.client.sink_stream import SinkStream
from ingestd.delivery.sink_rows import Row, row_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
EXTRAS = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {"key": TEXTS},
        optional={"value": st.none() | TEXTS, "dataType": TEXTS, "metadata": EXTRAS},
    ),
    max_size=4,
)
MEMBERS = st.dictionaries(TEXTS.filter(lambda name: name != "entries"), EXTRAS, max_size=3)


def read(*pieces: bytes) -> list[Row]:
    stream = SinkStream(row_of)
    rows = [row for piece in pieces for row in stream.feed(piece)]
    stream.finish()
    return rows


@st.composite
def sinks(draw: st.DrawFn) -> dict[str, Any]:
    """Return a sink with its entries first, last or in the middle."""
    sink = {**draw(MEMBERS), "entries": draw(ENTRIES)}
    return sink | {name: value for name, value in draw(MEMBERS).items() if name not in sink}


@given(sink=sinks(), ascii_only=st.booleans(), indent=st.sampled_from([None, 1]), data=st.data())
def test_a_split_sink_is_read_as_by_the_standard_library(
    sink: dict[str, Any], *, ascii_only: bool, indent: int | None, data: st.DataObject
) -> None:
    content = json.dumps(sink, ensure_ascii=ascii_only, indent=indent).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    pieces = [content[start:end] for start, end in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    assert read(*pieces) == [(entry["key"], entry.get("value"), entry.get("dataType")) for entry in sink["entries"]]


def test_bytes_may_arrive_one_at_a_time() -> None:
    content = '{"serial": 12, "entries": [{"key":"é\\u00e9\\"","value":"1.10"} , {"key":"b"}], "last": 1.5e3}'.encode()
    assert read(*(content[n : n + 1] for n in range(len(content)))) == [('éé"', "1.10", None), ("b", None, None)]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'"entries"',
        b'{"id":"s"}',
        b'{"entries":null}',
        b'{"entries":[1]}',
        b'{"entries":[{"key":null}]}',
        b'{"entries":[{"key":"a"}]',
        b'{"entries":[{"key":"a"} {"key":"b"}]}',
        b'{"entries":[{"key":"a"}]}{}',
        b'{"entries" [{"key":"a"}]}',
        b'{1:2,"entries":[]}',
        b"\xff\xfe",
        b"<html>",
    ],
)
def test_an_incomplete_sink_is_rejected(content: bytes) -> None:
    with pytest.raises(UnreadableBody):
        read(content)


def test_a_value_that_is_not_text_differs_from_every_text() -> None:
    assert read(b'{"entries":[{"key":"a","value":[1],"dataType":5}]}') == [("a", "[1]", "5")]


def test_half_of_a_surrogate_pair_is_read_as_its_escape() -> None:
    body = rb'{"entries": [{"key": "a\ud83d", "value": "\ude00b", "dataType": "\ud83d\ude00"}]}'
    assert read(body) == [("a\\ud83d", "\\ude00b", "\U0001f600")]
