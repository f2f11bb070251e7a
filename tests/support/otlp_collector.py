"""An OpenTelemetry collector: a real HTTP server on loopback that decodes OTLP in protobuf, and can refuse requests."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

DEADLINE_SECONDS = 30.0


class OtlpCollector(AbstractContextManager["OtlpCollector"]):
    """Keeps the received spans and log records. ``status``: the status of its responses; ``bodies``: uncompressed bodies."""

    def __init__(self, *, status: int = 200) -> None:
        self.status = status
        self.spans: list[Span] = []
        self.records: list[LogRecord] = []
        self.resources: list[Resource] = []
        self.headers: list[Mapping[str, str]] = []
        self.bodies: list[bytes] = []
        self._arrived = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector._keep(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def _keep(self, path: str, headers: Mapping[str, str], body: bytes) -> None:
        with self._arrived:
            self.headers.append(headers)
            self.bodies.append(body)
            if self.status == 200 and path == "/v1/traces":
                for trace in ExportTraceServiceRequest.FromString(body).resource_spans:
                    self.resources.append(trace.resource)
                    self.spans += [span for scope in trace.scope_spans for span in scope.spans]
            elif self.status == 200 and path == "/v1/logs":
                for log in ExportLogsServiceRequest.FromString(body).resource_logs:
                    self.resources.append(log.resource)
                    self.records += [record for scope in log.scope_logs for record in scope.log_records]
            self._arrived.notify_all()

    def wait_for(self, found: Callable[[OtlpCollector], bool]) -> None:
        """Wait until ``found`` returns true. It is called after each request."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: found(self), DEADLINE_SECONDS):
                names = [span.name for span in self.spans], [record.event_name for record in self.records]
                raise AssertionError(f"not found within {DEADLINE_SECONDS} s, only {names}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def attributes_of(item: Span | LogRecord | Resource) -> dict[str, Any]:
    """Return the attributes by name."""

    def value(attribute: KeyValue) -> Any:
        kind = attribute.value.WhichOneof("value")
        return getattr(attribute.value, kind) if kind is not None else None

    return {attribute.key: value(attribute) for attribute in item.attributes}
