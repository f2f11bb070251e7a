"""What may be reached: the settings of the guard, and its two judgements, on URLs and on addresses. Pure (contract H15)."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network

import httpx

from workspaced.security.egress.addresses import Address, Network, embedded, is_public

_LOCAL = ("localhost", "local", "internal", "localdomain", "home.arpa", "lan")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\]")
_USERINFO = re.compile(r"[^/?#]*//[^/?#]*@")
_HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*", re.ASCII)


class UnsafeTarget(Exception):
    """The guard refuses: the URL, or what its name resolves to, may not be reached. The text is a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a request goes: pieces of a URL that was judged, so that nothing parses it a second time.

    ``path`` is percent-encoded and holds the query.
    """

    scheme: str
    host: str
    port: int
    path: bytes

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == {"https": 443, "http": 80}[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressRules:
    """Exceptions from "public https only": plain http, networks, and names whose addresses are not judged."""

    allow_http: bool = False
    allowed_networks: tuple[Network, ...] = ()
    allowed_hosts: frozenset[str] = frozenset()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], *, dev: bool) -> EgressRules:
        """``WORKSPACED_ALLOW_HTTP``, ``…_ALLOWED_CIDRS`` and ``…_ALLOWED_HOSTS`` (lists with commas).

        ``dev`` opens plain http and this machine itself.

        Raises:
            ValueError: a value can't be read; the sentence names the variable.
        """
        http = environment.get("WORKSPACED_ALLOW_HTTP", "") or "false"
        if http not in {"true", "false"}:
            raise ValueError(f"WORKSPACED_ALLOW_HTTP is '{http}', but must be true or false.")
        networks: list[Network] = []
        for text in _listed(environment.get("WORKSPACED_ALLOWED_CIDRS", "")):
            try:
                networks.append(ip_network(text))
            except ValueError as error:
                raise ValueError(f"WORKSPACED_ALLOWED_CIDRS holds '{text}', which is no network ({error}).") from error
        hosts = [host.rstrip(".").lower() for host in _listed(environment.get("WORKSPACED_ALLOWED_HOSTS", ""))]
        if dev:
            networks += [ip_network("127.0.0.0/8"), ip_network("::1/128")]
            hosts.append("localhost")
        return cls(allow_http=dev or http == "true", allowed_networks=tuple(networks), allowed_hosts=frozenset(hosts))

    def target(self, url: str) -> Target:
        """The pieces of a URL that may be tried; its name is resolved only when it is.

        Raises:
            UnsafeTarget: it may not.
        """
        if _FORBIDDEN.search(url):
            raise UnsafeTarget("It may not hold whitespace, control characters or a backslash.")
        try:
            parsed = httpx.URL(url)
            host = parsed.raw_host.decode("ascii").lower().rstrip(".")
        except (httpx.InvalidURL, UnicodeError, ValueError) as error:
            raise UnsafeTarget("It can't be read as a URL.") from error
        if parsed.scheme not in {"https", "http"} or (parsed.scheme == "http" and not self.allow_http):
            raise UnsafeTarget("It must begin with https://." if not self.allow_http else "It must be http or https.")
        if parsed.userinfo or _USERINFO.match(url):
            raise UnsafeTarget("It may not hold a user name or password; send credentials as a header.")
        if parsed.fragment or "#" in url:
            raise UnsafeTarget("It may not hold a fragment (#…).")
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
        """Let a name through only if every one of its addresses may be reached.

        Raises:
            UnsafeTarget: there is none, or one may not.
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
        raise UnsafeTarget("Its port must be 443 or one from 1024 to 65535.")

    def _require_host(self, host: str) -> None:
        address = literal(host)
        if address is not None:
            if host not in self.allowed_hosts and not self._may_reach(address):
                raise UnsafeTarget("Its address is not public.")
            return
        if len(host) > 253 or not _HOST.fullmatch(host):
            raise UnsafeTarget("It needs the name of a host.")
        if host in self.allowed_hosts:
            return
        if "." not in host or any(host == name or host.endswith(f".{name}") for name in _LOCAL):
            raise UnsafeTarget(f"The name {host} is not one of the public internet.")


def literal(host: str) -> Address | None:
    """The address that a host is instead of a name, also in the old forms that resolvers take (127.1, 0x7f000001)."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return ip_address(socket.inet_ntoa(socket.inet_aton(host)))
    except (OSError, ValueError):
        return None


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
