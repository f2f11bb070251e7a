"""The database connector: on a schedule, it reads the rows of a table or a SELECT, all rows or only the changed rows.

The connector changes no data. It only advances its replication slot, if one is configured.
"""

from connectors.database.connector import DatabaseConnector
from connectors.database.options import DatabaseOptions

__all__ = ["DatabaseConnector", "DatabaseOptions"]
