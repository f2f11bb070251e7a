"""A source with content that a test defines: partitions of rows, read in small batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel

from ingestd.sdk import (
    Acknowledgement,
    Batch,
    Connector,
    Cursor,
    Deletes,
    Partition,
    Reject,
    SourceContext,
    SourceError,
    pack,
)

Row = dict[str, str | None]


@dataclass
class Content:
    """The current content of a partition. ``version``: the number of its writes."""

    rows: list[Row]
    version: int = 1
    rejects: tuple[Reject, ...] = ()
    fails_after: int | None = None
    error: SourceError | None = None


class NoOptions(BaseModel):
    pass


@dataclass
class Script:
    """The content of the source. All connectors of the source share it, like a folder."""

    deletes: Deletes = "keep"
    batch_rows: int = 2
    contents: dict[str, Content] = field(default_factory=dict)
    acknowledged: list[tuple[str, int]] = field(default_factory=list)
    readings: int = 0
    taken_away: dict[str, int] = field(default_factory=dict)

    def take_away(self, name: str) -> None:
        """Remove a partition. If it is written again, it has a newer version."""
        self.taken_away[name] = self.contents.pop(name).version

    def write(self, name: str, rows: Sequence[Row], *, rejects: tuple[Reject, ...] = ()) -> None:
        before = self.contents.get(name)
        version = before.version if before else self.taken_away.get(name, 0)
        self.contents[name] = Content(rows=list(rows), version=version + 1, rejects=rejects)


class ScriptedConnector(Connector):
    Options = NoOptions

    def __init__(self, script: Script) -> None:
        super().__init__(NoOptions(), SourceContext(pipeline="scripted", base=Path(), now=lambda: 0.0))
        self.script = script

    def partitions(self) -> Iterable[Partition]:
        return [Partition(name=name, deletes=self.script.deletes) for name in self.script.contents]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        content = self.script.contents[partition.name]
        token = {"version": content.version, "rows": repr((content.rows, content.rejects))}
        if cursor is not None and cursor["version"] == content.version:
            return
        self.script.readings += 1
        if cursor is not None and cursor["rows"] == token["rows"] and not content.rejects:
            yield pack([], cursor=token, last=True, header=True).__class__(
                records=pack([], cursor={}).records, positions=pack([], cursor={}).positions, cursor=token, last=True,
                unchanged=True,
            )  # fmt: skip
            return
        step = self.script.batch_rows
        starts = range(0, max(len(content.rows), 1), step)
        for start in starts:
            if content.error is not None and content.fails_after is not None and start >= content.fails_after:
                raise content.error
            rows = content.rows[start : start + step]
            last = start == starts[-1]
            positions = range(start + 2, start + 2 + len(rows))
            yield pack(
                rows,
                cursor=token,
                positions=positions,
                facts={"file.name": partition.name, "file.stem": partition.name},
                rejects=content.rejects if last else (),
                last=last,
            )

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:  # noqa: ARG002 - versions are enough
        self.script.acknowledged.append((partition.name, int(str(cursor["version"]))))
