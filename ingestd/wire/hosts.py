"""The check whether a host is this machine."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address


def is_loopback(host: str) -> bool:
    """Return whether a host name or address belongs to this machine.

    ``::ffff:127.0.0.1`` belongs to this machine, although `ipaddress` of Python 3.11 does not call it a loopback address.
    """
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
