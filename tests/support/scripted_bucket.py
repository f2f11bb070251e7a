"""A simulated S3 bucket in this process. It counts requests, and lists ETags and times in the forms of several servers."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

WRITTEN = 1_767_225_600


class ScriptedBucket:
    """A bucket with ``objects`` by path. ``listed_etag``: the format of an ETag in a listing; ETags in headers have quotes.

    ``fault``: the status and body of all responses; with ``fault_at``, only for pages of listings that begin at this object or
    later. ``page``: the number of objects in a page. ``heads``: the headers of each request, by lower-case name. ``targets``: the
    path and query of each request.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.listed_etag = "&quot;{}&quot;"
        self.requests: Counter[str] = Counter()
        self.heads: list[dict[str, str]] = []
        self.targets: list[str] = []
        self.fault: tuple[int, str] | None = None
        self.fault_at = 0
        self.page = 1_000
        self.endpoint = ""

    def options(self, **more: Any) -> dict[str, Any]:
        """Return the options of a source that reads the prefix ``drop``."""
        return {
            "url": "s3://bench/drop", "endpoint": self.endpoint, "access_key": "test",
            "secret_key": "s3cret-key", "settle_seconds": 0,
        } | more  # fmt: skip

    def respond(self, method: str, target: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of a response."""
        parts = urlsplit(target)
        path = unquote(parts.path).removeprefix("/bench").lstrip("/")
        self.requests["LIST" if "list-type=2" in parts.query else method] += 1
        start = int(parse_qs(parts.query).get("continuation-token", ["0"])[0])
        if self.fault is not None and start >= self.fault_at:
            return self.fault[0], {}, self.fault[1].encode()
        if "list-type=2" in parts.query:
            return 200, {"Content-Type": "application/xml"}, self._listing(start).encode()
        content = self.objects.get(path)
        if content is None:
            return 404, {}, b""
        modified = formatdate(WRITTEN, usegmt=True)
        return 200, {"ETag": f'"{_etag(content)}"', "Last-Modified": modified}, content

    def _listing(self, start: int) -> str:
        end = start + self.page
        contents = "".join(
            f"<Contents><Key>{path}</Key><LastModified>2026-01-01T00:00:00.789Z</LastModified>"
            f"<ETag>{self.listed_etag.format(_etag(content))}</ETag><Size>{len(content)}</Size></Contents>"
            for path, content in islice(self.objects.items(), start, end)
        )
        more = end < len(self.objects)
        following = f"<NextContinuationToken>{end}</NextContinuationToken>" if more else ""
        return (
            f"<ListBucketResult><Name>bench</Name><IsTruncated>{str(more).lower()}</IsTruncated>{following}{contents}"
            "</ListBucketResult>"
        )


def _etag(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


@contextmanager
def scripted_bucket() -> Iterator[ScriptedBucket]:
    bucket = ScriptedBucket()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two writes

        def do_GET(self) -> None:
            bucket.targets.append(self.path)
            bucket.heads.append({name.lower(): value for name, value in self.headers.items()})
            status, headers, body = bucket.respond(self.command, self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the name of the base class

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        bucket.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield bucket
        finally:
            server.shutdown()
            thread.join()
