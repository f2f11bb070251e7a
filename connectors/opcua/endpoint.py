"""The endpoint of a server that a source uses, and whether the server's certificate is trusted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from connectors.opcua.application_certificate import fingerprint
from connectors.opcua.options import OpcuaOptions
from ingestd.sdk import SourceBroken

STRENGTH = ("Aes256_Sha256_RsaPss", "Aes128_Sha256_RsaOaep", "Basic256Sha256")
"""Policies, the strongest first. Older ones are broken, so they are never used."""

_SIGN_AND_ENCRYPT = 3


class ServerEndpoint(msgspec.Struct, frozen=True):
    """``policy``: empty for none. ``certificate``: that of the server, as DER; empty: none is needed."""

    policy: str
    certificate: bytes


def choose_endpoint(options: OpcuaOptions, offered: Iterable[Any]) -> ServerEndpoint:
    """Return the endpoint to use of those that the server offers (``asyncua.ua.EndpointDescription``).

    Raises:
        SourceBroken: none fits the settings.
    """
    secure: dict[str, ServerEndpoint] = {}
    has_open = False
    for one in offered:
        policy = str(one.SecurityPolicyUri or "").partition("#")[2]
        has_open = has_open or policy == "None"
        if int(one.SecurityMode) == _SIGN_AND_ENCRYPT and one.ServerCertificate:
            secure.setdefault(policy, ServerEndpoint(policy, _first(one.ServerCertificate)))
    names = ", ".join(sorted([*secure, *(["none"] if has_open else [])])) or "nothing that is known here"
    if options.security == "none":
        if has_open:
            return ServerEndpoint("", b"")
        raise SourceBroken(f"The server {options.address} offers {names}. Remove security: none.")
    for policy in STRENGTH if options.security == "auto" else (options.security,):
        if policy in secure:
            return secure[policy]
    remedy = "Have its administrator enable one of them."
    if has_open and options.security == "auto":
        remedy += " security: none connects without, so that everyone on the network can read and change the values."
    wanted = " or ".join(STRENGTH) if options.security == "auto" else options.security
    raise SourceBroken(
        f"The server {options.address} offers {names}, and not {wanted} with signature and encryption. {remedy}"
    )


def check_trusted(options: OpcuaOptions, certificate: bytes, now: float) -> None:
    """Check the certificate of a server.

    Raises:
        SourceBroken: it is not trusted, not valid now, or no certificate; the sentence has its fingerprint.
    """
    from cryptography import x509  # noqa: PLC0415 - the extra may be missing

    try:
        found = x509.load_der_x509_certificate(certificate)
    except ValueError as error:
        raise SourceBroken(f"The server {options.address} sends a certificate that can't be read: {error}.") from error
    shown = fingerprint(found)
    subject = found.subject.rfc4514_string()
    if shown.replace(":", "") not in options.trust:
        raise SourceBroken(
            f"The certificate of the server {options.address} ({subject}) is not trusted. Its fingerprint is {shown}. Compare it"
            f' with the one that the server\'s administrator names, then add to the source: trust: ["{shown}"]'
        )
    if not found.not_valid_before_utc.timestamp() <= now <= found.not_valid_after_utc.timestamp():
        raise SourceBroken(
            f"The certificate of the server {options.address} ({subject}) is valid from {found.not_valid_before_utc:%Y-%m-%d} to"
            f" {found.not_valid_after_utc:%Y-%m-%d}. Check the clock of this machine, or have the server's administrator renew"
            " the certificate and add its fingerprint to trust."
        )


def _first(chain: bytes) -> bytes:
    """Return the first certificate of a chain, which some servers send instead of their own."""
    return chain[: int.from_bytes(chain[2:4], "big") + 4]
