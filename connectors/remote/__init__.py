"""The remote connector: reads files of an SFTP server or an object store, in the same way as the directory connector."""

from connectors.remote.connector import RemoteConnector
from connectors.remote.options import RemoteOptions

__all__ = ["RemoteConnector", "RemoteOptions"]
