"""The log connector: reads files to which programs append lines, and follows the files through rotation."""

from connectors.log.connector import LogConnector
from connectors.log.options import LogOptions

__all__ = ["LogConnector", "LogOptions"]
