"""The http connector: reads a REST or OData service page by page, either all records or only changed records."""

from connectors.http.connector import HttpConnector
from connectors.http.options import HttpOptions

__all__ = ["HttpConnector", "HttpOptions"]
