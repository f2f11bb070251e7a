"""MF4: measurement files of version 4 of ASAM MDF."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Literal

from pydantic import Field

from connectors.formats.measurement import MeasurementFormat

if TYPE_CHECKING:
    from connectors.formats.measurement.channels import Recording


class Mf4(MeasurementFormat):
    """An MF4 file (ASAM MDF 4): channel groups with channels; also a file that its recorder did not close."""

    suffixes: ClassVar[tuple[str, ...]] = (".mf4",)
    needs: ClassVar[Mapping[str, str]] = {"asammdf": "ingestd[mf4]"}
    title: ClassVar[str] = "MF4"

    type: Literal["mf4"] = "mf4"
    sort_bytes: int = Field(
        default=64 * 2**20,
        ge=1,
        description=(
            "The bytes of memory for sorted records, if the file mixes records of several groups. Records above the limit are"
            " sorted again when they are read."
        ),
    )

    def open(self, file: BinaryIO, name: str) -> Recording:
        """See `connectors.formats.mf4.reader.Mf4Recording`."""
        from connectors.formats.mf4.reader import Mf4Recording  # noqa: PLC0415 - imported for a file that is read

        return Mf4Recording(file, name, sort_bytes=self.sort_bytes)
