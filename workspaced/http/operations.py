"""What a slice tells the web about an operation, and what the web hands it for one request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import msgspec
from starlette.datastructures import Headers

from ingestd.wire import names
from workspaced.core.json_body import decode
from workspaced.core.problems import Invalid
from workspaced.http import conditions
from workspaced.http.bodies import StreamedBody
from workspaced.http.long_responses import LongResponses
from workspaced.http.responses import Response
from workspaced.security import audit_log as audit
from workspaced.security.audit_log import Actor, AuditAction
from workspaced.security.permissions import Principal
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.port import Store, Transaction


class Call(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One authorized request. A struct, since there is one a request: it is made in a fifth of a data class's time.

    ``path`` is the path as sent; ``wants_body`` is False for HEAD; ``now`` is milliseconds since 1970; ``address`` is the
    caller's, empty where the server does not tell; ``scheme`` is http or https, as the caller reached us.
    """

    path: str
    wants_body: bool
    names: Mapping[str, str]
    query: Mapping[str, str]
    headers: Headers
    body: bytes
    principal: Principal | None
    client_id: str | None
    request_id: str
    address: str
    scheme: str
    now: int
    settings: WorkspacedSettings
    store: Store
    long_responses: LongResponses

    @property
    def caller(self) -> str:
        """What shares are counted for: the key, or the address of a caller without one."""
        return self.principal.key_id if self.principal else f"address {self.address}"

    @property
    def actor(self) -> str:
        """The name that records carry as createdBy and updatedBy (contract A9)."""
        return self.principal.name if self.principal else "anonymous"

    @property
    def workspace_id(self) -> str:
        """The workspace in the path, in lower case."""
        return self.names["workspace"]

    def note(self, tx: Transaction, action: AuditAction) -> None:
        """Have the audit log say what this request does, in the transaction that does it (contract G26)."""
        actor = Actor(
            principal=self.actor,
            key_id=self.principal.key_id if self.principal else "",
            client_id=self.client_id or "",
            request_id=self.request_id,
            address=self.address,
        )
        audit.note(tx, actor, action, now=self.now)

    def json(self) -> object:
        """The body's value.

        Raises:
            Invalid: it has none.
        """
        return decode(self.body)

    def flag(self, name: str, *, default: bool) -> bool:
        """A query parameter that is ``true`` or ``false``.

        Raises:
            Invalid: it is neither.
        """
        text = self.query.get(name)
        if text is None:
            return default
        if text not in {"true", "false"}:
            raise Invalid(f"bad_{name}", f"{name} must be true or false.")
        return text == "true"

    def prefers_minimal(self) -> bool:
        """Whether ``Prefer: return=minimal`` was sent (RFC 7240)."""
        return self._prefers(names.RETURN_MINIMAL)

    def prefers_representation(self) -> bool:
        """Whether ``Prefer: return=representation`` was sent (RFC 7240)."""
        return self._prefers(names.RETURN_REPRESENTATION)

    def _prefers(self, preference: str) -> bool:
        wanted = [one.split(";")[0].strip() for one in self.headers.get(names.PREFER, "").split(",")]
        return preference in wanted

    def has_seen(self, version: int | str) -> bool:
        """Whether If-None-Match names this version."""
        return conditions.not_modified(self.headers.get("If-None-Match"), version)

    def require_match(self, version: int | str) -> None:
        """Honour If-Match.

        Raises:
            PreconditionFailed: it names other versions.
        """
        conditions.require_match(self.headers.get("If-Match"), version)


class Sealing(Protocol):
    """Keeps secrets at rest; ``purpose`` binds what is sealed to its place."""

    def seal(self, text: bytes, *, purpose: str) -> bytes:
        """What is stored."""

    def open(self, stored: bytes, *, purpose: str) -> bytes:
        """What was sealed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a write does inside the transaction. ``weight`` is roughly its number of rows; it must not block.

    ``ignored`` names the members of the body that nobody knows (contract G5). ``secret_box``: the answer holds a secret, so
    what is kept of it for a repetition (contract G18) is sealed. ``digest`` is that of a streamed body, by which a repetition
    is known.
    """

    act: Callable[[Transaction], Response]
    weight: int = 1
    ignored: tuple[str, ...] = ()
    secret_box: Sealing | None = None
    digest: bytes = b""


Read: TypeAlias = Callable[[Call], Awaitable[Response]]
Prepare: TypeAlias = Callable[[Call], Work]
Take: TypeAlias = Callable[[Call, StreamedBody], AbstractAsyncContextManager[Work]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One row of the table of operations.

    Exactly one of ``read``, ``prepare`` and ``take`` is given: a read answers by itself; a write checks the body and hands
    back the work, which then runs in a transaction shared with others; so does ``take``, after it has taken in a body
    that comes in pieces, and what it holds is let go after the commit. ``scope`` None: open to everybody. ``anywhere``:
    the scope need hold on any one workspace only. ``anonymous``: a read that itself sees to it that a caller without a
    key is shown only what is public. ``client_id``: the header ClientId is required (contract A8). ``document_form``: a 400 is
    exactly ``{"error":"Invalid request"}`` (contract G14). ``body_bytes`` 0: no body is read.
    """

    name: str
    method: str
    path: str
    scope: str | None
    read: Read | None = None
    prepare: Prepare | None = None
    take: Take | None = None
    anywhere: bool = False
    anonymous: bool = False
    client_id: bool = False
    document_form: bool = False
    body_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PathHeaders:
    """Headers of every response at and below a path, errors included. ``path`` is written like an operation's."""

    path: str
    headers: tuple[tuple[str, str], ...]
