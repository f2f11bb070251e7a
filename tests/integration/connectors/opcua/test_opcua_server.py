"""The opcua connector and what happens to servers, networks and certificates, with a real server that is really killed."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from connectors.opcua import OpcuaConnector, OpcuaOptions
from connectors.opcua.security import fingerprint
from connectors.opcua.session import ServerSession
from ingestd.sdk import Batch, Cursor, SourceBroken, SourceContext, SourceUnavailable
from tests.support.opcua_server import OpcuaServer, opcua_server, server_certificate

START = {"Temp": (20.5, "Double"), "Count": (7, "Int32"), "Oven.On": (True, "Boolean")}
LINE = "nsu=urn:test:line;s=Line1"


class Reading:
    """A connector as the daemon uses it."""

    def __init__(self, connector: OpcuaConnector, woken: threading.Event) -> None:
        self.connector = connector
        self.woken = woken
        self.cursor: Cursor | None = None
        (self._partition,) = connector.partitions()

    def read(self) -> list[Batch]:
        batches = list(self.connector.read(self._partition, self.cursor))
        if batches:
            self.cursor = batches[-1].cursor
        return batches

    def until(self, name: str, value: str) -> Batch:
        """Read, when the connector wakes, until a variable has a value; return the batch with it."""
        found: list[Batch] = []

        def has_value() -> bool:
            found.extend(batch for batch in self.read() if fields(batch).get(name) == value)
            return bool(found)

        self.wait(has_value)
        return found[0]

    def wait(self, done: Callable[[], bool]) -> None:
        """Return when ``done``, which is called whenever the connector wakes."""
        deadline = time.monotonic() + 30
        while not done():
            assert self.woken.wait(max(0.0, deadline - time.monotonic()))
            self.woken.clear()


@contextmanager
def reading(url: str, folder: Path, **options: Any) -> Iterator[Reading]:
    settings = {"url": url, "browse": "Line1/**", "security": "none", "sampling": 0.05, "timeout_seconds": 1, **options}
    context = SourceContext(
        pipeline="line", base=folder, now=time.time, steady=time.monotonic, kept_folder=folder / "kept"
    )
    connector = OpcuaConnector(OpcuaOptions.model_validate(settings), context)
    woken = threading.Event()
    try:
        with connector.watch(woken.set):
            yield Reading(connector, woken)
    finally:
        connector.close()


@pytest.fixture(scope="module")
def running() -> Iterator[OpcuaServer]:
    with opcua_server(START) as running:
        yield running


@pytest.fixture
def server(running: OpcuaServer) -> OpcuaServer:
    running.put(START)
    return running


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpcuaServer]:
    """A server that encrypts and has one user."""
    certificate, key = server_certificate(tmp_path_factory.mktemp("server"))
    with opcua_server(START, certificate=certificate, key=key, password="right") as running:
        yield running


@pytest.fixture
def trusting(secure: OpcuaServer) -> dict[str, Any]:
    """Options for the server `secure`."""
    assert secure.certificate is not None
    own = fingerprint(x509.load_pem_x509_certificate(secure.certificate.read_bytes()))
    return {"security": "auto", "trust": [own], "user": "reader", "password": "right"}


def fields(batch: Batch) -> dict[str, str | None]:
    return {str(one["node"]).removeprefix(f"{LINE}."): one["value"] for one in batch.records.to_dicts()}


def test_a_change_wakes_the_source_and_only_what_has_changed_is_read(server: OpcuaServer, tmp_path: Path) -> None:
    with reading(server.url, tmp_path) as source:
        (whole,) = source.read()
        assert fields(whole) == {"Temp": "20.5", "Count": "7", "Oven.On": "true"}
        (temp, *_) = whole.records.to_dicts()
        assert (temp["path"], temp["unit"], temp["type"]) == ("Line1/Temp", "°C", "Double")
        server.put({"Count": (8, "Int32")})
        source.until("Count", "8")  # perhaps with the other values, which the first notifications repeat
        server.put({"Count": (9, "Int32")})
        changed = source.until("Count", "9")
        assert (fields(changed), changed.partial) == ({"Count": "9"}, True)
        assert source.read() == []


def test_a_reading_that_was_not_stored_is_followed_by_a_complete_one(server: OpcuaServer, tmp_path: Path) -> None:
    with reading(server.url, tmp_path) as source:
        source.read()
        stored = source.cursor
        server.put({"Count": (9, "Int32")})
        assert source.until("Count", "9").partial
        source.cursor = stored
        (again,) = source.read()
        assert (fields(again), again.partial) == ({"Temp": "20.5", "Count": "9", "Oven.On": "true"}, False)


def test_a_change_that_could_not_be_read_is_in_the_next_reading(
    server: OpcuaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def times_out(_session: ServerSession, _variables: object) -> list[object]:
        raise TimeoutError

    with reading(server.url, tmp_path) as source:
        source.read()
        server.put({"Count": (9, "Int32")})
        source.until("Count", "9")
        server.put({"Count": (10, "Int32")})
        with monkeypatch.context() as patched:
            patched.setattr(ServerSession, "read", times_out)
            with pytest.raises(SourceUnavailable, match="did not respond"):
                source.until("Count", "10")
        (batch,) = source.read()
        assert fields(batch)["Count"] == "10"


def test_an_unchanged_server_yields_nothing_after_a_restart_of_the_daemon(server: OpcuaServer, tmp_path: Path) -> None:
    with reading(server.url, tmp_path, mode="poll") as source:
        source.read()
        stored = source.cursor
    with reading(server.url, tmp_path, mode="poll") as later:
        later.cursor = stored
        assert later.read() == []
        later.connector.reset()
        assert len(later.read()) == 1


def test_after_a_restart_with_other_namespace_numbers_the_names_and_values_are_the_same(
    server: OpcuaServer, tmp_path: Path
) -> None:
    with reading(server.url, tmp_path, nodes=[f"{LINE}.Count"]) as source:
        before = source.read()
        server.kill()
        with pytest.raises(SourceUnavailable, match="is not reachable"):
            source.read()
        server.namespaces_before = 3
        server.start()
        server.put({"Count": (8, "Int32")})
        (after,) = source.read()
        assert fields(after) == {**fields(before[0]), "Count": "8"}
        server.put({"Count": (9, "Int32")})
        source.until("Count", "9")  # the new subscription reports


def test_unknown_and_bad_variables_are_rejected_and_their_neighbours_read(server: OpcuaServer, tmp_path: Path) -> None:
    unknown = [f"{LINE}.Nope", "nsu=urn:nowhere;s=x"]
    with reading(server.url, tmp_path, nodes=unknown) as source:
        server.spoil("Temp", "BadSensorFailure")
        (batch,) = source.read()
        assert fields(batch) == {"Count": "7", "Oven.On": "true"}
        assert {one.reason for one in batch.rejects} == {
            "The variable Line1/Temp has a bad value (BadSensorFailure); its last good value stays.",
            f"The variable {LINE}.Nope is unknown to the server.",
            "The variable nsu=urn:nowhere;s=x is in a namespace that the server does not have.",
        }
        assert source.connector.health().sentence.endswith("Variables: 4, bad: 3.")
        server.put({"Temp": (21.5, "Double")})
        source.until("Temp", "21.5")
    with reading(server.url, tmp_path, bad_quality="missing") as missing:
        server.spoil("Temp", "BadSensorFailure")
        (batch,) = missing.read()
        assert fields(batch) == {"Temp": None, "Count": "7", "Oven.On": "true"}


def test_a_server_that_does_not_respond_ends_the_connection_and_a_new_one_is_made(
    server: OpcuaServer, tmp_path: Path
) -> None:
    with reading(server.url, tmp_path) as source:
        source.read()
        server.signal(signal.SIGSTOP)  # as a network that swallows packets: nothing is refused
        source.wait(lambda: source.connector.health().connected_since is None)
        with pytest.raises(SourceUnavailable, match="did not respond within 1 seconds"):
            source.read()
        server.signal(signal.SIGCONT)
        server.put({"Count": (8, "Int32")})
        assert fields(source.read()[0])["Count"] == "8"


def test_an_untrusted_server_is_refused_with_its_fingerprint_and_what_to_add(
    secure: OpcuaServer, trusting: dict[str, Any], tmp_path: Path
) -> None:
    with reading(secure.url, tmp_path, security="auto") as source:
        (step,) = source.connector.verify()
        with pytest.raises(SourceBroken) as caught:
            source.read()
        assert (step.outcome, step.sentence) == ("failed", str(caught.value))
        assert step.sentence.endswith(f'then add to the source: trust: ["{trusting["trust"][0]}"]')
    assert not (tmp_path / "kept").exists(), "nothing is made for a server that is not trusted yet"
    with reading(secure.url, tmp_path, **trusting | {"password": "wrong"}) as source:
        for sentence in ("refused the user reader", "until `ingestd reload`"):
            with pytest.raises(SourceBroken, match=sentence):
                source.read()
    with reading(secure.url, tmp_path, **trusting) as source:
        assert fields(source.read()[0])["Count"] == "7"
    assert (tmp_path / "kept" / "certificate.pem").stat().st_mode & 0o777 == 0o600
    with reading(secure.url, tmp_path) as plain, pytest.raises(SourceBroken, match="Remove security: none"):
        plain.read()


def test_a_server_that_does_not_trust_the_source_is_named_with_the_certificate_that_the_daemon_will_use(
    secure: OpcuaServer, trusting: dict[str, Any], tmp_path: Path
) -> None:
    secure.distrust(clients=True)
    sentences = set()
    with reading(secure.url, tmp_path, **trusting) as source:
        object.__setattr__(source.connector.context, "unsaved", {})
        with pytest.raises(SourceBroken, match="has no certificate yet"):
            source.read()
    looking: dict[str, bytes] = {}
    for unsaved in (looking, looking.copy(), None):  # `ingestd check` twice, then the daemon
        with reading(secure.url, tmp_path, **trusting) as source:
            object.__setattr__(source.connector.context, "unsaved", unsaved)
            (step,) = source.connector.verify()
            sentences.add(step.sentence)
            with pytest.raises(SourceUnavailable, match="refused the certificate of this source") as caught:
                source.read()
            assert 0 < caught.value.retry_after <= 10
            sentences.add(str(caught.value))
    (sentence,) = sentences
    own = x509.load_pem_x509_certificate((tmp_path / "kept" / "certificate.pem").read_bytes())
    assert f"trust the application urn:{socket.gethostname()}:ingestd:line, certificate {fingerprint(own)}" in sentence
    secure.distrust(clients=False)
    with reading(secure.url, tmp_path, **trusting) as source:
        assert fields(source.read()[0])["Count"] == "7"


def test_an_expired_certificate_of_the_server_is_refused(
    secure: OpcuaServer, trusting: dict[str, Any], tmp_path: Path
) -> None:
    with reading(secure.url, tmp_path, **trusting) as source:
        later = time.time() + 20 * 365 * 86_400
        object.__setattr__(source.connector.context, "now", lambda: later)
        with pytest.raises(SourceBroken, match=r"is valid from .* have the server's administrator renew"):
            source.read()


def test_a_server_without_encryption_is_used_only_if_that_is_asked_for(server: OpcuaServer, tmp_path: Path) -> None:
    with (
        reading(server.url, tmp_path, security="auto") as source,
        pytest.raises(SourceBroken, match=r"offers none, and not .*security: none connects without"),
    ):
        source.read()


def test_too_many_variables_are_refused(server: OpcuaServer, tmp_path: Path) -> None:
    with reading(server.url, tmp_path, max_nodes=2) as source, pytest.raises(SourceBroken, match="max_nodes"):
        source.read()


def test_why_says_what_a_variable_waits_for(server: OpcuaServer, tmp_path: Path) -> None:
    missing = f"{LINE}.Missing"
    with reading(server.url, tmp_path, nodes=[missing]) as source:
        explain = source.connector.explain
        address = source.connector.options.address
        assert explain(address) == f"Not connected to {address}."
        assert explain(missing) == f"{missing} is configured. Not connected to {address}."
        assert explain("Line1/Count") is None  # not known before the first reading
        source.read()
        health = f"Changes are reported by a subscription. Connected to {address}. Variables: 4, bad: 1."
        # A new subscription also notifies of the values that the reading already has.
        source.wait(lambda: source.read() == [] and (explain("Line1/Count") or "").endswith(f" UTC. {health}"))
        assert (explain("Line1/Count") or "").startswith("The variable Line1/Count is good. Its value was read 20")
        assert (explain(f"{LINE}.Count") or "").endswith(health)
        assert "is unknown to the server" in (explain(missing) or "")
        assert explain("Line1/Other") is None
        assert explain(address) is None
        server.spoil("Temp", "BadSensorFailure")
        source.wait(lambda: "A change is not read yet." in (explain("Line1/Temp") or ""))
        source.read()
        assert (explain("Line1/Temp") or "").startswith("The variable Line1/Temp has a bad value (BadSensorFailure)")
    with reading(server.url, tmp_path, mode="poll") as polled:
        polled.read()
        assert "Changes are read every 0.05 seconds." in (polled.connector.explain("Line1/Count") or "")
