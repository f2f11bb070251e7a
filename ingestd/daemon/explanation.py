"""A connector's explanation of one of its partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingestd.core.clock import moment
from ingestd.core.errors import SourceError
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.control.requests import Explain, Explained
from ingestd.intake.connector_reports import failure_sentence
from ingestd.intake.notice import OperatorNotice
from ingestd.process.redaction import redact_text
from ingestd.sdk import Connector, Explains, Locates


def explain(
    connectors: Mapping[str, Connector],
    request: Explain,
    *,
    unacknowledged: Callable[[str, str], OperatorNotice | None] = lambda _pipeline, _partition: None,
    failure: Callable[[str], str] = lambda _: "",
) -> Explained:
    """Return the connector's explanation of a partition. Blocks while the connector reads its source.

    ``unacknowledged`` returns why a partition of a pipeline can't be acknowledged, such as a file that can't be moved.
    ``failure`` returns why the source of a pipeline can't be read now; empty if the source can be read.

    Raises:
        RequestRefused: there is no such pipeline, or no partition can have the name.
    """
    connector = connectors.get(request.pipeline)
    if connector is None:
        raise RequestRefused(
            f"The running daemon has no pipeline {request.pipeline!r}: its configuration is older. Use 'ingestd reload'."
        )
    name, cursor = request.partition, request.cursor
    if "\0" in name:  # every function of the file system raises ValueError
        raise RequestRefused(f"The name {name!r} has a NUL character, which no file and no table can have.")
    try:
        waiting = connector.explain(name, cursor) if isinstance(connector, Explains) else None
        location = (
            connector.describe_location(name, cursor) if isinstance(connector, Locates) and cursor is not None else ""
        )
    except SourceError as error:
        return Explained(waiting=redact_text(str(error)), location="")
    except Exception as error:  # noqa: BLE001 - a plug-in's failure must not end the connection of the command
        return Explained(waiting=failure_sentence("explain it", error), location="")
    sentence = failure(request.pipeline)
    if sentence and sentence not in (waiting or "") and (waiting or cursor is not None):
        waiting = f"{sentence} {waiting or ''}".strip()
    if (notice := unacknowledged(request.pipeline, name)) is not None and location:
        since = f" (tried since {moment(notice.since)})" if notice.since is not None else ""
        location = f"{location}{since}: {notice.sentence.removesuffix('.')}"
    return Explained(waiting=redact_text(waiting or ""), location=redact_text(location))
