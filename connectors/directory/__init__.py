"""Files that are dropped into a folder: each one a partition, read once it is still, kept, archived or deleted when settled."""

from connectors.directory.connector import DirectoryConnector
from connectors.directory.options import DirectoryOptions

__all__ = ["DirectoryConnector", "DirectoryOptions"]
