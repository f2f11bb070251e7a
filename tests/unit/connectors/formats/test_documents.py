"""YAML, TOML and INI: documents that their libraries do not foresee."""

import configparser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.formats.documents.ini import parse_ini
from connectors.formats.documents.parser import DocumentInvalid
from ingestd.sdk import SourceBroken
from tests.support.format_records import read_named


def record(name: str, text: str) -> dict[str, str | None]:
    (chunk,) = read_named(name, text.encode())
    (row,) = chunk.records.to_dicts()
    return row


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", "[table]\n", "holds no names with values"),
        ("a.toml", "[a]\n[a.b]\n", "holds no names with values"),
        ("a.ini", "[table]\n", "holds no names with values"),
        ("a.yaml", "a: {}\n", "holds no names with values"),
        ("a.yaml", "%YAML 1.3\n---\na: 1\n", r"version .*\(1, 3\)"),
        ("a.yaml", "%YAML " + "9" * 5000 + ".1\n---\na: 1\n", "can't be read as YAML"),
        ("a.toml", "a = " + "1" * 4301 + "\n", "an integer of more than 4300 digits"),
        ("a.toml", "a = 0x" + "f" * 4301 + "\n", "an integer of more than 4300 digits"),
        ("a.toml", "a." * 200 + "a = 1\n", r"a name has more than 100 parts \(line 1\)"),
        ("a.toml", "b = 1\n[" + "'a' . " * 200 + "a]\n", r"a name has more than 100 parts \(line 2\)"),
        ("a.yaml", "a:\n  " + "[" * 101, "more than 100 brackets are open in line 2"),
        ("a.ini", "[a]\nname\n  value\n", "line 3 is indented below 'name', which has no value"),
        ("a.ini", "[a]\n\nb = 1\nb = 2\n", r"names 'b' twice \(line 4\)"),
        ("a.ini", "a = 1\n[a]\nb = 1\n", r"names 'a' twice \(line 2\)"),
        ("a.ini", "a = 1\n= 2\n", "line 2 has no name before '='"),
        ("a.ini", "[a]\nb = 1\n[c\nd = 2\n", "line 3 begins like a section, but is not one"),
        ("a.ini", "[a] b = 1\n", "line 1 begins like a section, but is not one"),
    ],
)
def test_a_document_that_has_no_record_is_rejected_with_a_sentence(name: str, text: str, words: str) -> None:
    with pytest.raises(SourceBroken, match=rf"^{name} .*{words}"):
        record(name, text)


def test_brackets_and_dots_in_text_are_no_depth() -> None:
    lines = "".join(f"b{at}: 'up to [{at}'\n" for at in range(200))
    assert record("a.yaml", f"a: range [0, 1)\n{lines}")["b7"] == "up to [7"
    assert record("a.toml", "a = '" + "1." * 90 + "'\n")["a"] == "1." * 90


def test_a_colon_is_a_part_of_a_name_before_an_equals_sign() -> None:
    text = "C:\\data = 1\nurn:a:b=2\nplain: x = y\nshort:z\nvalue = a:b\n"
    assert record("a.ini", text) == {"C:\\data": "1", "urn:a:b": "2", "plain": "x = y", "short": "z", "value": "a:b"}


def test_a_section_may_have_brackets_and_a_comment() -> None:
    assert record("a.ini", "[a[0]] ; see [b]\nc = 1\n  [d]\n") == {"a[0].c": "1\n[d]"}


def test_numbers_of_toml_lose_their_notation() -> None:
    text = "a = 1_000\nb = 1_000.50\nc = 0x1F\nd = -0.0\ne = 1e4_00\nf = '1_0.5'\n"
    assert record("a.toml", text) == {"a": "1000", "b": "1000.50", "c": "31", "d": "-0.0", "e": "1e400", "f": "1_0.5"}


LINES = st.lists(
    st.sampled_from(["a = 1", "b=", "c", "  more", "    deeper", "", " ", "# note", "  ; note", "[s]", "[t u]", "d = x # y"]),
    max_size=12,
)  # fmt: skip


@given(LINES, st.sampled_from(["\n", "\r\n"]))
def test_ini_is_read_as_configparser_reads_it(lines: list[str], end: str) -> None:
    parser = configparser.RawConfigParser(default_section="none", allow_no_value=True, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    text = end.join(lines) + end
    try:
        parser.read_string("[first]\n" + "\n".join(lines))
    except (configparser.Error, AttributeError):
        with pytest.raises(DocumentInvalid):
            parse_ini(text)
        return
    expected = {**parser["first"], **{name: dict(parser[name]) for name in parser.sections()[1:]}}
    assert parse_ini(text) == expected
