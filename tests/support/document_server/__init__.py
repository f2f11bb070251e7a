"""A workspace service that implements only the interface document, for tests.

No bulk, no announced limits, no problem bodies, no idempotency keys, no conditional requests. If the document leaves a choice
open, the server makes the most difficult choice for a client, or has a switch.
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
