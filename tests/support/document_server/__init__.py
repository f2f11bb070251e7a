"""A workspace service that knows the interface document and nothing else, for tests.

No bulk, no announcements, no problem bodies, no idempotency keys, no conditional requests. Where the document is silent,
the choice is the one that is hardest on a client, or a switch.
"""

from tests.support.document_server.faults import Delay, DropAfter, DropBefore, Fault, Garbage, Refuse, Truncate
from tests.support.document_server.server import DocumentServer, Request
from tests.support.document_server.store import Store

__all__ = [
    "Delay",
    "DocumentServer",
    "DropAfter",
    "DropBefore",
    "Fault",
    "Garbage",
    "Refuse",
    "Request",
    "Store",
    "Truncate",
]
