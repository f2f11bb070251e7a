"""The client of the workspace service.

`Client` and `AsyncClient` are for programs: they return whole records and raise errors. `ServiceClient` is the daemon's:
it returns the outcome of each request, and reads only what delivery needs. All three send requests of one table
(`operations`), and the same code classifies the responses.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ingestd.client.response import ServiceResponse
from ingestd.client.service import ServiceClient
from ingestd.client.transport import Timeouts, TransportOptions

if TYPE_CHECKING:
    from ingestd.client.async_client import AsyncClient
    from ingestd.client.blocking_client import Client

__all__ = ["AsyncClient", "Client", "ServiceClient", "ServiceResponse", "Timeouts", "TransportOptions"]


# The daemon uses neither of them.
_FOR_PROGRAMS = {"AsyncClient": "async_client", "Client": "blocking_client"}


def __getattr__(name: str) -> Any:
    if name in _FOR_PROGRAMS:
        return getattr(importlib.import_module(f"ingestd.client.{_FOR_PROGRAMS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
