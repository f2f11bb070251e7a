"""Conflicts of pipelines: one removes or writes files that another one reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from ingestd.core.claims import FileClaim, ancestors, common_file, fed_folder
from ingestd.settings.mistakes import LocatedMistake
from ingestd.settings.model import PipelineSettings
from ingestd.settings.node import Node, dotted, find
from ingestd.settings.validation import ConnectorKind


class _Source(msgspec.Struct, frozen=True, kw_only=True):
    index: int
    pipeline: str
    line: int
    claim: FileClaim


def overlaps(
    root: Node, pipelines: Sequence[PipelineSettings], options_of: Callable[[str], type[ConnectorKind]], base: Path
) -> Iterator[LocatedMistake]:
    """Yield a mistake for each conflicting pair, at the second path. Paths of ``pipelines`` are joined to ``base``."""
    sources: list[_Source] = []
    for index, pipeline in enumerate(pipelines):
        if not pipeline.source.complete:
            continue
        location, name = find(root, _path(index)).node.location, pipeline.source.connector
        try:
            claims = options_of(name).claims(pipeline.source.options, base)
        except Exception as error:  # noqa: BLE001 - a connector may be foreign code
            what = f"The connector '{name}' failed while it listed the files that it reads ({type(error).__name__})"
            yield location, dotted(_path(index)), f"{what}. This is a bug of the connector; report it to its author."
            continue
        sources += [_Source(index=index, pipeline=pipeline.name, line=location.line, claim=claim) for claim in claims]
    by_folder: dict[str, list[_Source]] = {}
    for source in sources:
        by_folder.setdefault(source.claim.folder, []).append(source)
    reported: set[tuple[int, int]] = set()
    for source in sources:
        for first, second, sentence in _conflicts_of(source, by_folder):
            if (pair := (min(first.index, second.index), max(first.index, second.index))) not in reported:
                reported.add(pair)
                path = _path(second.index)
                yield find(root, path).node.location, dotted(path), sentence


def _conflicts_of(source: _Source, by_folder: dict[str, list[_Source]]) -> Iterator[tuple[_Source, _Source, str]]:
    for folder in ancestors(source.claim.folder):
        for other in by_folder.get(folder, ()):
            if other.index != source.index and (source.claim.takes or other.claim.takes):
                first, second = sorted((source, other), key=lambda one: one.index)
                if (name := common_file(first.claim, second.claim)) is not None:
                    yield first, second, _both_read(first, second, name)
    for folder_written in source.claim.puts:
        for folder in ancestors(folder_written):
            for other in by_folder.get(folder, ()):
                if other.index != source.index and (fed := fed_folder(source.claim, other.claim)) is not None:
                    first, second = sorted((source, other), key=lambda one: one.index)
                    yield first, second, _feeds(source, other, fed)


def _both_read(first: _Source, second: _Source, name: str) -> str:
    folder = max(first.claim.folder, second.claim.folder, key=len)
    removers = [f"'{one.pipeline}'" for one in (first, second) if one.claim.takes]
    removal = (
        "both remove the files that they have read"
        if len(removers) == 2
        else f"{removers[0]} removes files that it has read"
    )
    return (
        f"Pipelines '{first.pipeline}' (line {first.line}) and '{second.pipeline}' (line {second.line}) both read files such as "
        f"{folder.rstrip('/')}/{name}, and {removal}. The other pipeline then misses them. Give each pipeline a different "
        "folder or pattern, or set after: keep in both."
    )


def _feeds(writer: _Source, reader: _Source, folder: str) -> str:
    return (
        f"Pipeline '{writer.pipeline}' (line {writer.line}) writes files to {folder}, and pipeline '{reader.pipeline}' "
        f"(line {reader.line}) reads that folder, so it would read them as new files. Write the files of '{writer.pipeline}' to a"
        f" folder that '{reader.pipeline}' does not read, or give '{reader.pipeline}' a pattern that matches none of them."
    )


def _path(index: int) -> tuple[str | int, ...]:
    return ("pipelines", index, "source", "path")
