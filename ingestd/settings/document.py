"""Parser of YAML 1.2 into a tree: no tags, no duplicate keys, limited aliases.

The tree is built from the parser's events, not by a YAML constructor, so a file cannot create objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from ruamel.yaml import YAML, events
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

from ingestd.core.phrases import nearest, shortened
from ingestd.settings.node import ConfigLocation, ListNode, MappingNode, Node, Scalar

MAX_NODES = 100_000
MAX_DEPTH = 64

_PARSER_ERRORS = (
    YAMLError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
_TEXT_TAGS = frozenset({"!", "tag:yaml.org,2002:str"})
_CHARACTERS = {
    "": re.compile("."),
    "'": re.compile("''|."),
    '"': re.compile(r"\\(?:x.{2}|u.{4}|U.{8}|.)|."),
}
"""Patterns for the written form of one character of a value, by the quotes around the value."""
_PLAIN_TAGS = {"map": events.MappingStartEvent, "seq": events.SequenceStartEvent}
_EXPLAINED = {
    "mapping values are not allowed": "A ':' is not allowed here. Check the line before it and the indentation, and put a "
    "text that contains ': ' in quotes.",
    "that cannot start any token": "This character can't begin a value; put the text in quotes. Indent lines with "
    "spaces, not with tabs.",
    "expected <block end>": "This is not allowed here. Keys of one mapping and dashes of one list begin in the same column, "
    "and nothing follows a closing quote.",
    "could not find expected ':'": "This key has no ':' and no value. Write 'key: value'.",
    "could not find expected": "This key has no ':' and no value. Write 'key: value'.",
    "found unexpected end of stream": "A quote is opened and not closed.",
    "but found '<stream end>'": "A bracket or brace is opened and not closed.",
    "expected ',' or": "A ',' or the closing bracket or brace is missing. Within braces or brackets, put a text that "
    "contains some, such as ${env:NAME}, in quotes.",
    "sequence entries are not allowed": "A list can't begin here; write '-' on a new line, indented below its key.",
    "unknown escape character": "A text in double quotes has no such escape sequence; use single quotes, or write '\\\\'.",
}


class DocumentError(Exception):
    """The file is not valid YAML. ``sentence`` and ``location`` describe the error."""

    def __init__(self, sentence: str, location: ConfigLocation) -> None:
        self.sentence = sentence
        self.location = location
        super().__init__(sentence)


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A file's tree, and its recoverable mistakes: (location, key, sentence)."""

    root: Node
    faults: tuple[tuple[ConfigLocation, str, str], ...]


def read_document(text: str) -> Document:
    """Read one YAML document.

    Raises:
        DocumentError: the text is not YAML, is nested deeper than 64 levels, or has more than 100 000 values after its
            aliases are expanded.
    """
    builder = _Builder(lines=text.split("\n"))
    try:
        root = builder.document(iter(YAML(typ="safe", pure=True).parse(text)))
    except ReaderError as error:
        code = ord(error.character) if isinstance(error.character, str) else error.character
        raise DocumentError(
            f"The character U+{code:04X} is not allowed in YAML. Remove it.", _location_at(text, error.position)
        ) from error
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        location = (
            ConfigLocation(line=mark.line + 1, column=mark.column + 1)
            if mark is not None
            else ConfigLocation(line=1, column=1)
        )
        raise DocumentError(_explained(str(error.problem or error.context or "")), location) from error
    except _PARSER_ERRORS as error:
        # For some malformed texts, the parser raises one of these errors, which have no location.
        raise DocumentError("This is not valid YAML near this location.", builder.seen) from error
    return Document(root=root, faults=tuple(builder.faults))


def _location_at(text: str, position: int) -> ConfigLocation:
    before = text[:position]
    return ConfigLocation(line=before.count("\n") + 1, column=position - (before.rfind("\n") + 1) + 1)


def _explained(problem: str) -> str:
    for part, sentence in _EXPLAINED.items():
        if part in problem:
            return sentence
    return f"This is not valid YAML: {shortened(problem)}."


_BEGIN = ConfigLocation(line=1, column=1)


