"""TLS errors as sentences that state what to do."""

from __future__ import annotations

import ssl
from typing import Literal, TypeAlias

from ingestd.core.errors import causes

TlsFault: TypeAlias = Literal["untrusted", "other name", "expired", "not yet valid", "no tls", "other"]

_VERIFICATION: dict[int, TlsFault] = {
    9: "not yet valid",
    10: "expired",
    18: "untrusted",  # self-signed
    19: "untrusted",  # self-signed authority
    20: "untrusted",  # unknown authority
    21: "untrusted",  # the authority's certificate is not sent
    62: "other name",
    64: "other name",  # another IP address
}
"""Codes of OpenSSL (X509_V_ERR_…)."""
_NO_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG"}


def find_tls_error(error: BaseException) -> ssl.SSLError | None:
    """Return the TLS error that caused an error of a library; None if there is none."""
    return next((cause for cause in causes(error) if isinstance(cause, ssl.SSLError)), None)


def tls_fault(error: ssl.SSLError) -> TlsFault:
    """Return the kind of a TLS error."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _VERIFICATION.get(getattr(error, "verify_code", 0), "other")
    return "no tls" if error.reason in _NO_TLS else "other"


def describe(fault: TlsFault, *, detail: str, trust: str) -> str:
    """Return a sentence that follows the name of the server and a colon.

    ``detail``: the message of the library; empty if there is none. ``trust``: an imperative that states how to make the program
    trust the certificate of an authority.
    """
    words = f" ({detail.rstrip('.')})" if detail else ""
    match fault:
        case "untrusted":
            return (
                f"its certificate is not trusted{words}. Ask its administrator for the certificate of the authority that issued"
                f" it, and {trust}."
            )
        case "other name":
            return (
                f"its certificate is for another name{words}. Use that name in the address, "
                "or have another certificate issued."
            )
        case "expired":
            return f"its certificate has expired{words}. Its administrator must renew it. Check the clock of this machine, too."
        case "not yet valid":
            return f"its certificate is not valid yet{words}. Check the clocks of both machines."
        case "no tls":
            return f"it does not speak TLS{words}. Correct the port, or write http:// if the server has no TLS."
        case "other":
            return f"TLS failed{words}. Check its certificate with `openssl s_client -connect HOST:PORT`."
