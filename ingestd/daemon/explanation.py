"""What a connector says of one of its partitions, asked of the daemon's own or of one that was opened to be asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingestd.core.clock import moment
from ingestd.core.errors import SourceError
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.control.requests import Explain, Explained
from ingestd.intake.notice import OperatorNotice
from ingestd.sdk import Connector, Explains, Locates


def explained(
    connectors: Mapping[str, Connector],
    request: Explain,
    *,
    unsettled: Callable[[str, str], OperatorNotice | None] = lambda _pipeline, _partition: None,
) -> Explained:
    """What the connector of the pipeline says. Blocks for as long as a look at the source takes.

    ``unsettled`` returns why a partition of a pipeline can't be acknowledged, such as a file that can't be moved.

    Raises:
        RequestRefused: there is no such pipeline here.
    """
    connector = connectors.get(request.pipeline)
    if connector is None:
        raise RequestRefused(
            f"The daemon that runs knows no pipeline {request.pipeline!r}; its configuration is an older one. Restart it."
        )
    name, cursor = request.partition, request.cursor
    try:
        waiting = connector.explain(name, cursor) if isinstance(connector, Explains) else None
        place = (
            connector.describe_location(name, cursor) if isinstance(connector, Locates) and cursor is not None else ""
        )
    except SourceError as error:
        return Explained(waiting=str(error), whereabouts="")
    if (notice := unsettled(request.pipeline, name)) is not None and place:
        since = f" (tried since {moment(notice.since)})" if notice.since is not None else ""
        place = f"{place}{since}: {notice.sentence.removesuffix('.')}"
    return Explained(waiting=waiting or "", whereabouts=place)
