"""HDF5: files of groups and datasets, and MAT files of MATLAB from version 7.3 on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Literal

from connectors.formats.measurement import MeasurementFormat

if TYPE_CHECKING:
    from connectors.formats.measurement.channels import Recording


class Hdf5(MeasurementFormat):
    """An HDF5 file, also of MATLAB 7.3; each dataset, or each field of a dataset with a compound type, is a channel."""

    suffixes: ClassVar[tuple[str, ...]] = (".h5", ".hdf5", ".hdf")
    needs: ClassVar[Mapping[str, str]] = {"h5py": "ingestd[hdf5]"}
    title: ClassVar[str] = "HDF5"

    type: Literal["hdf5"] = "hdf5"

    def open(self, file: BinaryIO, name: str) -> Recording:
        """See `connectors.formats.hdf5.reader.Hdf5Recording`."""
        from connectors.formats.hdf5.reader import Hdf5Recording  # noqa: PLC0415 - imported for a file that is read

        return Hdf5Recording(file, name, self.select)
