"""Export by OTLP/HTTP. Only this module imports the SDK of OpenTelemetry. `export` imports this module only for an export."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.metadata import version
from typing import Any, TypeAlias, cast

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import SpanKind, set_span_in_context

from ingestd.process.redaction import redact
from ingestd.telemetry.catalogue.daemon import Signal, TelemetryFailed, TelemetryResumed
from ingestd.telemetry.catalogue.delivery import EntriesDelivered
from ingestd.telemetry.catalogue.intake import PartitionRead, PartitionUnchanged
from ingestd.telemetry.event import Emit, Event

CLOSE_SECONDS = 1.0
"""The maximum time for which a collector that does not respond delays the end of the process."""

QUEUE_ITEMS = 2048
"""The maximum number of spans, and of log records, that wait for the collector. Further items are dropped."""

OnDropped: TypeAlias = Callable[[Signal, int], None]

_NO_PARTS: Mapping[str, float] = {}
_SEVERITIES = {
    "debug": SeverityNumber.DEBUG,
    "info": SeverityNumber.INFO,
    "warning": SeverityNumber.WARN,
    "error": SeverityNumber.ERROR,
}
_OWN_LIBRARIES = ("opentelemetry", "urllib3")
"""Loggers of the export itself. Their lines are not exported, so that a failure does not cause further exports."""


class _CountedExporter:
    """Passes batches to an exporter of the SDK, admits a limited number of items, and counts the dropped items."""

    def __init__(self, signal: Signal, exporter: Any, on_dropped: OnDropped, emit: Emit) -> None:
        self._signal = signal
        self._exporter = exporter
        self._on_dropped = on_dropped
        self._emit = emit
        self._guard = threading.Lock()
        self._waiting = 0
        self._fails = False

    def admit(self) -> bool:
        """Return True if there is room for one more item; else count the item as dropped."""
        with self._guard:
            if self._waiting < QUEUE_ITEMS:
                self._waiting += 1
                return True
        self._on_dropped(self._signal, 1)
        return False

    def drop_waiting(self) -> None:
        """Count admitted items that were not exported as dropped. Call this method at the end."""
        with self._guard:
            waiting, self._waiting = self._waiting, 0
        self._on_dropped(self._signal, waiting)

    def export(self, batch: Sequence[Any]) -> Any:
        """Export a batch; the SDK calls this method in a separate thread."""
        result = self._exporter.export(batch)
        failed = result.name != "SUCCESS"
        with self._guard:
            self._waiting = max(0, self._waiting - len(batch))
        if failed:
            self._on_dropped(self._signal, len(batch))
        if failed and not self._fails:
            sentence = (
                f"The collector of OpenTelemetry did not accept {self._signal}. Until it accepts them, they are dropped. "
                "Check the variables OTEL_EXPORTER_OTLP_… and the collector."
            )
            self._emit(TelemetryFailed(signal=self._signal, sentence=sentence))
        elif self._fails and not failed:
            self._emit(TelemetryResumed(signal=self._signal))
        self._fails = failed
        return result

    def shutdown(self) -> None:
        """Shut the exporter down, which ends its retries of a request."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Flush the exporter. This class holds no batches, because it exports each batch when it arrives."""
        return bool(self._exporter.force_flush(timeout_millis))


