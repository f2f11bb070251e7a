"""TDMS: measurement files of LabVIEW and other products of National Instruments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Literal

from connectors.formats.measurement import MeasurementFormat

if TYPE_CHECKING:
    from connectors.formats.measurement.channels import Recording


class Tdms(MeasurementFormat):
    """A TDMS file: groups of channels."""

    suffixes: ClassVar[tuple[str, ...]] = (".tdms",)
    needs: ClassVar[Mapping[str, str]] = {"nptdms": "ingestd[tdms]"}
    title: ClassVar[str] = "TDMS"

    type: Literal["tdms"] = "tdms"

    def open(self, file: BinaryIO, name: str) -> Recording:
        """See `connectors.formats.tdms.reader.TdmsRecording`."""
        from connectors.formats.tdms.reader import TdmsRecording  # noqa: PLC0415 - imported for a file that is read

        return TdmsRecording(file, name)
