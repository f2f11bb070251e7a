"""The settings and limits of nested records, and the sizes of their chunks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.formats import nested, record_chunks
from connectors.formats.json import Json
from connectors.formats.record_chunks import FieldTexts, make_chunks
from connectors.formats.xml import Xml
from tests.support.format_records import located, read, sentence


@pytest.mark.parametrize("kind", [Xml, Json])
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"records": "**"}, r"can have \*\* only at its beginning"),
        ({"records": "a/**/b"}, r"can have \*\* only at its beginning"),
        ({"records": "**/a/b"}, "has one name after"),
        ({"records": "**/**"}, "has one name after"),
        ({"records": "**/*"}, r"'\*\*/\*' needs id"),
        ({"records": "rows", "id": "n"}, "id needs records"),
    ],
)
def test_settings_that_contradict_each_other_are_a_mistake(
    kind: type[Xml | Json], settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        kind.model_validate(settings)


def test_an_own_field_does_not_hide_one_of_the_records_around_it() -> None:
    document = {"n": "R", "p": [{"n": "A", "parent": {"m": "own"}}, {"n": "B", "parent": {"n": "own"}}]}
    found = read(Json(records="**/p", id="n"), json.dumps(document).encode())
    assert located(found)[1:] == [(2, {"n": "A", "parent.m": "own", "item.path": "R.A", "parent.n": "R"})]
    assert [reject.position for chunk in found for reject in chunk.rejects] == [3]


def test_texts_that_many_records_would_repeat_reject_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"<I n='1'><t>" + b"x" * 2000 + b"</t>" + b"<I n='2'/>" * 1000 + b"</I>"
    assert sentence(Xml(records="**/I"), data) == ""
    monkeypatch.setattr(nested, "_REPEATED_SIZE", 1000)
    assert "would be repeated more than 64 times in inner records" in sentence(Xml(records="**/I"), data)
    long_id = b"<I n='" + b"x" * 2000 + b"'>" + b"<I n='2'/>" * 1000 + b"</I>"
    assert "would be repeated" in sentence(Xml(records="**/I", id="@n"), long_id)


def test_a_deep_tree_of_json_rejects_the_file() -> None:
    deepest = '{"n":1,"p":[' * 51 + "]}" * 51
    assert "nested more than 50 deep" in sentence(Json(records="**/p", id="n"), deepest.encode())
    assert sentence(Json(records="**/p", id="n"), ('{"n":1,"p":[' * 50 + "]}" * 50).encode()) == ""


def test_a_chunk_has_a_bounded_number_of_cells_and_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_chunks, "CELLS", 100)
    different: list[FieldTexts] = [{f"k{at}": "1"} for at in range(50)]
    sizes = [chunk.records.shape for chunk in make_chunks(different)]
    assert sum(rows for rows, _ in sizes) == 50
    assert max(rows * columns for rows, columns in sizes) <= 121
    monkeypatch.setattr(record_chunks, "RECORD_BYTES", 1000)
    assert [chunk.records.height for chunk in make_chunks([{"a": "x" * 400}] * 7)] == [3, 3, 1]
    assert [chunk.end.row for chunk in make_chunks([{"a": "x" * 400}] * 7)] == [3, 6, 7]
