"""The push connector: records that clients send by HTTP, acknowledged after they are durable."""

from connectors.push.connector import PushConnector
from connectors.push.options import PushOptions

__all__ = ["PushConnector", "PushOptions"]
