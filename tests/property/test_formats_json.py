"""JSON documents compared with Python's json module, at every block size."""

import io
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from connectors.formats.json.reader import read_json
from ingestd.sdk import Position
from tests.support.format_records import located

TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=8)
NAMES = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="."), max_size=4)
VALUES = st.one_of(TEXT, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none())
RECORDS = st.lists(st.dictionaries(NAMES, VALUES, min_size=1, max_size=4), max_size=6)
# The text around the array must have no effect, with any brackets and quotes.
OTHERS = st.recursive(VALUES, lambda inside: st.lists(inside, max_size=3) | st.dictionaries(TEXT, inside, max_size=3))


def as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def read(document: Any, path: list[str], block_bytes: int, **layout: Any) -> list[tuple[Position, dict[str, str]]]:
    data = json.dumps(document, **layout).encode()
    return located(read_json(io.BytesIO(data), "x.json", path=path, block_bytes=block_bytes))


@given(
    records=RECORDS,
    around=st.tuples(OTHERS, OTHERS),
    path=st.lists(NAMES, max_size=3),
    block_bytes=st.integers(1, 64),
    layout=st.tuples(st.sampled_from([None, 0, 2]), st.booleans()),
)
def test_output_of_the_json_module_is_read_back(
    records: list[dict[str, Any]],
    around: tuple[Any, Any],
    path: list[str],
    block_bytes: int,
    layout: tuple[int | None, bool],
) -> None:
    document: Any = records
    for member in reversed(path):
        document = {f"{member}<": around[0], member: document, f"{member}>": around[1]}
    found = read(document, path, block_bytes, indent=layout[0], ensure_ascii=layout[1])
    wanted = [
        (number, {name: text for name, value in record.items() if (text := as_text(value)) is not None})
        for number, record in enumerate(records, start=1)
    ]
    assert found == wanted
