"""The rules for outgoing requests: the settings, and the checks of URLs and addresses. Performs no I/O (contract H15).

``is_global`` and ``is_private`` of `ipaddress` do not suffice: ``is_global`` permits NAT64, 6to4, multicast and IPv4-compatible
addresses, and ``is_private`` permits shared address space. Both change with the version of Python.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

import httpx

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

# IANA's special-purpose registry as of 2025, so that the result is the same on all versions of Python.
_NOT_PUBLIC_4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
)
_UNICAST_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    IPv6Network(text)
    for text in ("2001::/32", "2001:2::/48", "2001:10::/28", "2001:db8::/32", "2002::/16", "3fff::/20")
)
# Addresses of both networks contain an IPv4 address in their last 32 bits. Packets are sent to that address.
_EMBEDDING = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))


def is_public(address: Address) -> bool:
    """Return whether packets to the address go to the public internet, also if a gateway translates the address."""
    if isinstance(address, IPv4Address):
        return address.is_global and not any(address in network for network in _NOT_PUBLIC_4)
    if any(address in network for network in _EMBEDDING):
        return is_public(embedded(address))
    return address in _UNICAST_6 and address.is_global and not any(address in network for network in _NOT_PUBLIC_6)


def embedded(address: IPv6Address) -> IPv4Address:
    """Return the IPv4 address in the last 32 bits."""
    return IPv4Address(int(address) & 0xFFFF_FFFF)


def networks_of(environment: Mapping[str, str], variable: str) -> list[Network]:
    """Return the addresses and networks in a variable.

    Raises:
        ValueError: a value is invalid; the message names the variable.
    """
    networks: list[Network] = []
    for text in listed(environment, variable):
        try:
            networks.append(ip_network(text))
        except ValueError as error:
            raise ValueError(f"{variable} contains '{text}', which is not a network ({error}).") from error
    return networks


def listed(environment: Mapping[str, str], variable: str) -> list[str]:
    """Return the comma-separated parts of a variable."""
    return [part.strip() for part in environment.get(variable, "").split(",") if part.strip()]


_LOCAL = ("localhost", "local", "internal", "localdomain", "home.arpa", "lan")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\]")
_USERINFO = re.compile(r"[^/?#]*//[^/?#]*@")
_HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*", re.ASCII)


class UnsafeTarget(Exception):
    """The URL, or an address of its host, is not permitted. The text is a sentence for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The parts of a checked URL. The request uses these parts, so that the URL is not parsed twice.

    ``path`` is percent-encoded and contains the query.
    """

    scheme: str
    host: str
    port: int
    path: bytes

    @property
    def authority(self) -> str:
        """Return the value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == {"https": 443, "http": 80}[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressRules:
    """Exceptions from the rule "only public addresses, only https": plain http, networks, and names with any address."""

    allow_http: bool = False
    allowed_networks: tuple[Network, ...] = ()
    allowed_hosts: frozenset[str] = frozenset()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], *, dev: bool) -> EgressRules:
        """Read ``WORKSPACED_ALLOW_HTTP``, ``…_ALLOWED_CIDRS`` and ``…_ALLOWED_HOSTS`` (comma-separated).

        ``dev`` permits plain http and the addresses of this machine.

        Raises:
            ValueError: a value is invalid; the message names the variable.
        """
        http = environment.get("WORKSPACED_ALLOW_HTTP", "") or "false"
        if http not in {"true", "false"}:
            raise ValueError(f"WORKSPACED_ALLOW_HTTP is '{http}', but must be true or false.")
        networks = networks_of(environment, "WORKSPACED_ALLOWED_CIDRS")
        hosts = [host.rstrip(".").lower() for host in listed(environment, "WORKSPACED_ALLOWED_HOSTS")]
        if dev:
            networks += [ip_network("127.0.0.0/8"), ip_network("::1/128")]
            hosts.append("localhost")
        return cls(allow_http=dev or http == "true", allowed_networks=tuple(networks), allowed_hosts=frozenset(hosts))

    def target(self, url: str) -> Target:
        """Return the parts of a permitted URL. The name is not resolved before the connection.

        Raises:
            UnsafeTarget: the URL is not permitted.
        """
        if _FORBIDDEN.search(url):
            raise UnsafeTarget("It may not contain whitespace, control characters or a backslash.")
        try:
            parsed = httpx.URL(url)
            host = parsed.raw_host.decode("ascii").lower().rstrip(".")
        except (httpx.InvalidURL, UnicodeError, ValueError) as error:
            raise UnsafeTarget("It can't be read as a URL.") from error
        if parsed.scheme not in {"https", "http"} or (parsed.scheme == "http" and not self.allow_http):
            raise UnsafeTarget("It must begin with https://." if not self.allow_http else "It must be http or https.")
        if parsed.userinfo or _USERINFO.match(url):
            raise UnsafeTarget("It may not contain a user name or password; send credentials as a header.")
        if parsed.fragment or "#" in url:
            raise UnsafeTarget("It may not contain a fragment (#…).")
        target = Target(
            scheme=parsed.scheme,
            host=host,
            port=parsed.port if parsed.port is not None else {"https": 443, "http": 80}[parsed.scheme],
            path=parsed.raw_path,
        )
        self._require_port(target.port)
        self._require_host(host)
        return target

    def require_addresses(self, host: str, addresses: Sequence[Address]) -> None:
        """Check that all addresses of a name are permitted.

        Raises:
            UnsafeTarget: there is no address, or an address is not permitted.
        """
        if not addresses:
            raise UnsafeTarget(f"The name {host} has no address.")
        if host in self.allowed_hosts:
            return
        for address in addresses:
            if not self._may_reach(address):
                raise UnsafeTarget(f"The name {host} leads to an address that is not public.")

    def _may_reach(self, address: Address) -> bool:
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        candidates = (address,) if mapped is None else (address, embedded(IPv6Address(int(address))))
        allowed = any(one in network for one in candidates for network in self.allowed_networks)
        return allowed or is_public(address)

    def _require_port(self, port: int) -> None:
        if port == 443 or 1024 <= port <= 65535 or (port == 80 and self.allow_http):
            return
        raise UnsafeTarget("Its port must be 443, or a number from 1024 to 65535.")

    def _require_host(self, host: str) -> None:
        address = literal_address(host)
        if address is not None:
            if host not in self.allowed_hosts and not self._may_reach(address):
                raise UnsafeTarget("Its address is not public.")
            return
        if len(host) > 253 or not _HOST.fullmatch(host):
            raise UnsafeTarget("It needs a valid host name.")
        if host in self.allowed_hosts:
            return
        if "." not in host or any(host == name or host.endswith(f".{name}") for name in _LOCAL):
            raise UnsafeTarget(f"The name {host} does not belong to the public internet.")


def literal_address(host: str) -> Address | None:
    """Return the address if the host is an address, not a name. Also accepts the old forms 127.1 and 0x7f000001."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return ip_address(socket.inet_ntoa(socket.inet_aton(host)))
    except (OSError, ValueError):
        return None
