"""An S3 server (moto) in this process, on a free port."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import httpx
import obstore
from moto.server import ThreadedMotoServer
from obstore.store import S3Store

from workspaced.storage.blobs.address import BucketAddress

BUCKET = "bench"
SECRET = "s3cret-key"


class ObjectServer:
    """A server with the bucket ``bench``; `store` accesses it as another program. ``equal``: see `remote_places`."""

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
                "access_key_id": "test", "secret_access_key": SECRET,
            },
            client_options={"allow_http": True},
        )  # fmt: skip
        httpx.put(f"{self.endpoint}/{BUCKET}", timeout=60).raise_for_status()

    def put(self, path: str, content: bytes) -> None:
        obstore.put(self.store, path, content)

    def get(self, path: str) -> bytes:
        return bytes(obstore.get(self.store, path).bytes())

    def delete(self, path: str) -> None:
        obstore.delete(self.store, path)

    def paths(self, prefix: str = "") -> list[str]:
        return sorted(meta["path"] for page in obstore.list(self.store, prefix or None) for meta in page)

    def clear(self) -> None:
        """Delete every object."""
        for path in self.paths():
            self.delete(path)
        self.equal.clear()

    def bucket_address(self, folder: Path, prefix: str) -> BucketAddress:
        """Return the address of a prefix for the service. Writes the file of its credentials into ``folder``."""
        return BucketAddress(
            bucket=BUCKET, prefix=prefix, endpoint=self.endpoint, credentials=credentials_file(folder), seconds=30
        )

    def stop(self) -> None:
        self._server.stop()

    def options(self, folder: str, **more: Any) -> dict[str, Any]:
        """Return the options of a source that reads the prefix ``folder``."""
        return {
            "url": f"s3://{BUCKET}/{folder}", "endpoint": self.endpoint, "access_key": "test",
            "secret_key": SECRET, "settle_seconds": 0,
        } | more  # fmt: skip


def credentials_file(folder: Path) -> Path:
    """Write a file of credentials in AWS format."""
    path = folder / "credentials"
    path.write_text(f"[default]\naws_access_key_id = test\naws_secret_access_key = {SECRET}\n")
    return path


def blob_environment(endpoint: str, folder: Path, blobs: str = "") -> dict[str, str]:
    """Return the environment of a service that stores the bytes of files at the URL ``blobs``; empty: in its data folder.

    The credentials are in a file in ``folder``.
    """
    return {
        "WORKSPACED_BLOBS": blobs,
        "WORKSPACED_BLOBS_ENDPOINT": endpoint,
        "WORKSPACED_BLOBS_CREDENTIALS": str(credentials_file(folder)),
    }
