"""The client's operations are those of the service, and this suite calls every method of the client."""

from __future__ import annotations

import re
from pathlib import Path

from ingestd.client import AsyncClient, Client
from ingestd.client.methods import Method
from ingestd.client.operations import ServiceMethods
from workspaced.app import create_app
from workspaced.settings.model import WorkspacedSettings

METHODS = {name: member for name, member in vars(ServiceMethods).items() if isinstance(member, Method)}


def test_the_service_has_every_operation_of_the_client_by_the_same_name(tmp_path: Path) -> None:
    app = create_app(WorkspacedSettings(data=tmp_path / "data"))
    served = {(one.name, one.method, one.path) for one in app.operations}
    assert {(one.operation.name, one.operation.method, one.operation.path) for one in METHODS.values()} <= served


def test_every_method_is_called_in_this_suite() -> None:
    texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")]
    called = set(re.findall(r"\b(?:client|reader|unknown|anonymous|awaiting)\.(\w+)\(", "\n".join(texts)))
    assert {*METHODS, "send"} <= called


def test_both_clients_have_the_same_methods() -> None:
    # Frames are for notebooks and scripts, which block (decision record 0063).
    blocking = {name for name in dir(Client) if not name.startswith("_")} - {"close", "sink"}
    asynchronous = {name for name in dir(AsyncClient) if not name.startswith("_")} - {"aclose", "open"}
    assert blocking == asynchronous
