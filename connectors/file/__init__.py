"""One file that people keep open and save in place: read whole whenever it has settled after a change, never moved."""

from connectors.file.connector import FileConnector
from connectors.file.options import FileOptions

__all__ = ["FileConnector", "FileOptions"]
