"""Networks in settings, and which addresses belong to the public internet. Pure.

Neither ``is_global`` nor ``is_private`` of `ipaddress` suffices (contract H15): the first permits NAT64, 6to4, multicast and
IPv4-compatible addresses, the second permits shared address space, and both change with the version of Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

# IANA's special-purpose registry as of 2025, so that all versions of Python decide alike.
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
# Both contain an IPv4 address in their last 32 bits, to which packets are sent.
_EMBEDDING = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))


def is_public(address: Address) -> bool:
    """Return whether packets to the address go to the public internet, through gateways too."""
    if isinstance(address, IPv4Address):
        return address.is_global and not any(address in network for network in _NOT_PUBLIC_4)
    if any(address in network for network in _EMBEDDING):
        return is_public(embedded(address))
    return address in _UNICAST_6 and address.is_global and not any(address in network for network in _NOT_PUBLIC_6)


def embedded(address: IPv6Address) -> IPv4Address:
    """Return the IPv4 address in the last 32 bits."""
    return IPv4Address(int(address) & 0xFFFF_FFFF)


def networks_of(environment: Mapping[str, str], variable: str) -> list[Network]:
    """Return the addresses and networks of a variable.

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
    """Return the parts of a variable that are separated by commas."""
    return [part.strip() for part in environment.get(variable, "").split(",") if part.strip()]
