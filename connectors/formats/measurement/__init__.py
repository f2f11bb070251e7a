"""Measurement files: channels with many samples, and the statistics that a data sink can hold."""

from __future__ import annotations

import errno
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Literal, TypeAlias

from pydantic import Field

from ingestd.sdk import SourceBroken, SourceError
from ingestd.sdk.formats import IsolatedFormat, RecordChunk

if TYPE_CHECKING:
    from connectors.formats.measurement.channels import Recording

Statistic: TypeAlias = Literal["count", "min", "max", "mean", "rms", "first", "last"]

_DISK_ERRORS = {errno.EIO, errno.ESTALE, errno.ENOSPC, errno.ETIMEDOUT, errno.ENODEV, errno.ENXIO}
_REASON_CHARACTERS = 300


class MeasurementFormat(IsolatedFormat):
    """A file of channels. A subclass opens it."""

    title: ClassVar[str]
    """The name of the format in sentences for users."""

    records: Literal["channels", "samples", "properties"] = Field(
        default="channels",
        description=(
            "What a record is. channels: one channel, with its statistics and its properties. samples: one sample of all channels"
            " of a group. properties: one property of the file, of a group or of a channel."
        ),
    )
    statistics: tuple[Statistic, ...] = Field(
        default=("count", "min", "max", "mean", "rms", "first", "last"),
        description="The statistics that a record of a channel has. If none is set, no sample is read.",
    )
    select: str = Field(
        default="*",
        min_length=1,
        description="Which channels are read: a glob of GROUP/CHANNEL, such as Run/*. * also matches slashes.",
    )

    @abstractmethod
    def open(self, file: BinaryIO, name: str) -> Recording:
        """Return the content of an open file. An exception is reported as damage of the file, unless it is a `SourceError`."""

    def parse(self, file: BinaryIO, name: str) -> Iterator[RecordChunk]:
        """See `connectors.formats.measurement.records.read_recording`."""
        from connectors.formats.measurement.records import read_recording  # noqa: PLC0415 - imported for a file that is read

        with _damage_reported(name, self.title):
            yield from read_recording(
                self.open(file, name), records=self.records, statistics=self.statistics, select=self.select
            )


@contextmanager
def _damage_reported(name: str, title: str) -> Iterator[None]:
    """Report an exception of a library as damage of the file, in a sentence. Errors of disk and memory are raised unchanged."""
    try:
        yield
    except (SourceError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
            raise
        why = " ".join(str(error).split())[:_REASON_CHARACTERS] or type(error).__name__
        raise SourceBroken(
            f"{name} can't be read as {title}: {why.rstrip('.')}. It is damaged, incomplete or of another format."
        ) from error
