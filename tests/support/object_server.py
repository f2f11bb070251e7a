"""An S3 server: the one of moto, in this process, on a free port."""

from __future__ import annotations

import logging
from typing import Any

import httpx
import obstore
from moto.server import ThreadedMotoServer
from obstore.store import S3Store

BUCKET = "bench"


class ObjectServer:
    """A bucket ``bench``; `store` changes it from outside. ``equal``: what `remote_places` keeps equal, with its status."""

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it logs each request
        self._server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.equal: dict[str, tuple[int, int, int]] = {}
        self.endpoint = f"http://{host}:{port}"
        self.store = S3Store(
            BUCKET,
            config={
                "endpoint": self.endpoint, "region": "us-east-1",
                "access_key_id": "test", "secret_access_key": "s3cret-key",
            },
            client_options={"allow_http": True},
        )  # fmt: skip
        httpx.put(f"{self.endpoint}/{BUCKET}").raise_for_status()

    def put(self, path: str, content: bytes) -> None:
        obstore.put(self.store, path, content)

    def get(self, path: str) -> bytes:
        return bytes(obstore.get(self.store, path).bytes())

    def paths(self, prefix: str = "") -> list[str]:
        return sorted(meta["path"] for page in obstore.list(self.store, prefix or None) for meta in page)

    def clear(self) -> None:
        """Delete every object."""
        for path in self.paths():
            obstore.delete(self.store, path)
        self.equal.clear()

    def stop(self) -> None:
        self._server.stop()

    def options(self, folder: str, **more: Any) -> dict[str, Any]:
        """Return options of a source for a prefix."""
        return {
            "url": f"s3://{BUCKET}/{folder}", "endpoint": self.endpoint, "access_key": "test",
            "secret_key": "s3cret-key", "settle_seconds": 0,
        } | more  # fmt: skip