class _Builder(msgspec.Struct, kw_only=True):
    """Converts events to nodes. ``sizes``: the number of values in a node after its aliases are expanded."""

    lines: list[str]
    faults: list[tuple[ConfigLocation, str, str]] = msgspec.field(default_factory=list)
    anchors: dict[str, Node | None] = msgspec.field(default_factory=dict)
    sizes: dict[int, int] = msgspec.field(default_factory=dict)
    seen: ConfigLocation = _BEGIN

    def document(self, stream: Iterator[Any]) -> Node:
        root: Node | None = None
        for event in stream:
            if isinstance(event, events.DocumentStartEvent):
                self._check_start(event, first=root is None)
                if root is not None:
                    break
                root = self._node(next(stream), stream, "", 0)
        return root if root is not None else Scalar(location=ConfigLocation(line=1, column=1), text="", plain=True)

    def _check_start(self, event: Any, *, first: bool) -> None:
        if not first:
            self._fault(
                _mark(event),
                "",
                "A second document begins here, but a configuration is one document. Remove the '---'.",
            )
        if event.version and tuple(event.version) != (1, 2):
            version = ".".join(str(number) for number in event.version)
            self._fault(
                _mark(event), "", f"The file declares YAML {version}; it is read as YAML 1.2. Remove the '%YAML' line."
            )

    def _node(self, event: Any, stream: Iterator[Any], key: str, depth: int) -> Node:
        location = self.seen = _mark(event)
        if depth > MAX_DEPTH:
            raise DocumentError(f"Values are nested deeper than {MAX_DEPTH} levels. Nest them less deeply.", location)
        if isinstance(event, events.AliasEvent):
            return self._aliased(event.anchor, location)
        anchor = event.anchor
        if anchor:
            self.anchors[anchor] = None
        self._check_tag(event, key)
        node: Node
        if isinstance(event, events.ScalarEvent):
            node = self._scalar(event, key)
            size = 1
        elif isinstance(event, events.SequenceStartEvent):
            node = self._list(location, stream, key, depth)
            size = 1 + sum(self.sizes[id(item)] for item in node.items)
        else:
            node = self._mapping(location, stream, key, depth)
            size = 1 + sum(self.sizes[id(item)] for _, item in node.items)
        self._record_size(node, size)
        if anchor:
            self.anchors[anchor] = node
        return node

    def _record_size(self, node: Node, size: int) -> None:
        if size > MAX_NODES:
            raise DocumentError(
                f"After its aliases are expanded, this has more than {MAX_NODES} values. Use fewer aliases.",
                node.location,
            )
        self.sizes[id(node)] = size

    def _aliased(self, anchor: str, location: ConfigLocation) -> Node:
        if anchor not in self.anchors:
            raise DocumentError(
                f"There is no anchor '&{shortened(anchor)}' before this alias.{nearest(anchor, self.anchors)}"
                " Put a text that begins with '*' in quotes.",
                location,
            )
        node = self.anchors[anchor]
        if node is None:
            raise DocumentError(f"The alias '*{shortened(anchor)}' is inside its own anchor. Remove it.", location)
        return node

    def _scalar(self, event: Any, key: str) -> Scalar:
        text = event.value
        if any("\ud800" <= character <= "\udfff" for character in text):
            self._fault(
                _mark(event),
                key,
                "Half of a surrogate pair is not a character; write the character itself, or \\UXXXXXXXX.",
            )
            text = text.encode("utf-8", "replace").decode()
        return Scalar(
            location=_mark(event),
            text=text,
            plain=event.style is None or event.style == "" if event.tag is None else False,
            offsets=self._offsets(event, text),
        )

    def _offsets(self, event: Any, text: str) -> tuple[int, ...]:
        """Return the column offset of each character of a scalar; empty if the scalar has several lines or follows a BOM."""
        line, begin, quote = self.lines[event.start_mark.line], event.start_mark.column, event.style or ""
        is_on_line = event.end_mark.line == event.start_mark.line and line.startswith(quote or text, begin)
        if not is_on_line or quote not in _CHARACTERS:
            return ()
        characters = _CHARACTERS[quote].finditer(line, begin + len(quote))
        return tuple(found.start() - begin for _, found in zip(text, characters, strict=False))

    def _list(self, location: ConfigLocation, stream: Iterator[Any], key: str, depth: int) -> ListNode:
        items: list[Node] = []
        while not isinstance(event := next(stream), events.SequenceEndEvent):
            items.append(self._node(event, stream, f"{key}[{len(items)}]", depth + 1))
        return ListNode(location=location, items=tuple(items))

    def _mapping(self, location: ConfigLocation, stream: Iterator[Any], path: str, depth: int) -> MappingNode:
        items: dict[str, tuple[Scalar, Node]] = {}
        while not isinstance(event := next(stream), events.MappingEndEvent):
            name = self._node(event, stream, path, depth + 1)
            if not isinstance(name, Scalar):
                self._fault(
                    _mark(event),
                    path,
                    "Expected a text as the key, found a list or a mapping. Put a text that begins with '[' or '{' in quotes.",
                )
                self._node(next(stream), stream, path, depth + 1)
                continue
            key = f"{path}.{name.text}" if path else name.text
            node = self._node(next(stream), stream, key, depth + 1)
            if name.text in items:
                first = items[name.text][0].location
                self._fault(
                    _mark(event),
                    key,
                    f"The key '{shortened(name.text)}' is repeated; line {first.line} has it already. Remove one of them.",
                )
            elif name.text == "<<" and name.plain:
                self._fault(
                    _mark(event),
                    path,
                    "Merge keys ('<<') are not part of YAML 1.2; repeat the keys, or use an alias for a whole value.",
                )
            else:
                items[name.text] = (name, node)
        return MappingNode(location=location, items=tuple(items.values()))

    def _check_tag(self, event: Any, key: str) -> None:
        tag = None if event.tag is None else str(event.tag)
        if tag is None or (isinstance(event, events.ScalarEvent) and tag in _TEXT_TAGS):
            return
        if any(tag == f"tag:yaml.org,2002:{name}" and isinstance(event, kind) for name, kind in _PLAIN_TAGS.items()):
            return
        shown = shortened(tag.replace("tag:yaml.org,2002:", "!!"))
        self._fault(
            _mark(event), key, f"The tag '{shown}' is not allowed; a configuration has plain values only. Remove it."
        )

    def _fault(self, location: ConfigLocation, key: str, sentence: str) -> None:
        self.faults.append((location, key, sentence))


def _mark(event: Any) -> ConfigLocation:
    return ConfigLocation(line=event.start_mark.line + 1, column=event.start_mark.column + 1)
