"""A table or a SELECT of a database, read on a schedule, whole or what is new; the database is never written to."""

from connectors.database.connector import DatabaseConnector
from connectors.database.options import DatabaseOptions

__all__ = ["DatabaseConnector", "DatabaseOptions"]
