"""The database connector: reads a table or a SELECT on a schedule, whole or only new rows.

It never writes.
"""

from connectors.database.connector import DatabaseConnector
from connectors.database.options import DatabaseOptions

__all__ = ["DatabaseConnector", "DatabaseOptions"]
