"""A connector for folders of instrument status files."""

from instrument_status.connector import InstrumentStatusConnector
from instrument_status.options import InstrumentStatusOptions

__all__ = ["InstrumentStatusConnector", "InstrumentStatusOptions"]
