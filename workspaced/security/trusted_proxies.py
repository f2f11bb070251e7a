"""The address and scheme of the client behind trusted proxies (contract P6). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxies:
    """The networks of trusted proxies: their X-Forwarded-For and X-Forwarded-Proto are used."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Proxies:
        """Read ``WORKSPACED_TRUSTED_PROXIES``: addresses and networks, separated by commas.

        Raises:
            ValueError: a value is invalid; the message names the variable.
        """
        networks: list[IPv4Network | IPv6Network] = []
        for text in environment.get("WORKSPACED_TRUSTED_PROXIES", "").split(","):
            if not text.strip():
                continue
            try:
                networks.append(ip_network(text.strip()))
            except ValueError as error:
                raise ValueError(
                    f"WORKSPACED_TRUSTED_PROXIES holds '{text.strip()}', which is no network ({error})."
                ) from error
        return cls(networks=tuple(networks))

    def caller(self, peer: str, forwarded_for: str | None) -> str:
        """Return the nearest address that is not a trusted proxy. Any client can forge the addresses before it."""
        if not self.networks or not forwarded_for:
            return peer
        address = peer
        for claimed in reversed(forwarded_for.split(",")):
            if not self.trusts(address):
                return address
            try:
                address = str(ip_address(claimed.strip()))
            except ValueError:
                return address
        return address

    def scheme(self, peer: str, forwarded_proto: str | None, *, own: str) -> str:
        """Return the scheme, http or https, that the outermost trusted proxy reports; else ``own``."""
        first = (forwarded_proto or "").split(",")[0].strip().lower()
        return first if first in {"http", "https"} and self.trusts(peer) else own

    def trusts(self, address: str) -> bool:
        """Return whether the address is that of a trusted proxy."""
        try:
            found = ip_address(address)
        except ValueError:  # a Unix socket has no address
            return False
        return any(found in network for network in self.networks)
