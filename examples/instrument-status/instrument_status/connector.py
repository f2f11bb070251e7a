"""The connector: each status file is a partition, and each reading of it is a snapshot."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

from ingestd.sdk import Batch, Connector, Cursor, Partition, SourceBroken, SourceContext, SourceUnavailable, Step, pack
from instrument_status.options import InstrumentStatusOptions
from instrument_status.status_file import parse


class InstrumentStatusConnector(Connector):
    """Reads folders of files with lines of the form ``name = value``, as many laboratory instruments write them."""

    Options: ClassVar[type[InstrumentStatusOptions]] = InstrumentStatusOptions
    scheduled_only: ClassVar[bool] = (
        True  # The connector does not watch the folder; the pipeline's schedule starts each reading.
    )
    memory_grows: ClassVar[str] = "A whole file is in memory, because it has the few values of one instrument."
    options: InstrumentStatusOptions

    def __init__(self, options: InstrumentStatusOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        self._folder = context.base / options.path
        self._seconds_to_wait: float | None = None

    def partitions(self) -> Iterable[Partition]:
        """One partition for each file that is old enough (``settle_seconds``), by name.

        Raises:
            SourceUnavailable: the folder cannot be listed.
        """
        ready, self._seconds_to_wait = [], None
        for path in self._files():
            try:
                age = self.context.now() - path.stat().st_mtime
            except FileNotFoundError:
                continue  # an instrument replaced or removed it since the folder was listed
            if age >= self.options.settle_seconds:
                ready.append(Partition(name=path.name, deletes=self.options.deletes))
            else:
                left = self.options.settle_seconds - age
                self._seconds_to_wait = min(left, self._seconds_to_wait or left)
        return ready

    def _files(self) -> list[Path]:
        try:
            os.scandir(self._folder).close()  # glob() does not raise for a folder that is missing
            return sorted(path for path in self._folder.glob(self.options.pattern) if path.is_file())
        except OSError as error:
            raise SourceUnavailable(
                f"{self._folder} cannot be listed: {error.strerror}. Create or mount the folder, or correct the setting path."
            ) from error

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        """The whole file in one batch; nothing if the file is the one of ``cursor``.

        Raises:
            SourceUnavailable: the file cannot be opened now.
            SourceBroken: the file is not UTF-8 text.
        """
        path = self._folder / partition.name
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                version = {"inode": status.st_ino, "mtime_ns": status.st_mtime_ns, "size": status.st_size}
                if cursor is not None and version.items() <= cursor.items():
                    return
                content = file.read()
        except FileNotFoundError:
            return  # it was removed since partitions() found it
        except OSError as error:
            raise SourceUnavailable(f"{path} cannot be read: {error.strerror}. It is read again later.") from error
        sha256 = hashlib.sha256(content).hexdigest()
        position = {**version, "sha256": sha256}
        if cursor is not None and cursor.get("sha256") == sha256:
            yield dataclasses.replace(pack([], cursor=position, last=True), unchanged=True)
            return
        try:
            parsed = parse(content.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise SourceBroken(f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from error
        yield pack(
            parsed.records,
            cursor=position,
            positions=parsed.positions,
            facts={"file.name": path.name, "file.stem": path.stem, "file.sha256": sha256},
            rejects=parsed.rejects,
            last=True,
        )

    def waiting(self) -> float | None:
        """Seconds until the next file is old enough; None if no file waits."""
        return self._seconds_to_wait

    def holds(self, name: str) -> bool:
        """Whether the folder still has the file ``name``; what is stored of removed files can then be pruned."""
        return any(path.name == name for path in self._files())

    def verify(self) -> Iterable[Step]:
        """Whether the folder can be listed, and how many files match."""
        try:
            files = self._files()
        except SourceUnavailable as error:
            yield Step(name="folder", outcome="failed", sentence=str(error))
            return
        yield Step(name="folder", outcome="passed", sentence=f"{self._folder} can be listed.")
        sentence = f"Files that match {self.options.pattern}: {len(files)}."
        yield Step(name="files", outcome="passed" if files else "skipped", sentence=sentence)
