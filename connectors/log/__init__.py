"""The log connector: files that only grow, read as they are written, through every kind of rotation."""

from connectors.log.connector import LogConnector
from connectors.log.options import LogOptions

__all__ = ["LogConnector", "LogOptions"]
