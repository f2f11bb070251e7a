"""The directory connector: reads each file of a folder once it is stable, then keeps, archives or deletes it."""

from connectors.directory.connector import DirectoryConnector
from connectors.directory.options import DirectoryOptions

__all__ = ["DirectoryConnector", "DirectoryOptions"]
