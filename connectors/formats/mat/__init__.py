"""MAT: files of MATLAB up to version 7.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Literal

from connectors.formats.measurement import MeasurementFormat

if TYPE_CHECKING:
    from connectors.formats.measurement.channels import Recording


class Mat(MeasurementFormat):
    """A MAT file of MATLAB up to version 7.2; each numeric or text variable, also in structures, is a channel."""

    suffixes: ClassVar[tuple[str, ...]] = (".mat",)
    needs: ClassVar[Mapping[str, str]] = {"scipy": "ingestd[mat]"}
    title: ClassVar[str] = "MAT"

    type: Literal["mat"] = "mat"

    def open(self, file: BinaryIO, name: str) -> Recording:
        """See `connectors.formats.mat.reader.MatRecording`."""
        from connectors.formats.mat.reader import MatRecording  # noqa: PLC0415 - imported for a file that is read

        return MatRecording(file, name)
