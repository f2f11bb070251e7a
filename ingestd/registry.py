"""The installed connectors: the entry points of the group ``ingestd.connectors``."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from ingestd.sdk import Connector
from ingestd.sdk.plugins import CONNECTORS, PluginUnusable, load_connector
from ingestd.settings.validation import ConnectorUnusable

GROUP = CONNECTORS.name


def connector_names() -> Sequence[str]:
    """Return the names of the installed connectors, sorted. Some of them may fail to load."""
    return CONNECTORS.names()


def connector_class(name: str) -> type[Connector]:
    """Return the connector called ``name``.

    Only this connector is imported, so a broken connector affects no other connector.

    Raises:
        ConnectorUnusable: no connector has the name, two distributions offer it, or it can't be loaded.
    """
    try:
        found = load_connector(name)
    except PluginUnusable as error:
        raise ConnectorUnusable(str(error)) from error
    options = getattr(found, "Options", None)
    if not (isinstance(options, type) and issubclass(options, BaseModel)):
        raise ConnectorUnusable(f"The connector '{name}' declares no Options model ({found.__module__}). Update it.")
    return found
