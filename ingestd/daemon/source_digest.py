"""Digests of sources and sinks, which identify a renamed pipeline."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from ingestd.settings.model import PipelineSettings


def source_digests(pipelines: Iterable[PipelineSettings]) -> Mapping[str, str]:
    """Return, by pipeline, the SHA-256 of its connector, the connector's options without secrets, and its sink."""
    return {pipeline.name: _digest(pipeline) for pipeline in pipelines}


def _digest(pipeline: PipelineSettings) -> str:
    source, sink = pipeline.source, pipeline.sink
    # Secrets are dumped as asterisks, so a rotated password does not change the digest.
    options = source.options.model_dump(mode="json")
    text = json.dumps([source.connector, options, sink.workspace, sink.by, sink.name], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
