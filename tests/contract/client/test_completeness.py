"""The client's table of operations is that of the service, and this suite calls every method of the client."""

from __future__ import annotations

import re
from pathlib import Path

from ingestd.client import AsyncClient, Client
from ingestd.client.methods import Method
from ingestd.client.operations import OPERATIONS
from ingestd.client.requests import ServiceMethods
from workspaced.app import create_app
from workspaced.http.operations import Operation as ServiceOperation
from workspaced.settings.model import WorkspacedSettings


def _served(tmp_path: Path) -> list[ServiceOperation]:
    """Return the operations of this version of the service, without its pages."""
    app = create_app(WorkspacedSettings(data=tmp_path / "data"))
    return [one for one in app.operations if one.path.startswith("/v1/") or one.path in {"/healthz", "/readyz"}]


def test_the_client_knows_every_operation_of_the_service_by_the_same_name(tmp_path: Path) -> None:
    known = {(one.name, one.method, one.path, one.client_id) for one in OPERATIONS}
    served = {(one.name, one.method, one.path, one.client_id) for one in _served(tmp_path)}
    assert known == served


def test_every_method_is_called_in_this_suite() -> None:
    methods = {name for name in dir(ServiceMethods) if isinstance(getattr(ServiceMethods, name), Method)}
    for client in (Client, AsyncClient):
        methods |= {name for name in vars(client) if not name.startswith("_")} - {"send", "open", "close", "aclose"}
    texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")]
    called = set(re.findall(r"\b(?:client|reader|unknown|anonymous|revoked|awaiting)\.(\w+)\(", "\n".join(texts)))
    assert methods <= called


def test_both_clients_have_the_same_methods() -> None:
    blocking = {name for name in vars(Client) if not name.startswith("_")} - {"close"}
    asynchronous = {name for name in vars(AsyncClient) if not name.startswith("_")} - {"aclose"}
    assert blocking == asynchronous
