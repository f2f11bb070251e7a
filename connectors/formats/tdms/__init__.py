"""TDMS: measurement files of LabVIEW and other products of National Instruments."""

from connectors.formats.tdms.options import Tdms

__all__ = ["Tdms"]
