"""The database connector: reads a table or a SELECT on a schedule, completely or only the changed rows.

The connector changes no data. It only advances the replication slot that is configured for it.
"""

from connectors.database.connector import DatabaseConnector
from connectors.database.options import DatabaseOptions

__all__ = ["DatabaseConnector", "DatabaseOptions"]
