"""A server of Azure Blob Storage: Microsoft's Azurite (an npm package), as a process on a free port."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import subprocess
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx
import obstore
import pytest
from obstore.store import AzureStore

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account from Azurite's documentation. It exists in no other service."""
CONTAINER = "bench"
_VERSION = "2023-11-03"
_WAIT_SECONDS = 60


class AzureServer:
    """An Azurite process with the container ``bench``. `put` writes into the container as another program."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("azurite-blob")
        if program is None:
            pytest.skip("this machine has no Azurite (npm install --global azurite)")
        self._process = subprocess.Popen(
            [
                program, "--blobHost", "127.0.0.1", "--blobPort", "0", "--location", str(folder), "--disableTelemetry",
                "--skipApiVersionCheck",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
        )  # fmt: skip
        self.endpoint = f"{self._address()}/{ACCOUNT}"
        self._create_container()
        self.store = AzureStore(
            CONTAINER,
            config={"account_name": ACCOUNT, "account_key": KEY, "endpoint": self.endpoint},
            client_options={"allow_http": True},
        )

    def put(self, path: str, content: bytes) -> None:
        obstore.put(self.store, path, content)

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate()

    def options(self, folder: str, **more: Any) -> dict[str, Any]:
        """Return the options of a source that reads the prefix ``folder``."""
        return {
            "url": f"az://{CONTAINER}/{folder}", "endpoint": self.endpoint, "access_key": ACCOUNT, "secret_key": KEY,
            "settle_seconds": 0,
        } | more  # fmt: skip

    def _address(self) -> str:
        deadline = time.monotonic() + _WAIT_SECONDS
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if "successfully listens on " in line:
                return line.split()[-1]
            if time.monotonic() > deadline:
                break
        raise AssertionError("Azurite does not start.")

    def _create_container(self) -> None:
        """Create the container by a request that is signed with the account's key, because obstore can't create containers."""
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
        lines = ["PUT", *[""] * 11]
        lines += [f"{name}:{value}" for name, value in sorted(headers.items())]
        lines += [f"/{ACCOUNT}/{ACCOUNT}/{CONTAINER}", "restype:container"]
        signature = hmac.digest(base64.b64decode(KEY), "\n".join(lines).encode(), hashlib.sha256)
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(signature).decode()}"
        httpx.put(f"{self.endpoint}/{CONTAINER}?restype=container", headers=headers).raise_for_status()
