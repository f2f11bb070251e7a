"""The file connector: one file that people keep open and save in place, read whole after each change, never moved."""

from connectors.file.connector import FileConnector
from connectors.file.options import FileOptions

__all__ = ["FileConnector", "FileOptions"]
