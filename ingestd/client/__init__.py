"""The client of the workspace service."""

from ingestd.client.reply import Reply
from ingestd.client.service import ServiceClient
from ingestd.client.transport import Timeouts

__all__ = ["Reply", "ServiceClient", "Timeouts"]
