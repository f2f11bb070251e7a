"""One connection to an OPC UA server. Each connection is a new object.

The library can reconnect by itself. But if a step of the reconnection fails, no more notifications may arrive. So a watchdog
ends the connection if the server is silent or an error occurs. Then the source opens a new connection and reads everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from asyncua import Client, ua
from asyncua.common.subscription import Subscription
from asyncua.crypto import security_policies
from asyncua.crypto.uacrypto import CertProperties
from asyncua.ua import DataValue, NodeId
from msgspec.structs import replace

from connectors.opcua.node_names import NodeName
from connectors.opcua.options import PAUSE_SECONDS, OpcuaOptions
from connectors.opcua.security import ApplicationCertificate, check_trusted, choose_endpoint
from ingestd.sdk import SourceBroken, SourceUnavailable

_AT_ONCE = 500
"""The maximum number of variables in a request."""
_MOST_LEVELS = 32
_MOST_BROWSED = 500_000
_SESSION_SECONDS = 60
_KEEPALIVE_SECONDS = 5.0
_SILENT_KEEPALIVES = 3
_MESSAGE_BYTES = 64 * 2**20
_END_SECONDS = 1.0
_OVERFLOW = 0x480
"""The status bits info type DataValue and overflow: the server has dropped earlier values of the variable."""
_HAS_PROPERTY = 46
_HIERARCHICAL = 33
_OBJECTS = 85
_UNTRUSTED = {
    "BadSecurityChecksFailed",
    "BadCertificateUntrusted",
    "BadCertificateUseNotAllowed",
    "BadCertificateUriInvalid",
}
_VARIABLE = 2
_CLASSES = {
    "Aes256_Sha256_RsaPss": "SecurityPolicyAes256Sha256RsaPss",
    "Aes128_Sha256_RsaOaep": "SecurityPolicyAes128Sha256RsaOaep",
    "Basic256Sha256": "SecurityPolicyBasic256Sha256",
}


class Variable(msgspec.Struct, frozen=True):
    """A variable. ``name``: the node id with a namespace URI. ``id``: the node id in this connection; None: it has none."""

    name: str
    id: NodeId | None
    path: str = ""
    label: str = ""
    unit: str = ""


class ServerSession:
    """A session, its subscription, and the watchdog of both. All methods run in one event loop, except `has_changed`.

    ``own`` returns the certificate of the source, and is called only if the server is trusted. ``changed`` is called when
    a variable has changed. ``ended`` is called once, when the server, the network or the watchdog ends the connection.
    """

    def __init__(
        self,
        options: OpcuaOptions,
        own: Callable[[], ApplicationCertificate],
        *,
        now: Callable[[], float],
        changed: Callable[[], None] = lambda: None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._options = options
        self._own = own
        self._now = now
        self._changed = changed
        self._ended = ended
        self._client: Client | None = None
        self._transport: asyncio.Transport | None = None
        self._subscription: Any = None
        self._silence = math.inf
        self._monitored: dict[int, str] = {}
        self._dirty: set[str] = set()
        self._watching: asyncio.Task[None] | None = None
        self.needs_all = True
        """True if the next reading must be complete, because a notification may be missing."""
        self.is_open = False
        self.reason = ""
        """The reason why the connection ended."""

    async def open(self) -> None:
        """Connect with the configured security.

        Raises:
            SourceBroken: the server can't be used as configured.
            SourceUnavailable: the server does not trust the certificate. Another attempt is safe, because it locks no account.
            OSError, TimeoutError, asyncua.ua.UaError: the server does not respond, or refuses the connection.
        """
        own: ApplicationCertificate | None = None
        endpoint = choose_endpoint(self._options, await self._make_client().connect_and_get_server_endpoints())
        client = self._make_client()
        if endpoint.policy:
            check_trusted(self._options, endpoint.certificate, self._now())
            own = self._own()
            client.application_uri = own.uri
            await client.set_security(
                getattr(security_policies, _CLASSES[endpoint.policy]),
                CertProperties(own.certificate, own.certificate_suffix),
                CertProperties(own.key, own.key_suffix),
                server_certificate=CertProperties(endpoint.certificate, "der"),
            )
        if self._options.user:
            client.set_user(self._options.user)
            client.set_password(self._options.password.get_secret_value())
        client.connection_lost_callback = self._on_lost
        try:
            await client.connect()
        except ua.UaStatusCodeError as error:
            status = ua.StatusCode(error.code).name if error.code else ""
            if own is None or status not in _UNTRUSTED:
                raise
            raise self._distrusted(own, status) from error
        except (OSError, TimeoutError, ua.UaError):
            raise
        except Exception as error:
            # To refuse a certificate, some servers send a fault instead of a response. The library can't read this fault.
            raise self._distrusted(own, "it did not open a secure channel") from error
        self._client = client
        self._transport = client.uaclient.protocol.transport
        self.is_open = True
        self._watching = asyncio.create_task(self._watch())

    def _distrusted(self, own: ApplicationCertificate | None, why: str) -> SourceUnavailable:
        server = f"The server {self._options.address}"
        sentence = f"{server} does not respond as OPC UA requires: {why}."
        if own is not None:
            sentence = (
                f"{server} refused the certificate of this source ({why}). Have its administrator trust the application"
                f" {own.shown}. A running daemon tries again."
            )
        return SourceUnavailable(sentence, retry_after=PAUSE_SECONDS)

    def _make_client(self) -> Client:
        client = Client(
            f"opc.tcp://{self._options.address}",
            timeout=self._options.timeout_seconds,
            watchdog_intervall=self._options.timeout_seconds,
        )
        client.name = client.description = "ingestd"
        client.session_timeout = _SESSION_SECONDS * 1000
        client.max_messagesize = _MESSAGE_BYTES
        return client

    # ------------------------------------------------------------------------------------------------------ variables

    async def variables(self) -> list[Variable]:
        """Return the variables that ``nodes`` and ``browse`` select now, each variable once.

        Raises:
            SourceBroken: there are more than ``max_nodes`` variables.
        """
        uris = [str(uri) for uri in await self._connected().get_namespace_array()]
        found = {one.name: one for one in await self._browse(uris)}
        for text in self._options.nodes:
            name = NodeName.parse(text)
            found.setdefault(str(name), Variable(str(name), _node_id(name, uris)))
        if len(found) > self._options.max_nodes:
            raise SourceBroken(
                f"The server {self._options.address} has more than {self._options.max_nodes} of these variables (max_nodes)."
                " Name fewer variables, or increase max_nodes."
            )
        return await self._described(list(found.values()))

    async def _browse(self, uris: Sequence[str]) -> list[Variable]:
        patterns = self._options.patterns
        found: list[Variable] = []
        level: list[tuple[tuple[str, ...], NodeId]] = [((), ua.NodeId(ua.Int32(_OBJECTS)))] if patterns else []
        seen: set[NodeId] = {id_ for _, id_ in level}
        while level and len(found) <= self._options.max_nodes:
            following: list[tuple[tuple[str, ...], NodeId]] = []
            for path, id_ in level:
                for one in await self._children(id_):
                    below = (*path, str(one.BrowseName.Name))
                    child = ua.NodeId(one.NodeId.Identifier, one.NodeId.NamespaceIndex)
                    if child in seen or getattr(one.NodeId, "ServerIndex", False):  # a node of another server
                        continue
                    seen.add(child)
                    if len(seen) > _MOST_BROWSED:
                        raise SourceBroken(
                            f"The server {self._options.address} has more than {_MOST_BROWSED} nodes below these paths. Write"
                            " longer paths."
                        )
                    if int(one.NodeClass) == _VARIABLE and any(pattern.matches(below) for pattern in patterns):
                        found.append(Variable(str(_name(child, uris)), child, "/".join(below)))
                    if len(below) < _MOST_LEVELS and any(pattern.leads_to(below) for pattern in patterns):
                        following.append((below, child))
            level = following
        return found

    async def _children(self, id_: NodeId) -> list[Any]:
        """Return the hierarchical references of a node to its children. Properties are left out."""
        node = self._connected().get_node(id_)
        references = await node.get_children_descriptions(refs=_HIERARCHICAL)
        return [one for one in references if one.ReferenceTypeId.Identifier != _HAS_PROPERTY]

    async def _described(self, variables: list[Variable]) -> list[Variable]:
        """Return the variables with their display names, and with the units that the server has."""
        described: list[Variable] = []
        for some in _chunks(variables):
            ids = [one.id if one.id is not None else ua.NodeId() for one in some]
            names = await self._connected().uaclient.read_attributes(ids, ua.AttributeIds.DisplayName)
            units = await self._units(ids)
            described += [
                replace(one, label=str(_value(name, "Text") or ""), unit=unit)
                for one, name, unit in zip(some, names, units, strict=True)
            ]
        return described

    async def _units(self, ids: Sequence[NodeId]) -> list[str]:
        unit = ua.RelativePathElement(
            ReferenceTypeId=ua.NodeId(ua.Int32(_HAS_PROPERTY)),
            IsInverse=False,
            TargetName=ua.QualifiedName("EngineeringUnits", 0),
        )
        paths = [ua.BrowsePath(StartingNode=id_, RelativePath=ua.RelativePath(Elements=[unit])) for id_ in ids]
        uaclient = self._connected().uaclient
        found = await uaclient.translate_browsepaths_to_nodeids(paths)
        targets = [one.Targets[0].TargetId if one.StatusCode.is_good() and one.Targets else None for one in found]
        asked = [ua.NodeId(one.Identifier, one.NamespaceIndex) for one in targets if one is not None]
        values = iter(await uaclient.read_attributes(asked, ua.AttributeIds.Value) if asked else [])
        units = (_value(next(values), "DisplayName") if one is not None else None for one in targets)
        return [str(getattr(unit, "Text", "") or "") for unit in units]

    async def read(self, variables: Iterable[Variable]) -> list[DataValue]:
        """Return the present values, in the order of ``variables``. Each variable must have an id."""
        values: list[DataValue] = []
        for some in _chunks(list(variables)):
            ids = [one.id for one in some if one.id is not None]
            values += await self._connected().uaclient.read_attributes(ids, ua.AttributeIds.Value)
        return values

    # --------------------------------------------------------------------------------------------------- notifications

    async def subscribe(self, variables: Sequence[Variable]) -> None:
        """Let the server report changes of ``variables``. A subscription to a different set of variables is replaced."""
        wanted = {one.name for one in variables}
        if self._subscription is not None:
            if wanted == set(self._monitored.values()):
                return
            await self._subscription.delete()
            self._subscription = None
        keepalives = max(1, round(_KEEPALIVE_SECONDS / self._options.sampling))
        parameters = ua.CreateSubscriptionParameters(
            RequestedPublishingInterval=self._options.sampling * 1000,
            RequestedMaxKeepAliveCount=keepalives,
            RequestedLifetimeCount=3 * keepalives + 100,
            MaxNotificationsPerPublish=10_000,
        )
        # `Client.create_subscription` would replace a silent subscription without reporting that changes may be missed.
        subscription = Subscription(self._connected().uaclient.session, parameters, self)
        granted = await subscription.init()
        keepalive = granted.RevisedPublishingInterval / 1000 * granted.RevisedMaxKeepAliveCount
        self._silence = _SILENT_KEEPALIVES * keepalive + self._options.timeout_seconds
        self._monitored = dict(enumerate((one.name for one in variables), start=1))
        self._subscription = subscription
        subscription.last_publish_at = time.monotonic()
        for handles in _chunks(list(enumerate(variables, start=1))):
            plain = await self._monitor(handles, deadband=self._options.deadband)
            if plain and self._options.deadband:  # a server permits a deadband only for numbers
                await self._monitor(plain, deadband=0.0)

    async def _monitor(self, items: Sequence[tuple[int, Variable]], *, deadband: float) -> list[tuple[int, Variable]]:
        """Monitor the items. Return the items that the server refused: only complete readings find their changes."""
        requests = []
        for handle, variable in items:
            wanted = ua.MonitoringParameters(
                ClientHandle=handle,
                SamplingInterval=self._options.sampling * 1000,
                QueueSize=1,  # only the newest value is needed
            )
            if deadband:
                wanted.Filter = ua.DataChangeFilter(
                    Trigger=ua.DataChangeTrigger.StatusValue, DeadbandType=1, DeadbandValue=deadband
                )
            item = ua.ReadValueId(NodeId=variable.id, AttributeId=ua.AttributeIds.Value)
            requests.append(ua.MonitoredItemCreateRequest(item, ua.MonitoringMode.Reporting, wanted))
        results = await self._subscription.create_monitored_items(requests)
        return [item for item, result in zip(items, results, strict=True) if not isinstance(result, int)]

    def datachange_notification(self, _node: object, _value: object, data: Any) -> None:
        """Record that a variable has changed. The next reading reads its value. The library calls this method."""
        item = data.monitored_item
        if int(item.Value.StatusCode.value) & _OVERFLOW == _OVERFLOW:
            self.needs_all = True
        self._dirty.add(self._monitored[item.ClientHandle])
        self._changed()

    def status_change_notification(self, notification: Any) -> None:
        """End the connection, because the server has ended the subscription. The library calls this method."""
        if self.is_open:
            self._end(f"The server ended the subscription ({notification.Status.name}).")

    def has_changed(self, name: str) -> bool:
        """Return whether the variable has a change that `take_changed` has not returned. Any thread may call this method."""
        return name in self._dirty

    def take_changed(self) -> set[str]:
        """Return the names of the variables that have changed since the last call."""
        changed, self._dirty = self._dirty, set()
        return changed

    # --------------------------------------------------------------------------------------------------------- the end

    async def _watch(self) -> None:
        """End the connection if the server does not respond, or if the subscription's notifications are overdue."""
        while self.is_open:
            await asyncio.sleep(self._options.timeout_seconds)  # the library's own probe has the same period
            silent = time.monotonic() - self._subscription.last_publish_at if self._subscription is not None else 0.0
            if silent > self._silence:
                self._end(f"The server sent no notification for {silent:.0f} seconds, not even a keep-alive.")
            try:
                async with asyncio.timeout(self._options.timeout_seconds):
                    await self._connected().nodes.server_state.read_value()
            except Exception as error:  # noqa: BLE001 - after any error the connection is not reliable
                self._end(f"The server does not respond ({str(error) or type(error).__name__}).")

    async def _on_lost(self, error: Exception) -> None:
        self._end(f"The connection was cut ({str(error) or type(error).__name__}).")

    def _end(self, reason: str) -> None:
        if self.is_open:
            self.is_open = False
            self.reason = reason
            self._ended()

    async def close(self) -> None:
        """Disconnect. Wait at most one second for the server."""
        self.is_open = False
        if self._watching is not None:
            self._watching.cancel()
        client, self._client = self._client, None
        try:
            if client is not None:
                with contextlib.suppress(Exception):  # if the connection is lost, the server ends the session by itself
                    async with asyncio.timeout(_END_SECONDS):
                        await client.disconnect()
        finally:
            if self._transport is not None:
                self._transport.abort()  # after a lost connection or a cancellation, the library leaves its socket open
                await asyncio.sleep(0)

    def _connected(self) -> Client:
        if self._client is None:
            raise ConnectionError("the connection was closed")
        return self._client


def _chunks(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (items[start : start + _AT_ONCE] for start in range(0, len(items), _AT_ONCE))


def _name(id_: NodeId, uris: Sequence[str]) -> NodeName:
    index = int(id_.NamespaceIndex)
    return NodeName(uris[index] if 0 < index < len(uris) else "", ua.NodeId(id_.Identifier, 0).to_string())


def _node_id(name: NodeName, uris: Sequence[str]) -> NodeId | None:
    if name.uri and name.uri not in uris:
        return None
    index = uris.index(name.uri) if name.uri else 0
    try:
        return ua.NodeId.from_string(f"ns={index};{name.id}")
    except (ValueError, ua.UaError):
        return None


def _value(data: DataValue, member: str) -> Any:
    """Return a member of a structured value; None if the value or the member is missing."""
    return getattr(data.Value.Value if data.Value is not None else None, member, None)
