"""Export of spans and log records to a collector of OpenTelemetry, if the standard environment variables request it."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import unquote

from ingestd.process.logs import copy_lines
from ingestd.process.redaction import mask_secrets
from ingestd.telemetry.catalogue.daemon import Signal, TelemetryUnavailable
from ingestd.telemetry.event import Emit, Event

SIGNALS: tuple[Signal, ...] = ("traces", "logs")


def requested_signals(environment: Mapping[str, str]) -> frozenset[Signal]:
    """Return the signals that the variables of OpenTelemetry request; none without the endpoint of a collector."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return frozenset()
    return frozenset(
        signal
        for signal in SIGNALS
        if (
            environment.get("OTEL_EXPORTER_OTLP_ENDPOINT")
            or environment.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
        )
        and environment.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp") != "none"
    )


class DroppedItems:
    """Spans and log records that this process could not export. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._counts: Counter[Signal] = Counter()

    def add(self, signal: Signal, count: int) -> None:
        """Count dropped items."""
        with self._guard:
            self._counts[signal] += count

    def read(self) -> Mapping[Signal, int]:
        """Return the number of dropped items of each signal since the start of the process."""
        with self._guard:
            return {signal: self._counts[signal] for signal in SIGNALS}


DROPPED = DroppedItems()


@contextmanager
def exported_telemetry(emit: Emit) -> Iterator[Emit]:
    """Yield a function that calls ``emit`` with an event, and exports the event if the environment requests an export.

    Call `configure_logs` first. An export never waits for the collector. Items that the collector does not accept are dropped,
    and counted in `DROPPED`. The context waits at its end for the last items, at most `ingestd.telemetry.otlp.CLOSE_SECONDS`.
    """
    signals = requested_signals(os.environ)
    if not signals:
        yield emit
        return
    mask_secrets(_header_values(os.environ))
    try:
        from ingestd.telemetry.otlp import OtlpExport  # noqa: PLC0415 - imports OpenTelemetry
    except ModuleNotFoundError as error:
        sentence = (
            f"Nothing is exported to the collector, because the module {error.name} is missing. "
            "Install ingestd[otel], or remove the variables OTEL_EXPORTER_OTLP_…"
        )
        emit(TelemetryUnavailable(sentence=sentence))
        yield emit
        return
    export = OtlpExport(signals, DROPPED.add, emit)

    def emit_and_export(event: Event) -> None:
        emit(event)
        export.add_event(event)

    copy_lines(export.add_line if "logs" in signals else None)
    try:
        yield emit_and_export
    finally:
        copy_lines(None)
        export.close()


def _header_values(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the values of the headers for the collector, which usually are its credentials."""
    for name, text in environment.items():
        if name.startswith("OTEL_EXPORTER_OTLP_") and name.endswith("HEADERS"):
            for pair in text.split(","):
                value = unquote(pair.partition("=")[2]).strip()
                yield value
                yield value.rpartition(" ")[2]  # the token after "Bearer"
