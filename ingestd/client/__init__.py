"""The client of the workspace service.

`Client` and `AsyncClient` are for programs: whole records, errors that are raised. `ServiceClient` is the daemon's: it never
raises for what a service or a network can do, and reads only what delivery needs. Both send requests of one table
(`operations`) through one exchange, where answers are judged.
"""

from ingestd.client.asynchronous import AsyncClient
from ingestd.client.blocking import Client
from ingestd.client.reply import Reply
from ingestd.client.service import ServiceClient
from ingestd.client.transport import Timeouts, TransportOptions

__all__ = ["AsyncClient", "Client", "Reply", "ServiceClient", "Timeouts", "TransportOptions"]
