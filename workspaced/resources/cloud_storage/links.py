"""Signed links for uploads without an API key (contract C1), and the storage of their secret."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

from workspaced.core.json_body import encode
from workspaced.core.problems import ForbiddenProblem, UnavailableProblem
from workspaced.security.secret_box import SecretBox
from workspaced.storage.constants import replace_constant, resolve_constant
from workspaced.storage.port import Transaction

PATH: Final = "/v1/cloud-storage/upload"
_SIGNATURE: Final = "&signature="
_EXPIRES: Final = "?expires="
_CONSTANT: Final = "upload_link_secret"
_SEALED: Final = "sealed:"
_SECRET_BYTES = 32


class UploadLinks:
    """Makes and checks links. All processes use the secret of the database (`use_secret`)."""

    def __init__(self) -> None:
        self._secret: Callable[[], bytes] = _not_yet

    def use_secret(self, secret: Callable[[], bytes]) -> None:
        """Set the function that returns the secret, or raises UnavailableProblem if the secret can't be decrypted."""
        self._secret = secret

    def link(self, base_url: str, *, upload_id: str, expires_at: int) -> str:
        """Return the URL for an upload; ``expires_at`` is milliseconds since 1970."""
        signature = self.signature(upload_id, str(expires_at))
        return f"{base_url}{PATH}/{upload_id}{_EXPIRES}{expires_at}{_SIGNATURE}{signature}"

    def require_signed(self, query: Mapping[str, str], *, upload_id: str, now: int) -> None:
        """Check the signature and the expiry of a link.

        Raises:
            ForbiddenProblem: the signature is wrong, or the link has expired.
        """
        expires = query.get("expires", "")
        expected = self.signature(upload_id, expires)
        if not hmac.compare_digest(query.get("signature", "").encode(), expected.encode()):
            raise ForbiddenProblem("This upload link was not made by this service.", code="bad_upload_link")
        if now >= int(expires):
            raise ForbiddenProblem("This upload link has expired: request another link.", code="upload_link_expired")

    def signature(self, upload_id: str, expires: str) -> str:
        """Return the signature of a link; ``expires`` is the text in the link.

        Raises:
            UnavailableProblem: the secret can't be read now.
        """
        digest = hmac.new(self._secret(), f"PUT\n{upload_id}\n{expires}".encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _not_yet() -> bytes:
    raise UnavailableProblem("starting", "The service is starting.")


class UnsignedLinks:
    """Removes signatures from stored responses of repeated requests, and adds them again (contract G18).

    So the database and its backups contain no link that permits an upload.
    """

    def __init__(self, signer: UploadLinks) -> None:
        self._signer = signer

    def seal(self, text: bytes, *, purpose: str) -> bytes:
        """Return the response without the signature of its link; unchanged if it has no link."""
        del purpose
        record = _link_record(text)
        if record is None:
            return text
        return encode({**record, "uploadUrl": record["uploadUrl"].rpartition(_SIGNATURE)[0]})

    def open(self, stored: bytes, *, purpose: str) -> bytes:
        """Return the response with the signature. Raises UnavailableProblem: the secret can't be read now."""
        del purpose
        record = _link_record(stored)
        if record is None:
            return stored
        # The signature covers the upload id and not the URL, because the URL may begin with the caller's header Host.
        signature = self._signer.signature(record["uploadId"], record["uploadUrl"].rpartition(_EXPIRES)[2])
        return encode({**record, "uploadUrl": f"{record['uploadUrl']}{_SIGNATURE}{signature}"})


def _link_record(body: bytes) -> dict[str, Any] | None:
    record: dict[str, Any] = json.loads(body)
    return record if "uploadUrl" in record else None


def resolve_secret(tx: Transaction, secret_box: SecretBox, *, renew: bool = False) -> str:
    """Return the secret in its stored form: encrypted if the service has an encryption key (contract H3).

    The first start creates the secret. The first start with an encryption key encrypts the secret. ``renew``: replace the
    secret, because its encryption key is lost.
    """
    stored = resolve_constant(tx, _CONSTANT, "", default=_to_store(secrets.token_bytes(_SECRET_BYTES), secret_box))
    if renew:
        new = _to_store(secrets.token_bytes(_SECRET_BYTES), secret_box)
    elif secret_box.seals and not stored.startswith(_SEALED):
        new = _to_store(bytes.fromhex(stored), secret_box)
    else:
        return stored
    replace_constant(tx, _CONSTANT, stored, new)
    return new


def open_secret(stored: str, secret_box: SecretBox) -> bytes:
    """Return the secret. Raises UnavailableProblem: this process does not have the key that encrypted the secret."""
    if not stored.startswith(_SEALED):
        return bytes.fromhex(stored)
    return secret_box.open(base64.b64decode(stored.removeprefix(_SEALED)), purpose=_CONSTANT)


def _to_store(secret: bytes, secret_box: SecretBox) -> str:
    if not secret_box.seals:
        return secret.hex()
    return _SEALED + base64.b64encode(secret_box.seal(secret, purpose=_CONSTANT)).decode()
