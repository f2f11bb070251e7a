"""Templates: their parts, and the messages about unreadable ones."""

from __future__ import annotations

import pytest

from ingestd.core.template import Field, Literal, Template, TemplateError, parse_template


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("mass", (Literal("mass"),)),
        ("{part}.mass", (Field("part"), Literal(".mass"))),
        ("{a}{b}", (Field("a"), Field("b"))),
        ("{{{a}}}", (Literal("{"), Field("a"), Literal("}"))),
        ("{{a}}", (Literal("{a}"),)),
        ("{{}}", (Literal("{}"),)),
        ("{ a b }", (Field(" a b "),)),
        ("{file.stem}/{ä:b}", (Field("file.stem"), Literal("/"), Field("ä:b"))),
    ],
)
def test_a_template_is_parsed_into_its_parts(text: str, parts: tuple[Literal | Field, ...]) -> None:
    assert parse_template(text) == Template(text=text, parts=parts)


@pytest.mark.parametrize(
    ("text", "position", "sentence"),
    [
        ("a{b", 1, "'{' has no '}'; write '{{' for the character itself"),
        ("ab}", 2, "'}' has no '{'; write '}}' for the character itself"),
        ("x{}", 1, "'{}' names no field"),
        ("{ }", 0, "'{}' names no field"),
        ("{a{b}", 0, "'{' has no '}'"),
        ("{{a}", 3, "'}' has no '{'"),
    ],
)
def test_a_mistake_is_reported_with_its_location(text: str, position: int, sentence: str) -> None:
    with pytest.raises(TemplateError) as mistake:
        parse_template(text)
    assert mistake.value.position == position
    assert str(mistake.value).startswith(sentence)


def test_fields_are_listed_once_in_the_order_of_their_use() -> None:
    assert parse_template("{b}-{a}-{b}").fields == ("b", "a")


def test_binding_keeps_the_other_fields_and_joins_adjacent_text() -> None:
    template = parse_template("a{x}b{y}c").bind({"x": "{1}", "z": "2"})
    assert template.parts == (Literal("a{1}b"), Field("y"), Literal("c"))
    assert template.text == "a{x}b{y}c"
