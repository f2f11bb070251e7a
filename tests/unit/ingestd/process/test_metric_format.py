"""The format of metrics that a client asks for."""

from __future__ import annotations

import pytest
from prometheus_client.metrics_core import GaugeMetricFamily

from ingestd.process.metric_format import exposition

PENDING = GaugeMetricFamily("pending", "Entries.", value=3)


@pytest.mark.parametrize(
    "accept",
    [
        'application/openmetrics-text;version="1.0.0"',
        "application/openmetrics-text; version=1.0.0-rc1, text/plain;q=0.5",
        "text/plain; version=abc; escaping=bogus",
        f"text/plain; version={'9' * 5_000}",
    ],
)
def test_a_version_that_is_no_number_gets_the_text_format(accept: str) -> None:
    body, content_type = exposition([PENDING], accept=accept)

    assert content_type.startswith("text/plain; version=0.0.4")
    assert b"\npending 3.0\n" in body


def test_a_known_version_gets_its_format() -> None:
    body, content_type = exposition([PENDING], accept="application/openmetrics-text; version=1.0.0")

    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert body.endswith(b"# EOF\n")
