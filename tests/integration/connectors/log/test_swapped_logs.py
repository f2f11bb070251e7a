"""Logs in a folder in which another person may exchange names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.beneath import Folder
from tests.support.swapped_names import SECRET, SWAPS, within
from tests.support.watched_files import Bench, Reading


@pytest.mark.parametrize("swap", SWAPS)
def test_a_log_that_is_exchanged_after_the_listing_is_not_read(
    bench: Bench, swap: Callable[[Path, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = bench.base / "secret.csv"
    secret.write_text(SECRET)
    path = bench.append("part,mass\nA,1\n")
    connector, look = bench.connector(), Reading()
    assert look.look(connector) == [(2, "A", "1")]
    bench.append("B,2\n")
    open_file = Folder.open_file

    def exchanged(folder: Folder, base: str) -> int:
        swap(path, secret)
        return open_file(folder, base)

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "open_file", exchanged)
        assert within(20, lambda: str(look.look(connector))) == "[]"
    if path.is_fifo() or path.is_symlink():
        assert within(20, lambda: str(look.look(connector))) == "[]"
    steps = within(20, lambda: list(connector.verify()))
    # A link that leads out of the folder is reported as such.
    assert not [step for step in steps if step.outcome == "failed" and step.name != "links"]
