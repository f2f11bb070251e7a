"""A real OPC UA server as a process: ``python -m tests.support.opcua_process``; see `tests.support.opcua_server`.

It reads lines of JSON from standard input: its configuration, then commands. It prints a line after each of them. The server
stops at the end of the input.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from asyncua import Server, ua
from asyncua.crypto.permission_rules import User, UserRole
from asyncua.server.uaprocessor import UaProcessor

LINE = "urn:test:line"


class _Users:
    """Accepts the user ``reader`` with the password; without a password, everyone."""

    def __init__(self, password: str) -> None:
        self._password = password

    def get_user(self, _server: object, username: str | None = None, password: Any = None, **_: object) -> User | None:
        given = password.decode() if isinstance(password, bytes) else password
        accepted = not self._password or (username, given) == ("reader", self._password)
        return User(role=UserRole.User) if accepted else None


class _Distrust:
    """While ``is_on``, responds with a fault when a secure channel is opened, as node-opcua does for unknown certificates."""

    def __init__(self) -> None:
        self.is_on = False
        self._refuses = False
        self._open, self._send = UaProcessor.open_secure_channel, UaProcessor.send_response

    def install(self) -> None:
        def open_secure_channel(processor: Any, algorithm: Any, sequence: Any, body: Any) -> None:
            self._refuses = self.is_on and bool(algorithm.SenderCertificate)
            self._open(processor, algorithm, sequence, body)

        def send_response(
            processor: Any, handle: Any, sequence: Any, response: Any, kind: Any = ua.MessageType.SecureMessage
        ) -> None:
            if self._refuses and kind is ua.MessageType.SecureOpen:
                response = ua.ServiceFault()
                response.ResponseHeader.ServiceResult = ua.StatusCode(ua.StatusCodes.BadSecurityChecksFailed)
            self._send(processor, handle, sequence, response, kind)

        UaProcessor.open_secure_channel = open_secure_channel
        UaProcessor.send_response = send_response


class _Line:
    """The variables below Objects/Line1 and Objects/Line1/Oven."""

    def __init__(self, server: Any, index: int) -> None:
        self._server = server
        self._index = index
        self._nodes: dict[str, Any] = {}
        self._parents: dict[bool, Any] = {}

    async def add_parents(self) -> None:
        line = await self._server.nodes.objects.add_object(self._id("Line1"), self._name("Line1"))
        self._parents = {False: line, True: await line.add_object(self._id("Line1.Oven"), self._name("Oven"))}

    async def put(self, name: str, value: Any, kind: str) -> None:
        variant = ua.Variant(value, getattr(ua.VariantType, kind))
        if name in self._nodes:
            await self._nodes[name].write_value(variant)
            return
        parent = self._parents[name.startswith("Oven.")]
        added = await parent.add_variable(self._id(f"Line1.{name}"), self._name(name.rpartition(".")[2]), variant)
        self._nodes[name] = added
        if kind == "Double":
            unit = ua.EUInformation(DisplayName=ua.LocalizedText("°C"))
            await added.add_property(self._id(f"{name}.unit"), ua.QualifiedName("EngineeringUnits", 0), unit)

    async def spoil(self, name: str, status: str) -> None:
        value = ua.DataValue(StatusCode=ua.StatusCode(getattr(ua.StatusCodes, status)))
        await self._server.write_attribute_value(self._nodes[name].nodeid, value)

    async def delete(self, name: str) -> None:
        await self._server.delete_nodes([self._nodes.pop(name)], recursive=True)

    def _id(self, text: str) -> Any:
        return ua.NodeId(text, self._index)

    def _name(self, text: str) -> Any:
        return ua.QualifiedName(text, self._index)


async def serve(configuration: dict[str, Any]) -> None:
    distrust = _Distrust()
    distrust.install()
    server = Server(user_manager=_Users(configuration["password"]))
    await server.init()
    server.set_endpoint(configuration["url"])
    policies = [ua.SecurityPolicyType.NoSecurity]
    if configuration["certificate"]:
        await server.load_certificate(Path(configuration["certificate"]), None)
        await server.load_private_key(Path(configuration["key"]), None, None)
        policies = [ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt]
    server.set_security_policy(policies)
    for number in range(configuration["namespaces_before"]):
        await server.register_namespace(f"urn:test:other-{number}")
    line = _Line(server, await server.register_namespace(LINE))
    await line.add_parents()
    for name, (value, kind) in configuration["values"].items():
        await line.put(name, value, kind)
    async with server:
        _say("ready")
        loop = asyncio.get_running_loop()
        while text := await loop.run_in_executor(None, sys.stdin.readline):
            command = json.loads(text)
            for name, (value, kind) in command.get("put", {}).items():
                await line.put(name, value, kind)
            for name, status in command.get("status", {}).items():
                await line.spoil(name, status)
            distrust.is_on = command.get("distrust", distrust.is_on)
            for name in command.get("delete", []):
                await line.delete(name)
            _say("done")


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve(json.loads(sys.stdin.readline())))
