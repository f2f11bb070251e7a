"""The client of the workspace service.

`Client` and `AsyncClient` are for programs: they return whole records and raise errors. `ServiceClient` is the client of the
daemon: it returns the outcome of each request, and reads only what delivery needs. All three send the requests that
`operations` declares, and the same code classifies the responses.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ingestd.client.response import ServiceResponse
from ingestd.client.service import ServiceClient
from ingestd.client.transport import Timeouts, TransportOptions

if TYPE_CHECKING:
    from ingestd.client.programs import AsyncClient, Client

__all__ = ["AsyncClient", "Client", "ServiceClient", "ServiceResponse", "Timeouts", "TransportOptions"]


def __getattr__(name: str) -> Any:
    if name in {"AsyncClient", "Client"}:  # the daemon uses neither of them
        return getattr(importlib.import_module("ingestd.client.programs"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
