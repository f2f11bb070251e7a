"""Unreadable records of a connector, read by a real reader into a real state file."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import PassReport, Reader
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import Batch, Connector, Cursor, Partition, RecordUnreadable, SourceContext, pack


class LinesConnector(Connector):
    """Lines ``part;mass`` in memory, two in a batch; the cursor is the number of lines read."""

    class Options(BaseModel):
        snapshot: bool
        raises: bool = False

    lines: list[str]

    def partitions(self) -> Iterable[Partition]:
        return [Partition(name="lines", snapshot=self.options.snapshot)]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch | RecordUnreadable]:
        start = 0 if partition.snapshot or cursor is None else int(str(cursor["lines"]))
        for begin in range(start, len(self.lines), 2):
            numbered = list(enumerate(self.lines[begin : begin + 2], start=begin + 1))
            for number, line in numbered:
                if ";" not in line:
                    error = RecordUnreadable("The line has no semicolon.", position=number, record={"text": line})
                    if self.options.raises:
                        raise error
                    yield error
            good = [(number, line.split(";")) for number, line in numbered if ";" in line]
            end = numbered[-1][0]
            yield pack(
                [{"part": part, "mass": mass} for _, (part, mass) in good],
                positions=[number for number, _ in good],
                cursor={"lines": end},
                last=end == len(self.lines),
            )


class LinesPipeline:
    """A pipeline that reads ``connector`` into a state file."""

    def __init__(self, mirror: SqliteMirror, *, snapshot: bool, raises: bool = False) -> None:
        context = SourceContext(pipeline="pipe", base=Path(), now=lambda: 0.0)
        self.connector = LinesConnector(LinesConnector.Options(snapshot=snapshot, raises=raises), context)
        self.connector.lines = []
        self._mirror = mirror
        self._reader = Reader(
            pipeline="pipe", connector=self.connector, mapping=Mapping([EntrySpec(key="{part}", value="{mass}")]),
            sink=SinkAddress(workspace="w", by="label", name="s"), mirror=mirror.intake, emit=lambda event: None,
        )  # fmt: skip

    def read(self, *lines: str) -> PassReport:
        self.connector.lines += lines
        return self._reader.read_pass()

    def rejected(self) -> list[tuple[object, str]]:
        return [(one.position, one.reason) for one in self._mirror.status.selected(Selection(), limit=100)]

    def pending(self) -> int:
        return sum(sink.pending for sink in self._mirror.status.sinks())


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Callable[..., LinesPipeline]]:
    mirror = SqliteMirror.open(tmp_path / "state.db")
    mirror.intake.activate(["pipe"])
    yield lambda **options: LinesPipeline(mirror, **options)
    mirror.close()


@pytest.mark.parametrize("snapshot", [True, False])
def test_an_unreadable_record_is_rejected_with_its_position_and_the_others_become_entries(
    desk: Callable[..., LinesPipeline], snapshot: bool
) -> None:
    lines = desk(snapshot=snapshot)
    report = lines.read("a;1", "b", "c;3", "d;4", "e")
    assert not report.broken
    assert not report.rejected
    assert lines.rejected() == [(2, "The line has no semicolon."), (5, "The line has no semicolon.")]
    assert lines.pending() == 3


def test_an_incremental_reading_continues_after_an_unreadable_last_record(desk: Callable[..., LinesPipeline]) -> None:
    lines = desk(snapshot=False)
    lines.read("a;1", "b")
    assert [run.records for run in lines.read("c;3").read] == [1]
    assert lines.rejected() == [(2, "The line has no semicolon.")]
    assert lines.pending() == 2


def test_an_error_that_is_raised_instead_of_yielded_rejects_the_partition_and_names_the_record(
    desk: Callable[..., LinesPipeline],
) -> None:
    lines = desk(snapshot=True, raises=True)
    (sentence,) = lines.read("a;1", "b", "c;3").rejected
    assert sentence == (
        "lines: The connector stopped at record 2, because it raised RecordUnreadable instead of yielding it. "
        "The line has no semicolon."
    )
