"""A source that is only read: no call reaches the connector that could change it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel

from ingestd.intake.read_only_source import ReadOnlySource
from ingestd.sdk import Acknowledgement, Batch, Connector, Cursor, Holds, Partition, SourceContext, Watches, pack


class Touchy(Connector):
    """Notes the calls that it receives."""

    class Options(BaseModel):
        """No options."""

    def __init__(self) -> None:
        super().__init__(self.Options(), SourceContext(pipeline="p", base=Path(), now=lambda: 0.0))
        self.calls: list[str] = []

    def partitions(self) -> Iterable[Partition]:
        self.calls.append("partitions")
        return [Partition(name="one")]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        self.calls.append(f"read {partition.name} {cursor}")
        yield pack([{"n": "1"}], cursor={}, last=True)

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:
        self.calls.append(f"acknowledged {partition.name} {cursor} {acknowledgement.run}")

    def failed(self, partition: Partition, reason: str) -> None:
        self.calls.append(f"failed {partition.name} {reason}")

    def holds(self, name: str) -> bool:
        self.calls.append(f"holds {name}")
        return True

    @property
    def record_settings(self) -> Mapping[str, str]:
        return {"format": "csv"}

    def pause_backfill(self, paused: bool) -> None:
        self.calls.append(f"pause_backfill {paused}")

    def waiting(self) -> float | None:
        return 3.0

    def interrupt(self) -> None:
        self.calls.append("interrupt")

    def reset(self) -> None:
        self.calls.append("again")

    def close(self) -> None:
        self.calls.append("close")


def test_readings_reach_the_connector_and_acknowledgements_do_not() -> None:
    connector = Touchy()
    source = ReadOnlySource(connector)
    (partition,) = source.partitions()
    assert len(list(source.read(partition, None))) == 1
    acknowledgement = Acknowledgement(
        run=1, started=0, ended=0, pipeline="p", sink="s", digest="", records=1, created=1, updated=0, unchanged=0, removed=0,
        rejected=0, refused=0, valueless=0, facts={}, rejects=lambda: iter(()),
    )  # fmt: skip
    source.acknowledge(partition, {}, acknowledgement)
    source.failed(partition, "It is broken.")
    source.reset()
    source.interrupt()
    source.close()
    assert connector.calls == ["partitions", "read one None", "again", "interrupt", "close"]
    assert source.waiting() == 3.0


def test_a_plan_reads_with_the_settings_of_the_records_and_with_paused_backfills() -> None:
    connector = Touchy()
    source = ReadOnlySource(connector)
    source.pause_backfill(True)
    assert source.record_settings == {"format": "csv"}
    assert connector.calls == ["pause_backfill True"]


def test_capabilities_are_hidden() -> None:
    source = ReadOnlySource(Touchy())
    assert not isinstance(source, Holds | Watches)
