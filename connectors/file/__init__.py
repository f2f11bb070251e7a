"""The file connector: one file that people save in place. The whole file is read after each change."""

from connectors.file.connector import FileConnector
from connectors.file.options import FileOptions

__all__ = ["FileConnector", "FileOptions"]
