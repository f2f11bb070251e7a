"""A table's name as SQL writes it."""

import pytest

from connectors.database.address import parse_table


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("part", ("part",)),
        ("pdm.Part", ("pdm", "Part")),
        ("Mass Budget", ("Mass Budget",)),
        ('"My Schema"."Part.List"', ("My Schema", "Part.List")),
        ('"a""b".c', ('a"b', "c")),
        ("`a.b`.`c``d`", ("a.b", "c`d")),
        ("db.schema.part", ("db", "schema", "part")),
    ],
)
def test_the_parts_of_a_name(text: str, parts: tuple[str, ...]) -> None:
    assert parse_table(text) == parts


@pytest.mark.parametrize("text", ["a.", ".a", "a..b", '"a', '"a"b', 'a"b', '""', "`"])
def test_a_name_that_is_incomplete_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no name of a table"):
        parse_table(text)
