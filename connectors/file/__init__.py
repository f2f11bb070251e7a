"""The file connector: one file that people save in place, read whole after each change."""

from connectors.file.connector import FileConnector
from connectors.file.options import FileOptions

__all__ = ["FileConnector", "FileOptions"]
