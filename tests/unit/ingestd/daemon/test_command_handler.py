"""Commands that wait for a source delay no other work of the daemon."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from typing import Any

from ingestd.daemon.command_handler import CommandHandler
from ingestd.daemon.control.requests import Explain, Explained


async def test_explanations_of_a_folder_that_does_not_respond_leave_threads_for_other_work() -> None:
    responds = threading.Event()

    def explain(_: Explain) -> Explained:
        responds.wait(10)
        return Explained(waiting="", location="")

    required = [one.name for one in dataclasses.fields(CommandHandler) if one.default_factory is dataclasses.MISSING]
    parts: dict[str, Any] = dict.fromkeys(required) | {"explain": explain}
    handler = CommandHandler(**parts)
    request = Explain(pipeline="p", partition="a.csv", cursor=None)
    # More requests than the event loop has threads on any machine.
    waiting = [asyncio.create_task(handler.perform(request, "me")) for _ in range(40)]
    await asyncio.sleep(0)
    try:
        await asyncio.wait_for(asyncio.to_thread(threading.get_ident), 60)
    finally:
        responds.set()
        await asyncio.gather(*waiting)
