"""The directory connector: reads each stable file of a folder, then keeps, archives or deletes the file."""

from connectors.directory.connector import DirectoryConnector
from connectors.directory.options import DirectoryOptions

__all__ = ["DirectoryConnector", "DirectoryOptions"]
