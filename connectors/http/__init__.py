"""The http connector: polls a REST or OData service, page by page, for all records or only for changed records."""

from connectors.http.connector import HttpConnector
from connectors.http.options import HttpOptions

__all__ = ["HttpConnector", "HttpOptions"]
