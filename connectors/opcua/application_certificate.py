"""The certificate with which a source identifies itself to its server: from files, or made once and kept."""

from __future__ import annotations

import datetime as dt
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from connectors.opcua.options import OpcuaOptions
from ingestd.sdk import SourceBroken, SourceContext

if TYPE_CHECKING:
    from cryptography import x509

_DAYS = 3650
_NOTICE_DAYS = 60
_NAME = "certificate.pem"


class ApplicationCertificate(msgspec.Struct, frozen=True):
    """``certificate`` and ``key`` in the form of ``suffix`` (pem or der). ``uri``: the name of the application in it."""

    certificate: bytes
    key: bytes
    uri: str
    certificate_suffix: str = "pem"
    key_suffix: str = "pem"

    @property
    def shown(self) -> str:
        """Return the application and the fingerprint of the certificate, for the administrator of the server."""
        return f"{self.uri}, certificate {fingerprint(_load(self.certificate, self.certificate_suffix))}"


def application_certificate(
    options: OpcuaOptions, context: SourceContext, *, checks: bool = False
) -> ApplicationCertificate:
    """Return the certificate of the source, made and stored now if it is kept and there is none yet.

    ``checks``: also a process that otherwise only looks makes it. Then `ingestd check` shows the one that the daemon will use.

    Raises:
        SourceBroken: it can't be read or stored, is not a certificate, or does not exist yet.
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


def expiry_notice(own: ApplicationCertificate, now: float) -> str:
    """Return a sentence if the certificate ends soon, or has ended; empty otherwise."""
    end = _load(own.certificate, own.certificate_suffix).not_valid_after_utc
    days = (end.timestamp() - now) / 86_400
    if days > _NOTICE_DAYS:
        return ""
    ends = "ended" if days < 0 else "ends"
    return (
        f"The certificate of this source {ends} on {end:%Y-%m-%d}. With certificate: keep, `ingestd reload` after the file"
        f" {_NAME} of the pipeline was removed makes a new one, which the server must trust."
    )


def fingerprint(certificate: x509.Certificate) -> str:
    """Return the SHA-256 fingerprint with colons."""
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - the extra may be missing

    return certificate.fingerprint(hashes.SHA256()).hex(":")


def _from_files(certificate: Path, key: Path) -> ApplicationCertificate:
    content = certificate.read_bytes()
    suffix = _suffix(content)
    private = key.read_bytes()
    return ApplicationCertificate(content, private, _uri_of(_load(content, suffix)), suffix, _suffix(private))


def _suffix(content: bytes) -> str:
    return "pem" if b"-----BEGIN" in content else "der"


def _load(content: bytes, suffix: str) -> x509.Certificate:
    from cryptography import x509  # noqa: PLC0415 - the extra may be missing

    return x509.load_pem_x509_certificate(content) if suffix == "pem" else x509.load_der_x509_certificate(content)


def _uri_of(certificate: x509.Certificate) -> str:
    """Return the application's URI, which servers compare with that of the session."""
    from cryptography import x509  # noqa: PLC0415 - the extra may be missing

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        raise ValueError("it has no application URI (a URI among its subject alternative names)") from None
    found = names.get_values_for_type(x509.UniformResourceIdentifier)
    if not found:
        raise ValueError("it has no application URI (a URI among its subject alternative names)")
    return str(found[0])


def _make(pipeline: str) -> bytes:
    """Return a new private key and its self-signed certificate as PEM, as OPC 10000-6 (6.2.2) requires them."""
    from cryptography import x509  # noqa: PLC0415 - the extra may be missing
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID  # noqa: PLC0415

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
        .not_valid_before(now - dt.timedelta(days=1))  # clocks differ
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
