"""The log connector: reads files that only grow while they are written, and follows every kind of rotation."""

from connectors.log.connector import LogConnector
from connectors.log.options import LogOptions

__all__ = ["LogConnector", "LogOptions"]
