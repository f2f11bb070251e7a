"""The definition of an API operation, and the call that the operation handles."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import msgspec

from ingestd.wire import names
from workspaced.core.bodies import Body, read_body
from workspaced.core.json_body import decode
from workspaced.core.problems import ForbiddenProblem, Invalid, PreconditionFailedProblem
from workspaced.http.bodies import StreamedBody
from workspaced.http.description import DONE, Parameter, RequestBody, Success
from workspaced.http.headers import RequestHeaders
from workspaced.http.long_responses import LongResponses
from workspaced.http.responses import Response
from workspaced.security import audit_log as audit
from workspaced.security.audit_log import Actor, AuditAction
from workspaced.security.permissions import Principal
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.port import Transaction
from workspaced.storage.store import Store

_NO_COUNTS: Mapping[str, int] = {}


class Author(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The caller and the time of a change, for the changed row, the audit row and the events.

    ``client_id`` is None if the request has no ClientId. ``address`` is the caller's IP address, empty if it is not known.
    ``now`` is milliseconds since 1970.
    """

    principal: Principal | None
    client_id: str | None = None
    request_id: str = ""
    address: str = ""
    now: int

    @property
    def actor(self) -> str:
        """Return the name for createdBy and updatedBy (contract A9)."""
        return self.principal.name if self.principal else "anonymous"

    @property
    def authorship(self) -> dict[str, str | int]:
        """Return the SQL parameters that record who changed a row, and when."""
        return {"actor": self.actor, "now": self.now}

    @property
    def key_id(self) -> str:
        """Return the id of the caller's key; empty without a key."""
        return self.principal.key_id if self.principal else ""

    def note(
        self,
        tx: Transaction,
        action: str,
        resource_id: str,
        *,
        label: str = "",
        workspace_id: str = "",
        changed: Sequence[str] = (),
        counts: Mapping[str, int] = _NO_COUNTS,
        origin: str = "",
    ) -> None:
        """Append a row about this change to the audit log, in the transaction of the change (contract G26).

        ``label``: the key, label or name of the resource.
        """
        actor = Actor(
            principal=self.actor,
            key_id=self.key_id,
            client_id=self.client_id or "",
            request_id=self.request_id,
            address=self.address,
        )
        noted = AuditAction(
            action=action,
            resource_id=resource_id,
            resource_label=label,
            workspace_id=workspace_id,
            changed=changed,
            counts=counts,
            origin=origin,
        )
        audit.note(tx, actor, noted, now=self.now)


