"""The entry points of connectors."""

from ingestd.sdk.connector import CONTRACT, Connector
from ingestd.sdk.plugins import PluginGroup

CONNECTORS = PluginGroup(name="ingestd.connectors", noun="connector", base=Connector, contract=CONTRACT)


def load_connector(name: str) -> type[Connector]:
    """Return the connector called ``name``.

    Raises:
        PluginUnusable: there is none, two distributions both have one, or it can't be loaded.
    """
    found: type[Connector] = CONNECTORS.load(name)
    return found
