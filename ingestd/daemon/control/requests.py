"""What can be asked of a daemon, and how it travels: one line of JSON each way."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from ingestd.daemon.control.refusal import RequestRefused
from ingestd.delivery.drift import DriftCheckResult
from ingestd.intake.notice import OperatorNotice
from ingestd.mirror.rejections import Retried, Selection
from ingestd.settings.drift import Mode

VERSION = 1
"""Of the form of requests and answers: a daemon that was started before an update may speak another."""

LONGEST_LINE = 16 << 20
"""Bytes; a selection by number may list many."""


class RetryRejected(msgspec.Struct, frozen=True, kw_only=True, tag="retry_rejected"):
    """Put rejections back; answered with `Retried`."""

    selection: Selection


class DropRejected(msgspec.Struct, frozen=True, kw_only=True, tag="drop_rejected"):
    """Forget rejections; answered with their number."""

    selection: Selection


class CheckDrift(msgspec.Struct, frozen=True, kw_only=True, tag="check_drift"):
    """Read the sinks of pipelines back; answered with a `DriftCheckResult` for each sink."""

    pipelines: tuple[str, ...]
    mode: Mode


class Explain(msgspec.Struct, frozen=True, kw_only=True, tag="explain"):
    """Say what is in the way of a partition, which was last read to its end with the cursor; answered with `Explained`."""

    pipeline: str
    partition: str
    cursor: dict[str, Any] | None


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """``waiting``: what is in its way; empty: nothing. ``whereabouts``: where its file is now; empty: it is none."""

    waiting: str
    whereabouts: str


class ReadNotices(msgspec.Struct, frozen=True, kw_only=True, tag="read_notices"):
    """Return what an operator should know about the sources; answered with `SourceNotices`."""


class SourceNotices(msgspec.Struct, frozen=True, kw_only=True):
    """The notices of all pipelines."""

    notices: tuple[OperatorNotice, ...]


class Reload(msgspec.Struct, frozen=True, kw_only=True, tag="reload"):
    """Read the configuration and its secrets again; answered with `Reloaded`."""


class Reloaded(msgspec.Struct, frozen=True, kw_only=True):
    """``mistakes`` of the configuration file: with any, nothing was changed.

    ``key_changed``: another API key is used from now on. ``restart_for``: what differs from the running configuration and needs
    a restart.
    """

    key_changed: bool = False
    restart_for: tuple[str, ...] = ()
    mistakes: tuple[str, ...] = ()


Request: TypeAlias = RetryRejected | DropRejected | CheckDrift | Explain | ReadNotices | Reload
Answer: TypeAlias = Retried | int | tuple[DriftCheckResult, ...] | Explained | SourceNotices | Reloaded

_ANSWERS: dict[type[Request], Any] = {
    RetryRejected: Retried,
    DropRejected: int,
    CheckDrift: tuple[DriftCheckResult, ...],
    Explain: Explained,
    ReadNotices: SourceNotices,
    Reload: Reloaded,
}


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    request: msgspec.Raw


class _Answered(msgspec.Struct, frozen=True, kw_only=True):
    answer: msgspec.Raw = msgspec.Raw(b"null")
    refusal: str = ""


_OTHER_VERSION = "The daemon that runs is of another version than this command. Restart the daemon."


def asked(request: Request) -> bytes:
    """A request as a line."""
    return msgspec.json.encode(_Asked(version=VERSION, request=msgspec.Raw(msgspec.json.encode(request)))) + b"\n"


def read_request(line: bytes) -> Request:
    """The request of a line.

    Raises:
        RequestRefused: it is none that this version knows.
    """
    try:
        found = msgspec.json.decode(line, type=_Asked)
        if found.version != VERSION:
            raise RequestRefused(_OTHER_VERSION)
        request: Request = msgspec.json.decode(found.request, type=Request)
    except msgspec.DecodeError:
        raise RequestRefused(_OTHER_VERSION) from None
    return request


def answered(answer: Answer) -> bytes:
    """An answer as a line."""
    return msgspec.json.encode(_Answered(answer=msgspec.Raw(msgspec.json.encode(answer)))) + b"\n"


def refused(sentence: str) -> bytes:
    """A refusal as a line."""
    return msgspec.json.encode(_Answered(refusal=sentence)) + b"\n"


def read_answer(request: Request, line: bytes) -> Answer:
    """What a line says to a request.

    Raises:
        RequestRefused: the daemon can't do it, or answers in a form of another version.
    """
    try:
        found = msgspec.json.decode(line, type=_Answered)
        if found.refusal:
            raise RequestRefused(found.refusal)
        answer: Answer = msgspec.json.decode(found.answer, type=_ANSWERS[type(request)])
    except msgspec.DecodeError:
        raise RequestRefused(_OTHER_VERSION) from None
    return answer
