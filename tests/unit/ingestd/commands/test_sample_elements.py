"""The elements and objects of a sample that repeat, or contain each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingestd.commands.initial_configuration.elements import RepeatedElements, nested_identifiers, repeated_elements


def elements(folder: Path, text: str) -> RepeatedElements:
    path = folder / "sample.xml"
    path.write_text(text, encoding="ascii")
    return repeated_elements(path)


def test_the_elements_that_repeat_nearest_to_the_root_are_found(tmp_path: Path) -> None:
    text = "<r><head/><rows><row><c/><c/></row><row/></rows><rows><row/></rows><m><x/></m></r>"
    assert elements(tmp_path, text).paths == {"rows": 2}
    assert elements(tmp_path, f"<a>{text}{text}</a>").paths == {"r": 2}
    text = '<r xmlns:n="urn:n"><m><n:x/><x/></m><o><x/><x/><x/><y/><y/></o><m2><x/></m2></r>'
    assert elements(tmp_path, text).paths == {"m/x": 2, "o/x": 3, "o/y": 2}


def test_elements_that_contain_each_other_are_named(tmp_path: Path) -> None:
    assert elements(tmp_path, "<r><a><b><a/></b></a><c/><c/></r>").nested == {"a"}
    assert elements(tmp_path, "<r><a><r/></a><a/></r>").nested == {"r"}
    assert elements(tmp_path, "<r><a/><a/></r>").nested == frozenset()


@pytest.mark.parametrize("encoding", ["klingon", "utf-32", "shift_jis"])
def test_a_document_with_an_unusable_encoding_has_no_elements(encoding: str, tmp_path: Path) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><r><a n="1"/><a n="2"/></r>'
    assert elements(tmp_path, text) == RepeatedElements(paths={})


def test_the_members_that_all_nested_objects_have_identify_them() -> None:
    leaf = {"id": "3", "name": "bolt", "mass": None, "extra": 1}
    document = {
        "meta": [{"v": 1}],
        "parts": [{"id": "1", "name": "arm", "mass": 2, "parts": [leaf]}, {"id": "2", "name": "leg"}],
    }
    assert nested_identifiers(document) == ["id", "name"]
    assert nested_identifiers([[document]]) == ["id", "name"]


def test_lists_beside_each_other_are_not_nested() -> None:
    assert nested_identifiers({"parts": [{"id": 1, "notes": [{"id": 2}]}], "notes": [{"id": 3}]}) == []
    assert nested_identifiers({"parts": [{"id": 1, "parts": ["a", "b"]}]}) == []
    assert nested_identifiers([1, "a", None]) == []
