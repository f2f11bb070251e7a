"""Files that commands write: links at the hidden name, and interrupts."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from ingestd.commands.output_file import OutputUnwritable, replacing, write_private


def _replace(path: Path) -> None:
    with replacing(path) as file:
        file.write("new")


def _write_new(path: Path) -> None:
    write_private(path, b"new", replace=False)


def _write(path: Path) -> None:
    write_private(path, b"new")


_WRITERS = pytest.mark.parametrize("write", [_replace, _write, _write_new])


@_WRITERS
def test_a_link_at_the_hidden_name_is_not_followed(tmp_path: Path, write: Callable[[Path], None]) -> None:
    other, target = tmp_path / "other", tmp_path / "out"
    other.write_text("other")
    (tmp_path / ".out.part").symlink_to(other)
    write(target)
    assert (other.read_text(), target.read_text(), target.is_symlink()) == ("other", "new", False)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["other", "out"]


@_WRITERS
def test_an_interrupt_leaves_no_file(
    tmp_path: Path, write: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_text("old")
    target.chmod(0o640)
    _replace(target)
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("new", 0o640)


def test_a_pipe_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        _replace(pipe)
        assert os.read(reader, 100) == b"new"
        for write in (_write, _write_new):
            with pytest.raises(OutputUnwritable, match="exists, and is not overwritten"):
                write(pipe)
    finally:
        os.close(reader)
    assert pipe.is_fifo()
