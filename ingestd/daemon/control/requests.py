"""Requests and responses of the control socket, and their encoding as a line of JSON."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any, Literal, TypeAlias

import msgspec

from ingestd.daemon.control.message import VERSION, ReadStatus, RequestMessage, ResponseMessage, StatusText
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.control.time_zone import used_zone, zone_of
from ingestd.daemon.pipeline_states import SourceNotices
from ingestd.delivery.drift import DriftCheckResult
from ingestd.mirror.rejections import Retried, Selection
from ingestd.mirror.rollback import Rollback, RunSelection
from ingestd.settings.drift import Mode


class RetryRejected(msgspec.Struct, frozen=True, kw_only=True, tag="retry_rejected"):
    """Retry rejections; the response is `Retried`."""

    selection: Selection


class DropRejected(msgspec.Struct, frozen=True, kw_only=True, tag="drop_rejected"):
    """Delete rejections; the response is the number of deleted rejections."""

    selection: Selection


class CheckDrift(msgspec.Struct, frozen=True, kw_only=True, tag="check_drift"):
    """Read the sinks of pipelines back; the response is a `DriftCheckResult` for each sink."""

    pipelines: tuple[str, ...]
    mode: Mode


class Explain(msgspec.Struct, frozen=True, kw_only=True, tag="explain"):
    """Explain why a partition waits; the response is `Explained`. ``cursor``: the cursor of the last complete reading."""

    pipeline: str
    partition: str
    cursor: dict[str, Any] | None


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """The explanation of a partition. ``waiting``: why it waits, or empty. ``location``: where its file is now, or empty."""

    waiting: str
    location: str


class ReadNotices(msgspec.Struct, frozen=True, kw_only=True, tag="read_notices"):
    """Return notices about the sources; the response is `SourceNotices`."""


class MoveCursor(msgspec.Struct, frozen=True, kw_only=True, tag="move_cursor"):
    """Move the cursors of partitions (``partitions`` empty: all known partitions); the response is `CursorsMoved`.

    ``cursor``: the cursor to ``set``. ``to``: the value of the cursor column to which ``rewind`` returns. ``backfill``: read
    all rows again, in addition to the changes. ``cancel``: end the backfill.
    """

    pipeline: str
    partitions: tuple[str, ...]
    action: Literal["set", "rewind", "reset", "backfill", "cancel"]
    cursor: dict[str, Any] | None = None
    to: str = ""


class CursorsMoved(msgspec.Struct, frozen=True, kw_only=True):
    """The partitions of the cursors that were moved."""

    partitions: tuple[str, ...]


class DecideRun(msgspec.Struct, frozen=True, kw_only=True, tag="decide_run"):
    """Approve or discard a held run; the response is `RunDecided`."""

    run: int
    decision: Literal["approved", "discarded"]


class RunDecided(msgspec.Struct, frozen=True, kw_only=True):
    """A decided run, with counts of the changed entries. ``refusal``: why the run can't be approved or discarded, or empty.

    ``read_again``: the approved run could not be written completely, so its source is read again and passes the guard.
    ``paused``: the pipeline is paused, so the entries are sent when it is resumed.
    """

    refusal: str = ""
    pipeline: str = ""
    partition: str = ""
    created: int = 0
    updated: int = 0
    removed: int = 0
    read_again: bool = False
    paused: bool = False


class ControlPipeline(msgspec.Struct, frozen=True, kw_only=True, tag="control_pipeline"):
    """Pause a pipeline, end its pause, or read its source now (``run``); the response is `PipelineControlled`."""

    pipeline: str
    action: Literal["pause", "resume", "run"]


class PipelineControlled(msgspec.Struct, frozen=True, kw_only=True):
    """The response to `ControlPipeline`. ``sentence``: the result; if not ``is_done``, why the request is not possible."""

    sentence: str
    is_done: bool = True


class RollBack(msgspec.Struct, frozen=True, kw_only=True, tag="roll_back"):
    """Undo what runs have delivered; the response is `RunsUndone`. ``only_plan``: only return what would be undone."""

    selection: RunSelection
    only_plan: bool


class RunsUndone(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that were undone, or that would be undone. ``refusal``: why the runs can't be rolled back, or empty.

    ``unchecked``: sinks that could not be compared with the service, each with the reason. For these sinks, changes by other
    programs since the last comparison are not known.
    """

    refusal: str = ""
    done: Rollback | None = None
    unchecked: tuple[str, ...] = ()


