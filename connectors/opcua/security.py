"""Security of connections: choose an endpoint, check the server's certificate, and create the source's certificate."""

from __future__ import annotations

import datetime as dt
import re
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from connectors.opcua.options import OpcuaOptions
from ingestd.sdk import SourceBroken, SourceContext

STRENGTH = ("Aes256_Sha256_RsaPss", "Aes128_Sha256_RsaOaep", "Basic256Sha256")
"""The supported security policies, the strongest first. Older policies are not secure, so they are never used."""

_SIGN_AND_ENCRYPT = 3
_DAYS = 3650
_NOTICE_DAYS = 60
_NAME = "certificate.pem"


class ServerEndpoint(msgspec.Struct, frozen=True):
    """An endpoint. ``policy``: the security policy; empty for no security. ``certificate``: the server's certificate as DER."""

    policy: str
    certificate: bytes


def choose_endpoint(options: OpcuaOptions, offered: Iterable[Any]) -> ServerEndpoint:
    """Return the most secure of the ``offered`` endpoints (``asyncua.ua.EndpointDescription``) that the settings permit.

    Raises:
        SourceBroken: the settings permit no offered endpoint.
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
        remedy += (
            " security: none connects without security, so that everyone on the network can read and change the values."
        )
    wanted = " or ".join(STRENGTH) if options.security == "auto" else options.security
    raise SourceBroken(
        f"The server {options.address} offers {names}, and not {wanted} with signature and encryption. {remedy}"
    )


def check_trusted(options: OpcuaOptions, certificate: bytes, now: float) -> None:
    """Check the certificate of a server.

    Raises:
        SourceBroken: the certificate is not trusted, not valid now, or not readable. The sentence shows the fingerprint.
    """
    try:
        found = x509.load_der_x509_certificate(certificate)
    except ValueError as error:
        raise SourceBroken(f"The server {options.address} sends a certificate that can't be read: {error}.") from error
    shown = fingerprint(found)
    subject = found.subject.rfc4514_string()
    if shown.replace(":", "") not in options.trust:
        raise SourceBroken(
            f"The certificate of the server {options.address} ({subject}) is not trusted. Its fingerprint is {shown}. Compare it"
            f' with the fingerprint that the server\'s administrator names, then add to the source: trust: ["{shown}"]'
        )
    if not found.not_valid_before_utc.timestamp() <= now <= found.not_valid_after_utc.timestamp():
        raise SourceBroken(
            f"The certificate of the server {options.address} ({subject}) is valid from {found.not_valid_before_utc:%Y-%m-%d} to"
            f" {found.not_valid_after_utc:%Y-%m-%d}. Check the clock of this machine, or have the server's administrator renew"
            " the certificate and add its fingerprint to trust."
        )


def _first(chain: bytes) -> bytes:
    """Return the first certificate of a chain. Some servers send a chain instead of only their own certificate."""
    return chain[: int.from_bytes(chain[2:4], "big") + 4]


class ApplicationCertificate(msgspec.Struct, frozen=True):
    """The source's certificate and private key. A suffix is a format: pem or der. ``uri``: the application URI."""

    certificate: bytes
    key: bytes
    uri: str
    certificate_suffix: str = "pem"
    key_suffix: str = "pem"

    @property
    def shown(self) -> str:
        """The application URI and the fingerprint of the certificate, for the administrator of the server."""
        return f"{self.uri}, certificate {fingerprint(_load(self.certificate, self.certificate_suffix))}"

    def expiry_notice(self, now: float) -> str:
        """Return a sentence if the certificate expires soon or has expired; else empty."""
        end = _load(self.certificate, self.certificate_suffix).not_valid_after_utc
        days = (end.timestamp() - now) / 86_400
        if days > _NOTICE_DAYS:
            return ""
        ends = "ended" if days < 0 else "ends"
        return (
            f"The certificate of this source {ends} on {end:%Y-%m-%d}. With certificate: keep, remove the file {_NAME} of the"
            " pipeline and run `ingestd reload`. This makes a new certificate, which the server must trust."
        )


def application_certificate(
    options: OpcuaOptions, context: SourceContext, *, checks: bool = False
) -> ApplicationCertificate:
    """Return the certificate of the source. With ``certificate: keep``, the first call creates and stores the certificate.

    ``checks``: this process is `ingestd check`. It also creates the certificate, so that it checks the access with the
    certificate that the daemon will use. Other commands that store nothing do not create a certificate.

    Raises:
        SourceBroken: the certificate can't be read or stored, is not a certificate, or does not exist yet.
    """
    try:
        if options.key_file is not None and isinstance(options.certificate, Path):
            return _from_files(context.base / options.certificate, context.base / options.key_file)
        kept = context.keep(_NAME)
        content = kept.read()
        if content is None and context.unsaved is not None and not checks:
            raise SourceBroken(
                f"The source {context.pipeline} has no certificate yet, and this command makes none. Run `ingestd check` first."
            )
        if content is None:
            content = kept.write_first(_make(context.pipeline))
        return ApplicationCertificate(content, content, _uri_of(_load(content, "pem")))
    except PermissionError as error:
        raise SourceBroken(
            f"The certificate of this source can't be read or stored beside the state file: {error}. Run this command with the"
            " account of the daemon."
        ) from error
    except (OSError, ValueError) as error:
        raise SourceBroken(f"The certificate of this source can't be used: {error}.") from error


def fingerprint(certificate: x509.Certificate) -> str:
    """Return the SHA-256 fingerprint of a certificate, in hexadecimal with colons."""
    return certificate.fingerprint(hashes.SHA256()).hex(":")


def _from_files(certificate: Path, key: Path) -> ApplicationCertificate:
    content = certificate.read_bytes()
    suffix = _suffix(content)
    private = key.read_bytes()
    return ApplicationCertificate(content, private, _uri_of(_load(content, suffix)), suffix, _suffix(private))


def _suffix(content: bytes) -> str:
    return "pem" if b"-----BEGIN" in content else "der"


def _load(content: bytes, suffix: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(content) if suffix == "pem" else x509.load_der_x509_certificate(content)


def _uri_of(certificate: x509.Certificate) -> str:
    """Return the application URI of a certificate. A server compares this URI with the application URI of the session."""
    for extension in certificate.extensions:
        if isinstance(names := extension.value, x509.SubjectAlternativeName):
            for uri in names.get_values_for_type(x509.UniformResourceIdentifier):
                return str(uri)
    raise ValueError("it has no application URI (a URI among its subject alternative names)")


def _make(pipeline: str) -> bytes:
    """Return a new private key and its self-signed certificate as PEM, according to OPC 10000-6 (6.2.2)."""
    host = socket.gethostname()
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"ingestd {pipeline}"[:64])])
    uri = f"urn:{_plain(host)}:ingestd:{_plain(pipeline)}"
    now = dt.datetime.now(dt.UTC)
    names = [x509.UniformResourceIdentifier(uri), x509.DNSName(_plain(host))]
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))  # the server's clock may be slow
        .not_valid_after(now + dt.timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                content_commitment=True,
                key_encipherment=True,
                data_encipherment=True,
                key_agreement=False,
                key_cert_sign=False,
                crl_sign=False,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "-", text) or "x"
