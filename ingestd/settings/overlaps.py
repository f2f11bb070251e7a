"""Conflicts of pipelines: one removes or writes files that another one reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ingestd.core.claims import FileClaim, ancestors, common_file, fed_folder
from ingestd.settings.mistakes import Placed
from ingestd.settings.model import PipelineSettings
from ingestd.settings.node import Node, dotted, find
from ingestd.settings.validation import ConnectorKind


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    index: int
    pipeline: str
    line: int
    claim: FileClaim


def overlaps(
    root: Node, pipelines: Sequence[PipelineSettings], options_of: Callable[[str], type[ConnectorKind]], base: Path
) -> Iterator[Placed]:
    """Yield a mistake for each conflicting pair, at the second path. ``pipelines``: with paths joined to ``base``."""
    sources: list[_Source] = []
    for index, pipeline in enumerate(pipelines):
        if not pipeline.source.complete:
            continue
        place, name = find(root, _path(index)).node.place, pipeline.source.connector
        try:
            claims = options_of(name).claims(pipeline.source.options, base)
        except Exception as error:  # noqa: BLE001 - a connector may be anyone's code
            what = f"The connector '{name}' failed while it named the files that it reads ({type(error).__name__})"
            yield place, dotted(_path(index)), f"{what}. That is a fault of the connector; report it to its author."
            continue
        sources += [_Source(index=index, pipeline=pipeline.name, line=place.line, claim=claim) for claim in claims]
    by_folder: dict[str, list[_Source]] = {}
    for source in sources:
        by_folder.setdefault(source.claim.folder, []).append(source)
    told: set[tuple[int, int]] = set()
    for source in sources:
        for first, second, sentence in _of_one(source, by_folder):
            if (pair := (min(first.index, second.index), max(first.index, second.index))) not in told:
                told.add(pair)
                path = _path(second.index)
                yield find(root, path).node.place, dotted(path), sentence


def _of_one(source: _Source, by_folder: dict[str, list[_Source]]) -> Iterator[tuple[_Source, _Source, str]]:
    for folder in ancestors(source.claim.folder):
        for other in by_folder.get(folder, ()):
            if other.index != source.index and (source.claim.takes or other.claim.takes):
                first, second = sorted((source, other), key=lambda one: one.index)
                if (name := common_file(first.claim, second.claim)) is not None:
                    yield first, second, _both_read(first, second, name)
    for put in source.claim.puts:
        for folder in ancestors(put):
            for other in by_folder.get(folder, ()):
                if other.index != source.index and (fed := fed_folder(source.claim, other.claim)) is not None:
                    first, second = sorted((source, other), key=lambda one: one.index)
                    yield first, second, _feeds(source, other, fed)


def _both_read(first: _Source, second: _Source, name: str) -> str:
    folder = max(first.claim.folder, second.claim.folder, key=len)
    takers = [f"'{one.pipeline}'" for one in (first, second) if one.claim.takes]
    moves = "both take away what they have read" if len(takers) == 2 else f"{takers[0]} takes away what it has read"
    return (
        f"Pipelines '{first.pipeline}' (line {first.line}) and '{second.pipeline}' (line {second.line}) both read files such as "
        f"{folder.rstrip('/')}/{name}, and {moves}, so that the other one misses them. Give each a folder or a pattern of its"
        " own, or set after: keep in both."
    )


def _feeds(writer: _Source, reader: _Source, folder: str) -> str:
    return (
        f"Pipeline '{writer.pipeline}' (line {writer.line}) puts files into {folder}, and pipeline '{reader.pipeline}' "
        f"(line {reader.line}) reads files there: it would read them as new ones. Put the files of '{writer.pipeline}' into a"
        f" folder that '{reader.pipeline}' does not read, or give '{reader.pipeline}' a pattern that matches none of them."
    )


def _path(index: int) -> tuple[str | int, ...]:
    return ("pipelines", index, "source", "path")