class ControlStandby(msgspec.Struct, frozen=True, kw_only=True, tag="control_standby"):
    """Show or change which daemon is active; the response is `StandbyControlled`.

    ``promote``: this daemon takes over. ``step_down``: a standby takes over from this daemon.
    """

    action: Literal["status", "promote", "step_down"]
    as_json: bool = False


class StandbyControlled(msgspec.Struct, frozen=True, kw_only=True):
    """The response to `ControlStandby`. ``text``: state or result; if not ``is_done``, why the request is not possible."""

    text: str
    is_done: bool = True


class Reload(msgspec.Struct, frozen=True, kw_only=True, tag="reload"):
    """Read the configuration and its secrets again and apply the changes; the response is `Reloaded`."""


class Reloaded(msgspec.Struct, frozen=True, kw_only=True):
    """The names of pipelines by their kind of change, and the changed settings."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    """Pairs of the former and the current name."""
    restarted: tuple[str, ...] = ()
    unchanged: int = 0
    """The number of all other pipelines."""
    service: bool = False
    """Whether settings below ``service`` changed."""
    api_key: bool = False
    rejected: bool = False
    retried: tuple[str, ...] = ()
    """Pipelines with a failed source that is read again now."""
    waiting: dict[str, float] = msgspec.field(default_factory=dict)
    """By pipeline: the time before which the source asked not to be read, in seconds since the epoch."""
    mistakes: tuple[str, ...] = ()
    """The mistakes of the configuration file. If the file has mistakes, nothing was changed."""


Request: TypeAlias = (
    RetryRejected
    | DropRejected
    | CheckDrift
    | Explain
    | ReadStatus
    | ReadNotices
    | MoveCursor
    | DecideRun
    | ControlPipeline
    | RollBack
    | ControlStandby
    | Reload
)
Response: TypeAlias = (
    Retried
    | int
    | tuple[DriftCheckResult, ...]
    | Explained
    | StatusText
    | SourceNotices
    | CursorsMoved
    | RunDecided
    | PipelineControlled
    | RunsUndone
    | StandbyControlled
    | Reloaded
)

_RESPONSES: dict[type[Request], Any] = {
    RetryRejected: Retried,
    DropRejected: int,
    CheckDrift: tuple[DriftCheckResult, ...],
    Explain: Explained,
    ReadStatus: StatusText,
    ReadNotices: SourceNotices,
    MoveCursor: CursorsMoved,
    DecideRun: RunDecided,
    ControlPipeline: PipelineControlled,
    RollBack: RunsUndone,
    ControlStandby: StandbyControlled,
    Reload: Reloaded,
}


_OTHER_VERSION = "The running daemon has another version than this command. Restart the daemon."


def encode_request(request: Request) -> bytes:
    """Encode a request as a line."""
    encoded = msgspec.Raw(msgspec.json.encode(request))
    return msgspec.json.encode(RequestMessage(version=VERSION, request=encoded, zone=used_zone())) + b"\n"


def decode_request(line: bytes) -> tuple[Request, tzinfo]:
    """Decode a line to a request and the time zone of the response.

    Raises:
        RequestRefused: the request is of another version.
    """
    try:
        found = msgspec.json.decode(line, type=RequestMessage)
        if found.version != VERSION:
            raise RequestRefused(_OTHER_VERSION)
        request: Request = msgspec.json.decode(found.request, type=Request)
    except msgspec.DecodeError:
        raise RequestRefused(_OTHER_VERSION) from None
    return request, zone_of(found.zone)


def encode_response(response: Response) -> bytes:
    """Encode a response as a line."""
    return msgspec.json.encode(ResponseMessage(response=msgspec.Raw(msgspec.json.encode(response)))) + b"\n"


def encode_refusal(sentence: str) -> bytes:
    """Encode a refusal as a line."""
    return msgspec.json.encode(ResponseMessage(refusal=sentence)) + b"\n"


def decode_response(request: Request, line: bytes) -> Response:
    """Decode the response to a request from a line.

    Raises:
        RequestRefused: the daemon refused the request, or the response is of another version.
    """
    try:
        found = msgspec.json.decode(line, type=ResponseMessage)
        if found.refusal:
            raise RequestRefused(found.refusal)
        response: Response = msgspec.json.decode(found.response, type=_RESPONSES[type(request)])
    except msgspec.DecodeError:
        raise RequestRefused(_OTHER_VERSION) from None
    return response
