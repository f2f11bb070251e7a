"""What a connector says of one of its partitions, asked of the daemon's own or of one that was opened to be asked."""

from __future__ import annotations

from collections.abc import Mapping

from ingestd.core.errors import SourceError
from ingestd.daemon.control.refusal import Refused
from ingestd.daemon.control.requests import Explain, Explained
from ingestd.sdk import Connector, Explains, Locates


def explained(connectors: Mapping[str, Connector], request: Explain) -> Explained:
    """What the connector of the pipeline says. Blocks for as long as a look at the source takes.

    Raises:
        Refused: there is no such pipeline here.
    """
    connector = connectors.get(request.pipeline)
    if connector is None:
        raise Refused(
            f"The daemon that runs knows no pipeline {request.pipeline!r}; its configuration is an older one. Restart it."
        )
    name, cursor = request.partition, request.cursor
    try:
        waiting = connector.explain(name, cursor) if isinstance(connector, Explains) else None
        place = connector.whereabouts(name, cursor) if isinstance(connector, Locates) and cursor is not None else ""
    except SourceError as error:
        return Explained(waiting=str(error), whereabouts="")
    return Explained(waiting=waiting or "", whereabouts=place)
