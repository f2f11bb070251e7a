"""Digests of what pipelines read and where they write, by which a renamed pipeline is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from ingestd.settings import PipelineSettings


def source_digests(pipelines: Iterable[PipelineSettings]) -> Mapping[str, str]:
    """By pipeline, the SHA-256 of its connector, the connector's options and the sink; secrets count as absent."""
    return {pipeline.name: _digest(pipeline) for pipeline in pipelines}


def _digest(pipeline: PipelineSettings) -> str:
    source, sink = pipeline.source, pipeline.sink
    # A secret setting is written as asterisks, so a rotated password leaves the digest as it is.
    options = source.options.model_dump(mode="json")
    text = json.dumps([source.connector, options, sink.workspace, sink.by, sink.name], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
