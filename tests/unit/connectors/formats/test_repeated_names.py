"""JSON objects that have a name twice: no value is lost without a word."""

import io
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from connectors.formats.json.reader import read_json
from connectors.formats.ndjson.exact import LineUnreadable, parse_record
from connectors.formats.ndjson.reader import read_ndjson
from ingestd.sdk import SourceBroken
from tests.support.format_records import rejects

REPEATED = [
    b'{"n":1,"n":2}', b'{"n" : 1 , "n" : 2}', b'{"n":1,"n":1}', b'{"n":null,"n":2}', rb'{"n":1,"\u006e":2}',
    rb'{"a\\":1,"b":2,"b":3}', rb'{"a\\":1,"a\\":2}', b'{"a":{"n":1,"n":2}}', b'{"a":[{"n":1,"n":2}]}',
    b'{"a":":","n":1,"n":2}',
]  # fmt: skip


@pytest.mark.parametrize("line", REPEATED)
def test_a_record_that_names_a_field_twice_is_rejected_and_its_neighbours_are_read(line: bytes) -> None:
    (chunk,) = read_ndjson(io.BytesIO(b'{"n":0,"b":0}\n' + line + b'\n{"n":3,"b":0}\n'), "runs.ndjson")
    assert chunk.records["n"].to_list() == ["0", "3"]
    (reject,) = chunk.rejects
    assert reject.position == 2
    assert reject.reason.startswith("Line 2 names ")
    assert reject.reason.endswith(" twice.")


def test_a_repeated_name_is_found_where_a_line_lacks_another_field() -> None:
    lines = b'{"a":1,"b":2}\n{"a":1,"a":2}\n{"b":1}\n'
    (chunk,) = read_ndjson(io.BytesIO(lines), "runs.ndjson")
    assert chunk.records.to_dict(as_series=False) == {"a": ["1", None], "b": ["2", "1"]}
    assert [reject.position for reject in chunk.rejects] == [2]


def test_an_item_of_an_array_is_rejected_like_a_line() -> None:
    (chunk,) = read_json(io.BytesIO(b'{"rows": [{"n":0}, {"n":1,"n":2}]}'), "runs.json", path=["rows"])
    assert [reject.reason for reject in chunk.rejects] == ["Item 2 names 'n' twice."]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b'{"rows":[{"n":1}],"rows":[{"n":2}]}', "names 'rows' twice"),
        (b'{"d":{"rows":[{"n":1}],"x":[1,{"y":2}],"rows":[]}}', "names 'rows' twice"),
        (b'{"d":{"rows":[{"n":1}]},"d":{"rows":[]}}', "names 'd' twice"),
        (b'{"rows":[{"n":1}]}{"rows":[{"n":2}]}', "text follows the end"),
        (b'{"rows":[{"n":1}],"x":[', "ends in the middle"),
        (b'{"rows":[{"n":1}] 3', "not valid JSON after"),
    ],
)
def test_a_document_is_read_to_its_end_so_a_second_array_is_not_lost(document: bytes, words: str) -> None:
    path = ["d", "rows"] if b'"d"' in document else ["rows"]
    with pytest.raises(SourceBroken, match=words):
        list(read_json(io.BytesIO(document), "runs.json", path=path))


def test_what_follows_the_array_is_skipped() -> None:
    (chunk,) = read_json(io.BytesIO(b'{"rows":[{"n":1}],"x":{"rows":[1]},"y":"]"}\n'), "runs.json", path=["rows"])
    assert chunk.records.to_dict(as_series=False) == {"n": ["1"]}


NAMES = st.text(alphabet='ab":\\ {}\t', max_size=3)


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.lists(st.tuples(NAMES, st.sampled_from([":", " :", ": ", "\t: "]), values), min_size=1, max_size=4)
    return pairs.map(
        lambda found: "{" + ",".join(f"{json.dumps(name)}{colon}{value}" for name, colon, value in found) + "}"
    )


VALUES: st.SearchStrategy[str] = st.recursive(
    st.one_of(NAMES.map(json.dumps), st.sampled_from(["1", "null", "true", '":"'])),
    lambda inner: st.one_of(st.lists(inner, max_size=2).map(lambda items: f"[{','.join(items)}]"), objects(inner)),
    max_leaves=6,
)


def has_repeated(text: str) -> bool:
    found: list[bool] = []
    json.loads(text, object_pairs_hook=lambda pairs: found.append(len(dict(pairs)) != len(pairs)))
    return any(found)


@given(st.lists(objects(VALUES), min_size=1, max_size=4))
@example(['{"a\\\\":1,"b":1,"b":2}'])
def test_a_name_that_an_object_has_twice_is_always_found(texts: list[str]) -> None:
    for text in texts:
        reason = ""
        try:
            parse_record(text.encode())
        except LineUnreadable as error:
            reason = str(error)
        assert reason.endswith("twice") <= has_repeated(text)
        assert bool(reason) >= has_repeated(text)
    chunks = list(read_ndjson(io.BytesIO("".join(f"{text}\n" for text in texts).encode()), "runs.ndjson"))
    rejected = rejects(chunks)
    repeated = {number for number, text in enumerate(texts, start=1) if has_repeated(text)}
    assert repeated.issubset(rejected)
    assert repeated.issuperset(number for number, reason in rejected.items() if "twice" in reason)
