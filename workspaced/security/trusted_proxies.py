"""The address and scheme of the client behind trusted proxies (contract P6). Performs no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from workspaced.security.egress.rules import Network, networks_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxies:
    """The networks of trusted proxies. Only their headers X-Forwarded-For and X-Forwarded-Proto are used."""

    networks: tuple[Network, ...] = ()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Proxies:
        """Read ``WORKSPACED_TRUSTED_PROXIES``: addresses and networks, separated by commas.

        Raises:
            ValueError: a value is invalid; the message names the variable.
        """
        return cls(networks=tuple(networks_of(environment, "WORKSPACED_TRUSTED_PROXIES")))

    def caller(self, peer: str, forwarded_for: str | None) -> str:
        """Return the nearest address that is not a trusted proxy. Any client can forge the addresses that precede it."""
        return self._path(peer, forwarded_for)[-1]

    def scheme(self, peer: str, forwarded_for: str | None, forwarded_proto: str | None, *, own: str) -> str:
        """Return the scheme, http or https, that the outermost trusted proxy reports; else ``own``.

        Each proxy appends the scheme of the request that it received, or replaces the header. Any client can forge the values
        that precede the values of the trusted proxies.
        """
        if not forwarded_proto or not self.trusts(peer):
            return own
        proxies = len(self._path(peer, forwarded_for)) - 1
        schemes = [scheme.strip().lower() for scheme in forwarded_proto.split(",")]
        outermost = schemes[-min(max(proxies, 1), len(schemes))]
        return outermost if outermost in {"http", "https"} else own

    def _path(self, peer: str, forwarded_for: str | None) -> list[str]:
        """Return the addresses from the connected peer to the client; all except the last are trusted proxies."""
        path = [peer]
        for claimed in reversed((forwarded_for or "").split(",") if self.networks else ()):
            if not self.trusts(path[-1]):
                break
            try:
                path.append(str(ip_address(claimed.strip())))
            except ValueError:
                break
        return path

    def trusts(self, address: str) -> bool:
        """Return whether the address belongs to a trusted proxy."""
        try:
            found = ip_address(address)
        except ValueError:  # a Unix socket has no address
            return False
        return any(found in network for network in self.networks)
