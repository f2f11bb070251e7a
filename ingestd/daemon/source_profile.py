"""The profile of a pipeline's source, read once. Nothing is stored, moved or acknowledged."""

from __future__ import annotations

import time

from ingestd.core.column_profile import ColumnProfile
from ingestd.daemon.assembly import open_connector
from ingestd.daemon.configuration import Configuration
from ingestd.intake.run import checked_batches
from ingestd.settings.model import PipelineSettings


def read_profile(configuration: Configuration, pipeline: PipelineSettings) -> ColumnProfile:
    """Read every partition once, also files that become ready soon.

    Raises:
        SourceUnavailable: the source is not reachable now.
        SourceBroken: a partition can't be read as configured.
    """
    profile = ColumnProfile()
    read: set[str] = set()
    connector = open_connector(configuration, pipeline)
    try:
        while True:
            for partition in connector.partitions():
                if partition.name not in read:
                    read.add(partition.name)
                    for batch in checked_batches(connector.read(partition, None)):
                        profile.add(batch.records)
            wait = connector.waiting()
            if wait is None:
                return profile
            time.sleep(wait)
    finally:
        connector.close()
