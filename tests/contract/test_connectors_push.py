"""The suite of sources that give out each record once, with the push connector."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import httpx
import pytest

from connectors.push import PushConnector, PushOptions
from ingestd.sdk import SourceContext
from ingestd.sdk.testing import ConsumeConformance, ConsumeRig
from tests.support.push_client import TOKEN, bearer, free_address


class PushRig(ConsumeRig):
    """Each message is a request in a thread of its own, because it waits for its commit."""

    secrets: ClassVar[tuple[str, ...]] = (TOKEN,)

    def __init__(self, base: Path) -> None:
        self._base = base
        self._address = free_address()
        self._numbers: list[int] = []
        self._sending: list[threading.Thread] = []

    def connector(self) -> PushConnector:
        options = {"address": self._address, "path": "/bench", "auth": {"type": "bearer", "token": TOKEN}}
        context = SourceContext(
            pipeline="p", base=self._base, now=time.time, steady=time.monotonic, kept_folder=self._base / "kept"
        )
        return PushConnector(PushOptions.model_validate(options), context)

    def send(self, number: int) -> None:
        self._numbers.append(number)
        thread = threading.Thread(target=self._post, args=(number,))
        self._sending.append(thread)
        thread.start()

    def _post(self, number: int) -> None:
        url, headers = f"http://{self._address}/bench", bearer(f"m{number}")
        with contextlib.suppress(httpx.TransportError):  # the source was closed before its response arrived
            assert httpx.post(url, json={"number": str(number)}, headers=headers, timeout=30).status_code in {204, 503}

    def send_again(self) -> None:
        for number in list(self._numbers):
            self.send(number)

    def wait(self) -> None:
        for thread in self._sending:
            thread.join(30)


class TestConformance(ConsumeConformance):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[PushRig]:
        rig = PushRig(tmp_path)
        yield rig
        rig.wait()
