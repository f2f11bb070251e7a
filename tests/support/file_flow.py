"""The way of files from drop to receipt, with a real connector, reader and mirror, and a simulated service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from collections.abc import Mapping as MappingOf
from pathlib import Path
from typing import Any

import msgspec

from connectors.directory import DirectoryConnector, DirectoryOptions
from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import LookupFiles, PassReport, Reader
from ingestd.mirror.port import RejectedEntry
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import Connector, SourceContext
from ingestd.telemetry import Event

SINK = SinkAddress(workspace="bench", by="label", name="Masses")


class FileFlow:
    """A pipeline that reads ``base/drop``. ``held``: the entries of the service; ``refuses``: values that the service rejects."""

    def __init__(
        self, base: Path, *, key: str = "{part}", value: str = "{mass}", spec: EntrySpec | None = None, **options: Any
    ) -> None:
        self.closed = False
        self.base = base
        self.drop = base / "drop"
        self.drop.mkdir(exist_ok=True)
        self.done = base / "done"
        self.now = 4_000_000_000.0
        self.options = {"path": "drop", "settle_seconds": 0, "after": "archive", "archive": "done"} | options
        self.held: dict[str, str] = {}
        self.refuses: Collection[str] = ()
        self.events: list[Event] = []
        self.notices: list[str] = []
        self.other_readers: MappingOf[str, Collection[str]] = {}  # by the end of the path
        self.mirror = SqliteMirror.open(base / "ingestd.db", now=lambda: self.now)
        self.mirror.intake.activate(["flow"])
        self._mapping = Mapping([spec or EntrySpec(key=key, value=value)])
        self._start()

    def restart(self) -> None:
        """Close the connector, and replace it by a new connector without state, as a restart of the process does."""
        self.connector.close()
        self._start()

    def _start(self) -> None:
        context = SourceContext(
            pipeline="flow", base=self.base, now=lambda: self.now, log=self.notices.append, other_readers=self._others
        )
        self.connector = self.connect(context)
        self.reader = Reader(
            pipeline="flow", connector=self.connector, mapping=self._mapping, sink=SINK, mirror=self.mirror.intake,
            emit=self.events.append, lookups=LookupFiles(self._mapping.table_sources, base=self.base),
        )  # fmt: skip

    def _others(self, path: str) -> Collection[str]:
        return next((names for end, names in self.other_readers.items() if path.endswith(end)), ())

    def connect(self, context: SourceContext) -> Connector:
        """Return the connector. A subclass returns a connector for another location of the files."""
        return DirectoryConnector(DirectoryOptions.model_validate(self.options), context)

    def write(self, name: str, content: str | bytes, encoding: str = "utf-8") -> Path:
        path = self.drop / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode(encoding) if isinstance(content, str) else content)
        return path

    def pass_once(self, *, stop: bool = False) -> PassReport:
        """Read, deliver and acknowledge. ``stop``: stop the reader before the acknowledgement, as `ingestd sync` does."""
        report = self.reader.read_pass()
        asyncio.run(self._deliver())
        if stop:
            self.reader.stop()
        self.reader.acknowledge_partitions()
        return report

    async def _deliver(self) -> None:
        for lane in await self.mirror.delivery.lanes():
            while (claim := await self.mirror.delivery.claim(lane.id, max_items=1000, max_bytes=10**6)) is not None:
                items = [item for part in claim.parts for item in msgspec.json.decode(part.body)]
                refused = [
                    item["key"] for item in items if item.get("value") in self.refuses and not item.get("delete")
                ]
                for item in items:
                    if item.get("delete"):
                        del self.held[item["key"]]
                    elif item["key"] not in refused:
                        self.held[item["key"]] = item["value"]
                await self.mirror.delivery.acknowledge_some(
                    claim,
                    delivered=[item["key"] for item in items if item["key"] not in refused],
                    rejected=[
                        RejectedEntry(key=key, reason="Too heavy, says the service.", status=422) for key in refused
                    ],
                )
                await self.mirror.delivery.release(claim)

    def receipt(self, name: str) -> MappingOf[str, Any]:
        receipt: MappingOf[str, Any] = json.loads((self.done / f"{name}.receipt.json").read_bytes())
        return receipt

    def rejected(self) -> list[tuple[str, object]]:
        """Return partition and position of each rejection."""
        return [(one.partition, one.position) for one in self.mirror.status.rejections(limit=1000)]

    def files(self, folder: Path) -> list[str]:
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

    def close(self) -> None:
        """Close the connector and the mirror. Later calls do nothing: the test and its fixture may both call this."""
        if not self.closed:
            self.closed = True
            self.connector.close()
            self.mirror.close()
