"""The push connector: receives records that clients send by HTTP. A client gets its response after they are durable."""

from connectors.push.connector import PushConnector
from connectors.push.options import PushOptions

__all__ = ["PushConnector", "PushOptions"]
