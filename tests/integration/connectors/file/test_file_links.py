"""One file, in a folder in which another person may exchange names."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.beneath import Folder
from connectors.file import FileConnector, FileOptions
from ingestd.sdk import Partition, SourceContext, SourceUnavailable
from tests.support.swapped_names import SECRET, SWAPS, within
from tests.support.watched_files import Share

PARTITION = Partition(name="masses.csv")


@pytest.fixture
def secret(share: Share) -> Path:
    path: Path = share.base / "other" / "b.csv"
    path.parent.mkdir()
    path.write_text(SECRET)
    return path


def texts(connector: Any) -> str:
    try:
        return "".join(str(batch.records.rows()) for batch in connector.read(PARTITION, None))
    except SourceUnavailable as error:
        return str(error)


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize(("seconds", "is_late"), [(0, False), (0, True), (5, False), (5, True)])
def test_a_file_that_is_exchanged_is_not_read(
    share: Share, secret: Path, swap: Callable[[Path, Path], None], seconds: float, is_late: bool
) -> None:
    """After the check, or late: between the status and the opening of a reading."""
    path = share.folder / "masses.csv"
    path.write_text("part,mass\nA,1\n")
    connector = share.connector("masses.csv", settle_seconds=seconds)
    assert list(connector.partitions()) != []
    open_file = Folder.open_file

    def exchanged(folder: Folder, base: str) -> int:
        swap(path, secret)
        return open_file(folder, base)

    with pytest.MonkeyPatch.context() as patched:
        if is_late:
            patched.setattr(Folder, "open_file", exchanged)
        else:
            swap(path, secret)
        assert "SECRET" not in within(20, lambda: texts(connector) or "nothing")
    within(20, lambda: list(connector.verify()))


def test_a_link_is_followed_in_its_folder_and_nowhere_else(share: Share, secret: Path) -> None:
    path = share.folder / "masses.csv"
    (share.folder / "2026.csv").write_text("part,mass\nA,1\n")
    path.symlink_to("2026.csv")
    connector = share.connector("masses.csv")
    list(connector.partitions())
    assert texts(connector) == "[('A', '1')]"
    assert connector.explain("masses.csv") is not None
    path.unlink()
    path.symlink_to(secret)
    with pytest.raises(SourceUnavailable, match="is a link that leads out of its folder, which is not followed"):
        list(connector.partitions())
    assert "leads out" in texts(connector)
    assert "leads out" in (connector.explain("masses.csv") or "")
    (failed,) = [step for step in connector.verify() if step.outcome == "failed"]
    assert "Set path to the file to which it leads." in failed.sentence


def test_a_file_in_a_folder_that_may_only_be_entered_is_read() -> None:
    if os.geteuid():
        pytest.skip("only root can switch to an account without permission")
    with tempfile.TemporaryDirectory(prefix="ingestd-test-") as name:
        base = Path(name)
        (base / "masses.csv").write_text("part,mass\nA,1\n")
        base.chmod(0o711)
        options = FileOptions(path=Path("masses.csv"), settle_seconds=0, watch="polling")
        connector = FileConnector(options, SourceContext(pipeline="test", base=base, now=lambda: 4e9))
        os.seteuid(65534)
        try:
            list(connector.partitions())
            assert texts(connector) == "[('A', '1')]"
        finally:
            os.seteuid(0)
