"""The document server as a process: ``python -m tests.support.document_server --port 0 --data service.ndjson``.

It prints the line ``listening on http://127.0.0.1:PORT`` when it accepts connections, and runs until SIGTERM or SIGINT. It may
be killed.
"""

from __future__ import annotations

import argparse
import signal
import threading
from pathlib import Path

from tests.support.document_server.server import DocumentServer
from tests.support.document_server.store import Store


def main() -> None:
    parser = argparse.ArgumentParser(description="A workspace service that knows the interface document only.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--api-key", default="test-key")
    parser.add_argument("--mass-creates", action="store_true")
    parser.add_argument("--workspace", help="create a workspace with this id where there is none")
    options = parser.parse_args()
    store = Store(mass_creates=options.mass_creates, file=options.data)
    if options.workspace and options.workspace not in store.workspaces:
        store.create_workspace({"id": options.workspace, "label": "Bench"})
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with DocumentServer(store, api_key=options.api_key, port=options.port) as server:
        print(f"listening on {server.url}", flush=True)  # noqa: T201 - the parent process waits for this line
        ended.wait()


if __name__ == "__main__":
    main()
