"""HDF5: files of groups and datasets, and MAT files of MATLAB from version 7.3 on."""

from connectors.formats.hdf5.options import Hdf5

__all__ = ["Hdf5"]
