"""The format of metrics that a client asks for."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder


def encode_metrics(registry: CollectorRegistry, *, accept: str) -> tuple[bytes, str]:
    """Return the metrics in the format that the header ``accept`` asks for, and its media type.

    A header with a version that is no number gets the text format, as a header without a known format does.
    """
    try:
        encode, content_type = choose_encoder(accept)
    except (
        TypeError,
        ValueError,
    ):  # the library compares the parts of a version with numbers, such as those of "1.0.0"
        encode, content_type = choose_encoder("")
    return encode(registry), content_type