class OtlpExport:
    """Exports readings and requests as spans, and lines of the log as log records. Thread-safe, and never waits.

    ``on_dropped`` receives the numbers of dropped items. ``emit`` is called when a collector begins or stops refusing items.
    Addresses, headers, time limits and sampling come from the standard variables of OpenTelemetry.
    """

    def __init__(self, signals: Collection[Signal], on_dropped: OnDropped, emit: Emit) -> None:
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # it logs every attempt; `emit` reports the first
        named = Resource.create({"service.name": "ingestd", "service.version": version("ingestd")})
        resource = named.merge(OTELResourceDetector().detect())
        self._closes: list[Callable[[], None]] = []
        self._exporters: dict[Signal, _CountedExporter] = {}
        if "traces" in signals:
            spans = self._exporters["traces"] = _CountedExporter("traces", OTLPSpanExporter(), on_dropped, emit)
            tracing = TracerProvider(resource=resource, shutdown_on_exit=False)
            tracing.add_span_processor(BatchSpanProcessor(cast("SpanExporter", spans), max_queue_size=QUEUE_ITEMS))
            self._tracer = tracing.get_tracer("ingestd")
            self._closes.append(tracing.shutdown)
        if "logs" in signals:
            records = self._exporters["logs"] = _CountedExporter("logs", OTLPLogExporter(), on_dropped, emit)
            logs = LoggerProvider(resource=resource, shutdown_on_exit=False)
            logs.add_log_record_processor(BatchLogRecordProcessor(cast("Any", records), max_queue_size=QUEUE_ITEMS))
            self._logger = logs.get_logger("ingestd")
            self._closes.append(logs.shutdown)

    def add_event(self, event: Event) -> None:
        """Export a complete reading of a partition, or an accepted request, as a span that ends now."""
        match event:
            case PartitionRead():
                counts = ("records", "created", "updated", "unchanged", "removed", "rejected", "valueless")
                attributes = {f"ingestd.{name}": getattr(event, name) for name in counts}
                parts = {
                    "read": max(0.0, event.seconds - event.map_seconds - event.store_seconds),
                    "map": event.map_seconds,
                    "store": event.store_seconds,
                }
                self._add_span("run", event.seconds, _run_attributes(event) | attributes, parts=parts)
            case PartitionUnchanged():
                attributes = {"ingestd.records": event.records}
                self._add_span("run", event.seconds, _run_attributes(event) | attributes)
            case EntriesDelivered():
                attributes = {
                    "ingestd.sink": event.sink,
                    "ingestd.operation": event.operation,
                    "ingestd.entries": event.entries,
                }
                self._add_span("request", event.milliseconds / 1e3, attributes, SpanKind.CLIENT)
            case _:
                pass  # the log has the other events

    def _add_span(
        self,
        name: str,
        seconds: float,
        attributes: Mapping[str, Any],
        kind: SpanKind = SpanKind.INTERNAL,
        *,
        parts: Mapping[str, float] = _NO_PARTS,
    ) -> None:
        """Add a span that ends now. ``parts``: the names and seconds of consecutive spans inside this span."""
        exporter = self._exporters.get("traces")
        if exporter is None:
            return
        end = time.time_ns()
        masked = {field: cast("str | int", redact(value, field)) for field, value in attributes.items()}
        start = end - int(seconds * 1e9)
        span = self._tracer.start_span(name, kind=kind, start_time=start, attributes=masked)
        if not span.is_recording() or not exporter.admit():  # a span that is not ended is not exported
            return
        inside = set_span_in_context(span)
        for part, length in parts.items():
            begun, start = start, min(end, start + int(length * 1e9))
            if exporter.admit():
                self._tracer.start_span(part, context=inside, start_time=begun).end(end_time=start)
        span.end(end_time=end)

    def add_line(self, fields: Mapping[str, Any]) -> None:
        """Export a line of the log, with secrets masked."""
        if str(fields.get("library", "")).startswith(_OWN_LIBRARIES) or not self._exporters["logs"].admit():
            return
        level = str(fields.get("level", "info"))
        left = {
            name: value
            for name, value in fields.items()
            if name not in ("timestamp", "level", "event") and value is not None
        }
        now = time.time_ns()
        self._logger.emit(
            LogRecord(
                timestamp=now,
                observed_timestamp=now,
                severity_text=level.upper(),
                severity_number=_SEVERITIES.get(level, SeverityNumber.INFO),
                event_name=str(fields["event"]),
                body=str(left.get("sentence") or left.get("message") or fields["event"]),
                attributes=left,
            )
        )

    def close(self) -> None:
        """Export the waiting items, for at most ``CLOSE_SECONDS``, and count the remaining items as dropped."""
        threads = [threading.Thread(target=close, name="end of the export", daemon=True) for close in self._closes]
        end = time.monotonic() + CLOSE_SECONDS
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        for exporter in self._exporters.values():
            exporter.drop_waiting()


def _run_attributes(event: PartitionRead | PartitionUnchanged) -> dict[str, str | int]:
    return {"ingestd.pipeline": event.pipeline, "ingestd.partition": event.partition}
