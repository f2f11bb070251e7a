"""The end of the process before and after each request that changes a server, from the reading to the archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from connectors.remote.object_store import ObjectStore
from connectors.remote.sftp import SftpStore
from tests.support.crashing_sqlite import ProcessDied
from tests.support.remote_places import RemoteFlow

CHANGES = ("write", "move", "delete")
TEXT = "part,mass\nA,1\n,7\n"


@pytest.mark.parametrize(("kind", "after"), [("sftp", "archive"), ("s3", "archive"), ("s3", "delete")])
def test_a_crash_at_any_request_loses_no_file_and_no_report(
    kind: str, after: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = request.getfixturevalue("sftp_server" if kind == "sftp" else "bucket_server")
    store = SftpStore if kind == "sftp" else ObjectStore
    swept, died = 0, True
    while died:
        swept += 1
        if kind == "s3":
            server.clear()
        base = tmp_path / str(swept)
        base.mkdir()
        flow = RemoteFlow(base, server, after=after, ready=["marker"], receipts="reports", quarantine="rows")
        flow.write("a.csv", TEXT)
        flow.write("a.csv.done", "")
        with monkeypatch.context() as patched:
            died = not ends(flow, store, swept, patched)
        assert (flow.drop / "a.csv").exists() or after == "delete" or flow.files(flow.done)
        flow.restart()
        flow.pass_once()
        flow.pass_once()
        assert flow.held == {"A": "1"}, f"request {swept}"
        assert flow.files(flow.drop) == [], f"request {swept}"
        assert flow.files(base / "rows") == ["a.csv.rejected.csv"], f"request {swept}"
        assert flow.files(base / "reports") == ["a.csv.receipt.json"], f"request {swept}"
        archived = ["a.csv", "a.csv.done"] if after == "archive" else []
        assert flow.files(flow.done) == archived, f"request {swept}"
        assert len(flow.rejected()) == 1
        flow.close()
    assert swept > 6


def ends(flow: RemoteFlow, store: type[Any], at: int, patched: pytest.MonkeyPatch) -> bool:
    """Return True if one pass ended before its ``at``-th instant; there is one before and one after each request."""
    count = 0

    def dying(real: Any) -> Any:
        def step(*args: Any, **more: Any) -> Any:
            nonlocal count
            count += 1
            if count >= at:
                raise ProcessDied
            result = real(*args, **more)
            count += 1
            if count >= at:
                raise ProcessDied
            return result

        return step

    for name in CHANGES:
        patched.setattr(store, name, dying(getattr(store, name)))
    try:
        flow.pass_once()
    except ProcessDied:
        return False
    return True
