from __future__ import annotations

import pytest

from ingestd.core.phrases import nearest
from ingestd.settings.document import MAX_DEPTH, DocumentError, read_document
from ingestd.settings.node import ConfigLocation, ListNode, MappingNode, Node, Scalar, dotted, find, resolve


def plain(node: Node) -> object:
    match node:
        case Scalar():
            return node.value
        case ListNode():
            return [plain(item) for item in node.items]
        case MappingNode():
            return {key.text: plain(item) for key, item in node.items}


def faults(text: str) -> list[tuple[int, int, str, str]]:
    return [(place.line, place.column, key, sentence) for place, key, sentence in read_document(text).faults]


def refusal(text: str) -> tuple[int, int, str]:
    with pytest.raises(DocumentError) as caught:
        read_document(text)
    return caught.value.location.line, caught.value.location.column, caught.value.sentence


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("tRUE", "tRUE"),
        ("0755", 755),
        ("0o755", 493),
        ("0xFF", 255),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("+12", 12),
        ("-0", 0),
        ("1:30", "1:30"),
        ("1.50", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("-.inf", float("-inf")),
        ("~", None),
        ("null", None),
        ("Null", None),
        ("nULL", "nULL"),
        ("2026-01-02", "2026-01-02"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_a_value_without_quotes_is_read_as_in_yaml_1_2(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


def test_not_a_number_is_read() -> None:
    found = resolve(".nan")
    assert isinstance(found, float)
    assert found != found  # noqa: PLR0124 - that is what it is


def test_quotes_and_a_text_tag_keep_text() -> None:
    assert plain(read_document("[\"007\", '1', !!str 0755, ! true, 7]").root) == ["007", "1", "0755", "true", 7]


def test_aliases_have_the_value_of_their_anchors() -> None:
    assert plain(read_document("a: &x {b: 1}\nc: [*x, *x]").root) == {"a": {"b": 1}, "c": [{"b": 1}, {"b": 1}]}


def test_exponential_aliases_are_rejected_before_they_are_expanded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    line, _, sentence = refusal("\n".join(lines))
    assert line == 5
    assert sentence == "After its aliases are expanded, this has more than 100000 values. Use fewer aliases."


def test_deep_nesting_is_refused() -> None:
    assert refusal("[" * 100_000)[2] == f"Values are nested deeper than {MAX_DEPTH} levels. Nest them less deeply."
    assert plain(read_document("[" * MAX_DEPTH + "]" * MAX_DEPTH).root)


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("a:\n\t- b", 2, 1, "not with tabs"),
        ("a: [1,", 1, 7, "opened and not closed"),
        ("a: 'x", 1, 6, "A quote is opened and not closed"),
        ("a: b: c", 1, 5, "A ':' is not allowed here"),
        ("a:\n  b: 1\n c: 2", 3, 2, "the same column"),
        ("a: @x", 1, 4, "put the text in quotes"),
        ("a: *x", 1, 4, "There is no anchor '&x' before this alias"),
        ("a: &a [*a]", 1, 8, "inside its own anchor"),
        ("a: \x07", 1, 4, "U+0007 is not allowed in YAML"),
        ('a: "\\q"', 1, 6, "no such escape sequence"),
        ('a: "\\UFFFFFFFF"', 1, 1, "This is not valid YAML"),
    ],
)
def test_invalid_yaml_is_reported_with_its_location(text: str, line: int, column: int, words: str) -> None:
    found = refusal(text)
    assert found[:2] == (line, column)
    assert words in found[2]


def test_every_duplicate_key_is_a_fault_and_the_first_one_counts() -> None:
    document = read_document("a:\n  b: 1\n  b: 2\n  'b': 3\n")
    assert plain(document.root) == {"a": {"b": 1}}
    assert [(place.line, key) for place, key, _ in document.faults] == [(3, "a.b"), (4, "a.b")]
    assert document.faults[0][2] == "The key 'b' is repeated; line 2 has it already. Remove one of them."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a: !!python/object/apply:os.system [ls]",
            (1, 4, "a", "The tag '!!python/object/apply:os.system' is not allowed"),
        ),
        ("a: !mine 1", (1, 4, "a", "The tag '!mine' is not allowed")),
        ("a: {<<: *x}".replace("*x", "{}"), (1, 5, "a", "Merge keys ('<<') are not part of YAML 1.2")),
        ("a: {[1]: 2}", (1, 5, "a", "Expected a text as the key, found a list or a mapping.")),
        ('a: "\\ud800"', (1, 4, "a", "Half of a surrogate pair is not a character")),
        ("a: 1\n---\nb: 2\n", (2, 1, "", "A second document begins here")),
        ("%YAML 1.1\n---\na: 1\n", (2, 1, "", "The file declares YAML 1.1")),
    ],
)
def test_invalid_content_is_a_fault_and_reading_continues(text: str, expected: tuple[int, int, str, str]) -> None:
    [found] = faults(text)
    assert found[:3] == expected[:3]
    assert found[3].startswith(expected[3])


@pytest.mark.parametrize(
    ("text", "position", "column"),
    [
        ("k: ab{c", 2, 6),
        ("k: 'ab{c'", 2, 7),
        ("k: 'it''s {c'", 5, 11),
        ('k: "a\\tb{c"', 3, 9),
        ('k: "\\u00b5{c"', 1, 11),
        ('k: "\\x41\\U0001F600{"', 2, 19),
        ("k: µ°{", 2, 6),
    ],
)
def test_a_character_of_a_value_has_its_column(text: str, position: int, column: int) -> None:
    found = find(read_document(text).root, ["k"]).node
    assert isinstance(found, Scalar)
    assert text[column - 1] == "{"
    assert found.location_of(position) == ConfigLocation(line=1, column=column)


@pytest.mark.parametrize("text", ["k: |\n  a\n  {b\n", "k: |", "k: >-"])
def test_a_character_of_a_multi_line_text_has_the_location_of_the_text(text: str) -> None:
    found = find(read_document(text).root, ["k"]).node
    assert isinstance(found, Scalar)
    assert found.location_of(2) == ConfigLocation(line=1, column=4)


def test_a_path_is_followed_as_far_as_the_file_has_it() -> None:
    root = read_document("a:\n  - b: {c: 1}\n").root
    found = find(root, ("a", 0, "b", "str", "c"))
    assert (found.path, found.left, found.key_location) == (
        ("a", 0, "b", "c"),
        ("str",),
        ConfigLocation(line=2, column=9),
    )
    assert find(root, ("a", 1, "x")).left == (1, "x")
    assert dotted(("pipelines", 0, "source", "path")) == "pipelines[0].source.path"


def test_only_a_similar_name_is_suggested() -> None:
    assert nearest("pth", ["path", "pattern"]) == " Did you mean 'path'?"
    assert nearest("zzz", ["path", "pattern"]) == ""
