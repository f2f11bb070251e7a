"""The remote connector: reads files of an SFTP server or an object store as the directory connector reads files of a folder."""

from connectors.remote.connector import RemoteConnector
from connectors.remote.options import RemoteOptions

__all__ = ["RemoteConnector", "RemoteOptions"]
