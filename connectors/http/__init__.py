"""The http connector: polls a REST or OData service, page by page, and reads all records or those since the last reading."""

from connectors.http.connector import HttpConnector
from connectors.http.options import HttpOptions

__all__ = ["HttpConnector", "HttpOptions"]
