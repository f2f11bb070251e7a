"""Sample files, read with the format of a pipeline's source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ingestd.core.errors import SourceBroken
from ingestd.core.record import Batch
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.parts import open_connector
from ingestd.sdk import ReadsSamples
from ingestd.sdk.batches import attach_rejects
from ingestd.settings.model import PipelineSettings


def read_sample(configuration: Configuration, pipeline: PipelineSettings, path: Path) -> Iterator[Batch]:
    """Yield the batches of a sample file; the source itself is not read.

    Raises:
        SourceBroken: the connector reads no files, its options need a secret, or the file can't be read in its format.
    """
    if not pipeline.source.complete:
        raise SourceBroken(
            f"The source of pipeline '{pipeline.name}' needs a secret that is not available here, so the sample {path.name} "
            "can't be read. Write its records as 'rows'."
        )
    connector = open_connector(configuration, pipeline)
    try:
        if not isinstance(connector, ReadsSamples):
            raise SourceBroken(
                f"The connector '{pipeline.source.connector}' reads no files, so it can't read the sample {path.name}. "
                "Write its records as 'rows'."
            )
        yield from attach_rejects(connector.read_sample(path))
    finally:
        connector.close()
