"""The file of `ingestd test`: its cases, with the location of each value. Scalars keep their text: ``0.30`` needs no quotes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from ingestd.core.errors import ConfigurationError
from ingestd.core.normal_form import nfc
from ingestd.core.phrases import nearest
from ingestd.settings.configuration_file import load_document, mistake_at
from ingestd.settings.node import ListNode, MappingNode, Node, Scalar, described

T = TypeVar("T")

_CASE = ("name", "pipeline", "rows", "columns", "sample", "facts", "entries", "rejected", "broken", "partial")


class ExpectedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that a case expects. ``value``, ``type``: None permits any."""

    line: int
    key: str
    value: str | None
    type: str | None


class ExpectedReject(msgspec.Struct, frozen=True, kw_only=True):
    """A rejected record that a case expects: its position as text (empty: any), and a part of its reason."""

    line: int
    row: str
    reason: str


class MappingCase(msgspec.Struct, frozen=True, kw_only=True):
    """One case. Its records are in either ``rows`` or ``sample``.

    ``columns``: the header of the rows (None: a record may lack any field). ``broken``: a part of the reason why the whole
    partition is rejected (None: it is not rejected). ``partial``: entries and rejections that are not expected are ignored.
    """

    file: Path
    line: int
    name: str
    pipeline: str
    rows: tuple[Mapping[str, str | None], ...] | None
    columns: tuple[str, ...] | None
    sample: Path | None
    facts: Mapping[str, str]
    entries: tuple[ExpectedEntry, ...]
    rejected: tuple[ExpectedReject, ...]
    broken: str | None
    partial: bool


def read_cases(file: Path, *, pipelines: Sequence[str]) -> tuple[MappingCase, ...]:
    """Read the cases of a file. A case without ``pipeline`` is for the pipeline of the file, or for the only pipeline.

    Raises:
        ConfigurationError: the file can't be read, or has a mistake.
    """
    document = load_document(file)
    if document.faults:
        raise ConfigurationError(tuple(mistake_at(file, *fault) for fault in document.faults))
    return _CaseReader(file=file, pipelines=pipelines).cases(document.root)


class _CaseReader(msgspec.Struct, frozen=True, kw_only=True):
    file: Path
    pipelines: Sequence[str]

    def cases(self, root: Node) -> tuple[MappingCase, ...]:
        top = self._keys(root, ("pipeline", "cases"), "the file")
        if "cases" not in top:
            raise self._mistake(root, "cases", "The file has no 'cases'. Add a list of cases.")
        default = self._given(top, "pipeline", "")
        found = tuple(self._case(node, default) for node in self._items(top["cases"], "cases"))
        if not found:
            raise self._mistake(top["cases"], "cases", "Expected at least one case, found an empty list.")
        return found

    def _case(self, node: Node, default: str) -> MappingCase:
        at = self._keys(node, _CASE, "a case")
        name = self._given(at, "name", f"line {node.location.line}")
        sample = self._given(at, "sample", None)
        if ("rows" in at) == ("sample" in at):
            raise self._mistake(node, "rows", f"The case '{name}' needs either 'rows' or 'sample', and not both.")
        if not at.keys() & {"entries", "rejected", "broken"}:
            raise self._mistake(
                node, "entries", f"The case '{name}' expects nothing. Add 'entries', 'rejected' or 'broken'."
            )
        if "columns" in at and "sample" in at:
            raise self._mistake(at["columns"], "columns", "A sample has its own columns. Remove 'columns'.")
        return MappingCase(
            file=self.file,
            line=node.location.line,
            name=name,
            pipeline=self._pipeline(node, at, default),
            rows=self._each(at, "rows", self._row),
            columns=self._each(at, "columns", lambda one: self._text(one, "columns")),
            sample=self.file.absolute().parent / sample if sample is not None else None,
            facts=self._facts(at["facts"]) if "facts" in at else {},
            entries=self._each(at, "entries", self._entry) or (),
            rejected=self._each(at, "rejected", self._reject) or (),
            broken=self._given(at, "broken", None),
            partial=self._truth(at["partial"], "partial") if "partial" in at else False,
        )

    def _pipeline(self, node: Node, at: Mapping[str, Node], default: str) -> str:
        name = self._given(at, "pipeline", default)
        if not name and len(self.pipelines) == 1:
            return self.pipelines[0]
        if not name:
            raise self._mistake(
                node, "pipeline", "The configuration has several pipelines. Name one in the case or in the file."
            )
        if name not in self.pipelines:
            hint = nearest(name, self.pipelines) or f" The pipelines are: {', '.join(self.pipelines)}."
            raise self._mistake(at.get("pipeline", node), "pipeline", f"There is no pipeline '{name}'.{hint}")
        return name

    def _row(self, node: Node) -> dict[str, str | None]:
        return {name.text: self._cell(value) for name, value in self._mapping(node, "rows").items}

    def _facts(self, node: Node) -> dict[str, str]:
        return {name.text: self._text(value, "facts") for name, value in self._mapping(node, "facts").items}

    def _entry(self, node: Node) -> ExpectedEntry:
        at = self._keys(node, ("key", "value", "type"), "an expected entry")
        if "key" not in at:
            raise self._mistake(node, "entries", "An expected entry needs a 'key'.")
        return ExpectedEntry(
            line=node.location.line,
            key=nfc(self._text(at["key"], "key")),
            value=self._given(at, "value", None),
            type=self._given(at, "type", None),
        )

    def _reject(self, node: Node) -> ExpectedReject:
        at = self._keys(node, ("row", "reason"), "an expected rejection")
        if not at:
            raise self._mistake(node, "rejected", "An expected rejection needs 'row' or 'reason'.")
        return ExpectedReject(
            line=node.location.line,
            row=self._given(at, "row", ""),
            reason=self._given(at, "reason", ""),
        )

    def _given(self, at: Mapping[str, Node], name: str, default: T) -> str | T:
        return self._text(at[name], name) if name in at else default

    def _each(self, at: Mapping[str, Node], name: str, read: Callable[[Node], T]) -> tuple[T, ...] | None:
        return tuple(map(read, self._items(at[name], name))) if name in at else None

    def _keys(self, node: Node, known: Sequence[str], what: str) -> dict[str, Node]:
        found = {}
        for key, value in self._mapping(node, what).items:
            if key.text not in known:
                hint = nearest(key.text, known) or f" It can have: {', '.join(known)}."
                raise self._mistake(key, key.text, f"{what.capitalize()} has no '{key.text}'.{hint}")
            found[key.text] = value
        return found

    def _mapping(self, node: Node, key: str) -> MappingNode:
        if isinstance(node, MappingNode):
            return node
        raise self._mistake(node, key, f"Expected a mapping of keys to values, found {described(node)}.")

    def _items(self, node: Node, key: str) -> tuple[Node, ...]:
        if isinstance(node, ListNode):
            return node.items
        raise self._mistake(node, key, f"Expected a list, found {described(node)}.")

    def _cell(self, node: Node) -> str | None:
        if isinstance(node, Scalar):
            return None if node.value is None else node.text
        raise self._mistake(node, "rows", f"Expected a text, found {described(node)}.")

    def _text(self, node: Node, key: str) -> str:
        if isinstance(node, Scalar) and node.value is not None:
            return node.text
        raise self._mistake(node, key, f"Expected a text, found {described(node)}.")

    def _truth(self, node: Node, key: str) -> bool:
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        raise self._mistake(node, key, f"Expected true or false, found {described(node)}.")

    def _mistake(self, node: Node, key: str, sentence: str) -> ConfigurationError:
        return ConfigurationError((mistake_at(self.file, node.location, key, sentence),))
