"""A workspace service that implements only the interface document, for tests.

It has no bulk, no announced limits, no problem bodies, no idempotency keys and no conditional requests. If the document permits
a choice, the server does what is most difficult for a client, or has a switch.
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
