"""Errors of object stores as sentences that say what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping

from obstore import exceptions

from connectors.tls import TlsFault, describe

_DENIED = (exceptions.UnauthenticatedError, exceptions.PermissionDeniedError)
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_STATUS = re.compile(r"\b(?:status|code)\D{0,20}([45]\d\d)\b", re.IGNORECASE)
_CERTIFICATE = re.compile(r"InvalidCertificate\((?:\s|Other\(|OtherError\(){0,200}(\w{1,60})")
_NO_TLS = re.compile(r"kind: InvalidData,\s{0,200}error: InvalidMessage")
_CONNECTION = re.compile(r'\bOs \{[^{}"]{0,300}message: "([^"]{1,100})"|"(failed to lookup address[^"]{0,100})"')
_REDIRECT = "Received redirect without LOCATION"
_CERTIFICATES: Mapping[str, TlsFault] = {
    "UnknownIssuer": "untrusted",
    "CaUsedAsEndEntity": "untrusted",  # self-signed
    "NotValidForName": "other name",
    "NotValidForNameContext": "other name",
    "Expired": "expired",
    "ExpiredContext": "expired",
    "NotValidYet": "not yet valid",
    "NotValidYetContext": "not yet valid",
}
"""Names of the TLS library of obstore, as its errors write them."""
_RIGHTS = (
    "Check access_key, secret_key and what they permit: to list and read, with after: archive or delete also to write and"
    " delete."
)
_REGION = "The bucket is in another region. Correct region, or endpoint."
_CLOCK = "The clock of this machine is wrong. Set it, for example by systemd-timesyncd."
_NO_BUCKET = "There is no bucket or container of this name. Correct url, or endpoint."
_KEY_MISMATCH = (
    "secret_key does not belong to access_key. Correct it. If it is right, check region, the clock of this machine, and whether a"
    " proxy changes the requests."
)
_REMEDIES: Mapping[str, str] = {
    "AccessDenied": _RIGHTS,
    "AuthenticationFailed": _KEY_MISMATCH,
    "AuthorizationHeaderMalformed": _REGION,
    "ContainerNotFound": _NO_BUCKET,
    "ExpiredToken": "The temporary credentials have ended. Renew them, and restart the daemon.",
    "InvalidAccessKeyId": "The server does not know access_key. Correct it, or endpoint.",
    "NoSuchBucket": _NO_BUCKET,
    "PermanentRedirect": _REGION,
    "RequestTimeTooSkewed": _CLOCK,
    "SignatureDoesNotMatch": _KEY_MISMATCH,
}
"""What to do after an error of a server, by its code."""


def explain_failure(error: exceptions.BaseError) -> str:
    """Return what is certain about an error, and what to do. Its text may hold a signed address, so it is not shown."""
    text = str(error)
    if found := _CERTIFICATE.search(text):
        trust = "add it to those of the system, or name its file in the variable SSL_CERT_FILE; then restart the daemon"
        described = describe(_CERTIFICATES.get(found[1], "other"), detail=found[1], trust=trust)
        return f"can't be reached: {described}"
    if _NO_TLS.search(text):
        return f"can't be reached: {describe('no tls', detail='', trust='')}"
    code = found[1] if (found := _CODE.search(text)) else ""
    status = found[1] if (found := _STATUS.search(text)) else ""
    detail = f" ({code or f'status {status}'})" if code or status else ""
    if _REDIRECT in text:
        code = "PermanentRedirect"
    if code in _REMEDIES:
        return f"can't be used{detail}. {_REMEDIES[code]}"
    if isinstance(error, _DENIED) or status in {"401", "403"}:
        return f"can't be used: access is denied{detail}. {_RIGHTS}"
    if found := _CONNECTION.search(text):
        return f"can't be reached: {found[1] or found[2]}. Check endpoint and the network."
    return f"can't be used now{detail}."
