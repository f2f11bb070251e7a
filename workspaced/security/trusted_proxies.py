"""The address and scheme of the client behind trusted proxies (contract P6). Performs no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from workspaced.security.egress.addresses import Network, networks_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxies:
    """The networks of trusted proxies: their X-Forwarded-For and X-Forwarded-Proto are used."""

    networks: tuple[Network, ...] = ()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Proxies:
        """Read ``WORKSPACED_TRUSTED_PROXIES``: addresses and networks, separated by commas.

        Raises:
            ValueError: a value is invalid; the message names the variable.
        """
        return cls(networks=tuple(networks_of(environment, "WORKSPACED_TRUSTED_PROXIES")))

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
        if not self.networks or not forwarded_proto:
            return own
        first = forwarded_proto.split(",")[0].strip().lower()
        return first if first in {"http", "https"} and self.trusts(peer) else own

    def trusts(self, address: str) -> bool:
        """Return whether the address is that of a trusted proxy."""
        try:
            found = ip_address(address)
        except ValueError:  # a Unix socket has no address
            return False
        return any(found in network for network in self.networks)