class Call(Author, frozen=True, kw_only=True, eq=False):
    """One authorized request. It is a msgspec struct, because creating a dataclass takes five times as long.

    ``operation`` is the name of the operation. ``path`` is the path as sent. ``wants_body`` is False for HEAD. ``scheme`` is
    the scheme that the caller used, http or https.
    """

    operation: str
    path: str
    wants_body: bool
    names: Mapping[str, str]
    query: Mapping[str, str]
    headers: RequestHeaders
    body: bytes
    scheme: str
    settings: WorkspacedSettings
    store: Store
    long_responses: LongResponses

    @property
    def caller(self) -> str:
        """Return the name of the caller for per-caller limits: the key's id, or the address of a caller without a key."""
        return self.principal.key_id if self.principal else f"address {self.address}"

    @property
    def workspace_id(self) -> str:
        """Return the workspace's id in the path, in lower case."""
        return self.names["workspace"]

    def require(self, scope: str, *, to: str) -> None:
        """Check that the key has a permission that the request's content needs on the path's workspace (contract A5).

        ``to`` completes the sentence "To …, the API key needs …".

        Raises:
            ForbiddenProblem: the key does not have the permission.
        """
        if self.principal is None or not self.principal.may(scope, self.workspace_id):
            raise ForbiddenProblem(f"To {to}, the API key needs the permission {scope}.")

    def json(self) -> object:
        """Return the value of the JSON body.

        Raises:
            Invalid: the body is not valid JSON.
        """
        return decode(self.body)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a query parameter that is ``true`` or ``false``.

        Raises:
            Invalid: the parameter has another value.
        """
        text = self.query.get(name)
        if text is None:
            return default
        if text not in {"true", "false"}:
            raise Invalid(f"bad_{name}", f"{name} must be true or false.")
        return text == "true"

    def prefers_minimal(self) -> bool:
        """Return whether the request has ``Prefer: return=minimal`` (RFC 7240)."""
        return self._prefers(names.RETURN_MINIMAL)

    def prefers_representation(self) -> bool:
        """Return whether the request has ``Prefer: return=representation`` (RFC 7240)."""
        return self._prefers(names.RETURN_REPRESENTATION)

    def _prefers(self, preference: str) -> bool:
        wanted = [one.split(";")[0].strip() for one in self.headers.get(names.PREFER, "").split(",")]
        return preference in wanted

    def has_seen(self, version: int | str) -> bool:
        """Return whether If-None-Match names this version."""
        return not_modified(self.headers.get("If-None-Match"), version)

    def require_match(self, version: int | str) -> None:
        """Check If-Match.

        Raises:
            PreconditionFailedProblem: If-Match names only other versions.
        """
        require_match(self.headers.get("If-Match"), version)


class SecretCipher(Protocol):
    """Encrypts stored secrets. A secret can be decrypted only with the ``purpose`` with which it was encrypted."""

    def seal(self, text: bytes, *, purpose: str) -> bytes:
        """Return the encrypted text to store."""

    def open(self, stored: bytes, *, purpose: str) -> bytes:
        """Return the secret."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a write that runs in the transaction and must not block. ``weight``: about how many rows the part touches.

    ``ignored`` names unknown members of the body (contract G5). ``secret_box``: see `Operation`. ``digest`` is the digest of a
    streamed body; a repetition of the request has the same digest.
    """

    act: Callable[[Transaction], Response]
    weight: int = 1
    ignored: tuple[str, ...] = ()
    secret_box: SecretCipher | None = None
    digest: bytes = b""


Read: TypeAlias = Callable[[Call], Awaitable[Response]]
Write: TypeAlias = Callable[..., Response]
Prepare: TypeAlias = Callable[..., Work]
RenewedCall: TypeAlias = Callable[[], Awaitable[Call]]
Take: TypeAlias = Callable[[Call, StreamedBody, RenewedCall], AbstractAsyncContextManager[Work]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation of the API (a row of the table of operations): its path, checks, handler and description.

    Exactly one of these is set:
    - ``read`` gets the call, and returns the response.
    - ``write`` gets a transaction, the call, and the checked body if ``body`` names its class. It runs on the writer's thread,
      must not block, and may run again after it was undone (`workspaced.storage.store.Store.write`).
    - ``prepare`` gets the call and the checked body on the event loop. It returns work, which runs as ``write`` does.
    - ``take`` gets the call, a streamed body, and a function to call after it has received the body. The function returns the
      call with the present time and the present permissions of the caller. It raises a problem if the key is no longer valid or
      lacks the scope. ``take`` yields work, and releases its resources after the commit.

    ``secret_box``: the response contains a secret, so the copy for repetitions (contract G18) is encrypted.

    ``scope`` None: no key is needed. ``anywhere``: the scope on any workspace suffices. ``anonymous``: all callers are allowed,
    and the handler returns only public data to callers without the permission. ``client_id``: the header ClientId is required
    (contract A8). ``document_form``: a 400 is exactly ``{"error":"Invalid request"}`` (contract G14). ``body_bytes`` 0: no
    body is read.

    The fields from ``success`` on, and the docstring of the handler, are for the API description. ``body`` is also used for
    the validation. ``etag``: a read accepts If-None-Match, a write If-Match. ``headers`` are further optional request headers,
    by their names in `workspaced.http.openapi.shared`. ``partial`` is the response with status 206.
    """

    name: str
    method: str
    path: str
    scope: str | None
    read: Read | None = None
    write: Write | None = None
    prepare: Prepare | None = None
    take: Take | None = None
    anywhere: bool = False
    anonymous: bool = False
    client_id: bool = False
    document_form: bool = False
    body_bytes: int = 0
    secret_box: SecretCipher | None = None
    success: Success = DONE
    partial: Success | None = None
    body: RequestBody | None = None
    query: tuple[Parameter, ...] = ()
    etag: bool = False
    headers: tuple[str, ...] = ()

    def described(self, **api: Any) -> Operation:
        """Return the operation with fields for the API description."""
        return dataclasses.replace(self, **api)

    def prepared(self, call: Call) -> Work:
        """Return the work of a ``write`` or a ``prepare``.

        Raises:
            Invalid: the body has mistakes.
            TypeError: the operation has neither ``write`` nor ``prepare``.
        """
        checked: tuple[Body, ...] = ()
        ignored: tuple[str, ...] = ()
        if self.body is not None and isinstance(self.body.content, type):
            body_type: type[Body] = self.body.content
            given = call.json() if self.body.required or call.body.strip() else {}
            body, ignored = read_body(body_type, given, call.settings.limits, now=call.now)
            checked = (body,)
        if write := self.write:
            return Work(act=lambda tx: write(tx, call, *checked), ignored=ignored, secret_box=self.secret_box)
        if self.prepare is None:
            raise TypeError(f"{self.name} is neither a read nor a write")
        work = self.prepare(call, *checked)
        return msgspec.structs.replace(work, ignored=ignored) if ignored else work

    @property
    def handler(self) -> object:
        """The handler that is set: ``read``, ``write``, ``prepare`` or ``take``."""
        return self.read or self.write or self.prepare or self.take


@dataclass(frozen=True, slots=True, kw_only=True)
class PathHeaders:
    """Headers of every response at and below a path, errors included. ``path`` has the form of an operation's path."""

    path: str
    headers: tuple[tuple[str, str], ...]


def not_modified(if_none_match: str | None, version: int | str) -> bool:
    """Return whether the caller already has this version. A weak entity tag is equal to its strong form."""
    return if_none_match is not None and _matches(if_none_match, version, weak=True)


def require_match(if_match: str | None, version: int | str) -> None:
    """Check that If-Match names the version.

    Raises:
        PreconditionFailedProblem: If-Match names only other versions.
    """
    if if_match is not None and not _matches(if_match, version, weak=False):
        raise PreconditionFailedProblem


def _matches(header: str, version: int | str, *, weak: bool) -> bool:
    tags = {tag.strip() for tag in header.split(",")}
    return "*" in tags or f'"{version}"' in tags or (weak and f'W/"{version}"' in tags)
