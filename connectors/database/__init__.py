"""The database connector: reads a table or a SELECT on a schedule, whole or only new rows.

It changes no data; it only advances the replication slot that is configured for it.
"""

from connectors.database.connector import DatabaseConnector
from connectors.database.options import DatabaseOptions

__all__ = ["DatabaseConnector", "DatabaseOptions"]
