"""Pipelines that read the same files by the same patterns, and remove them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ingestd.core.claims import FileClaim
from ingestd.settings.mistakes import LocatedMistake
from ingestd.settings.model import PipelineSettings
from ingestd.settings.node import Node, dotted, find
from ingestd.settings.validation import ConnectorKind


def equal_sources(
    root: Node, pipelines: Sequence[PipelineSettings], options_of: Callable[[str], type[ConnectorKind]], base: Path
) -> Iterator[LocatedMistake]:
    """Yield a mistake for each pipeline that reads the same files as an earlier one, if one of both removes them.

    Files that only some of the patterns have in common are found when they are read (`ClaimedFiles`). Paths of ``pipelines`` are
    joined to ``base``.
    """
    known: dict[object, tuple[str, int, FileClaim]] = {}
    for index, pipeline in enumerate(pipelines):
        if not pipeline.source.complete:
            continue
        path, name = ("pipelines", index, "source", "path"), pipeline.source.connector
        location = find(root, path).node.location
        try:
            claims = options_of(name).claims(pipeline.source.options, base)
        except Exception as error:  # noqa: BLE001 - a connector may be foreign code
            what = f"The connector '{name}' failed while it listed the files that it reads ({type(error).__name__})"
            yield location, dotted(path), f"{what}. This is a bug of the connector; report it to its author."
            continue
        for claim in claims:
            before, line, other = known.setdefault(
                (claim.folder, frozenset(claim.patterns)), (pipeline.name, location.line, claim)
            )
            if before != pipeline.name and (claim.takes or other.takes):
                yield location, dotted(path), _sentence((before, line, other), (pipeline.name, location.line, claim))


def _sentence(first: tuple[str, int, FileClaim], second: tuple[str, int, FileClaim]) -> str:
    (before, line, _), (name, second_line, claim) = first, second
    return (
        f"Pipelines '{before}' (line {line}) and '{name}' (line {second_line}) read the same files of {claim.folder}, and"
        f" '{name if claim.takes else before}' removes files that it has read. Give each pipeline a different folder or pattern,"
        " or set after: keep in both."
    )
