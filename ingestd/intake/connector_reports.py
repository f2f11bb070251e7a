"""What a connector reports apart from records: notices, waiting files and health. An exception in a report becomes a notice."""

from __future__ import annotations

import msgspec

from ingestd.intake.notice import OperatorNotice, SourceHealth
from ingestd.process.redaction import redact_text
from ingestd.process.supervision import one_line
from ingestd.sdk import ConnectionHealth, Connector
from ingestd.sdk.connector import WaitingFile, WaitingReason


def connector_notices(pipeline: str, connector: Connector) -> list[OperatorNotice]:
    """Return `Connector.notices`, or a notice that the connector fails to report them. Thread-safe."""
    try:
        sentences = msgspec.convert(list(connector.notices()), list[str])
    except Exception as error:  # noqa: BLE001 - a plug-in's failure must not make the status command fail
        return [_failed(pipeline, "report its notices", error)]
    return [OperatorNotice(pipeline=pipeline, sentence=sentence) for sentence in sentences]


def count_waiting(pipeline: str, connector: Connector) -> dict[WaitingReason, int] | OperatorNotice:
    """Return `Connector.count_waiting`, or a notice that the connector fails to count. Thread-safe."""
    try:
        return msgspec.convert(dict(connector.count_waiting()), dict[WaitingReason, int])
    except Exception as error:  # noqa: BLE001 - as above
        return _failed(pipeline, "count the files that wait", error)


def list_waiting(pipeline: str, connector: Connector, limit: int) -> list[WaitingFile] | OperatorNotice:
    """Return `Connector.list_waiting`, or a notice that the connector fails to list. Thread-safe."""
    try:
        return list(connector.list_waiting(limit))
    except Exception as error:  # noqa: BLE001 - as above
        return _failed(pipeline, "list the files that wait", error)


def connector_health(pipeline: str, connector: Connector) -> SourceHealth | None:
    """Return `Connector.health`, or a notice that the connector fails to report it; None if it has no connection.

    Thread-safe.
    """
    try:
        found = connector.health()
    except Exception as error:  # noqa: BLE001 - as above
        found = ConnectionHealth(sentence=failure_sentence("report its state", error))
    if found is None:
        return None
    return SourceHealth(
        pipeline=pipeline,
        sentence=redact_text(found.sentence),
        connected_since=found.connected_since,
        lag_seconds=found.lag_seconds,
        dropped=found.dropped,
        stays_connected=found.stays_connected,
    )


def failure_sentence(what: str, error: Exception) -> str:
    """Return the sentence that a connector failed to do something, without secrets."""
    return redact_text(f"The connector failed to {what}: {one_line(error)}. Please report it.")


def _failed(pipeline: str, what: str, error: Exception) -> OperatorNotice:
    return OperatorNotice(pipeline=pipeline, sentence=failure_sentence(what, error), state="attention")
