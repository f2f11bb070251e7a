"""Folder events on a real file system."""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from watchdog.events import FileSystemEvent

from connectors.watching import FolderWatch

DEADLINE_SECONDS = 10


class Woken:
    """Waits for the next call of the function that a watch was given."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def __call__(self) -> None:
        self._event.set()

    def after(self, act: Callable[[], object]) -> bool:
        self._event.clear()
        act()
        return self._event.wait(DEADLINE_SECONDS)


def test_creating_changing_moving_and_deleting_a_file_each_wake(tmp_path: Path) -> None:
    woken = Woken()
    with FolderWatch(tmp_path, woken, recursive=False) as watch:
        assert watch.failure == ""
        assert woken.after(lambda: (tmp_path / "a.csv").write_text("a\n"))
        assert woken.after(lambda: (tmp_path / "a.csv").write_text("a\n1\n"))
        assert woken.after(lambda: (tmp_path / "a.csv").rename(tmp_path / "b.csv"))
        assert woken.after((tmp_path / "b.csv").unlink)


def test_a_file_moved_in_from_outside_wakes(tmp_path: Path) -> None:
    woken = Woken()
    (tmp_path / "drop").mkdir()
    (tmp_path / "a.csv").write_text("a\n")
    with FolderWatch(tmp_path / "drop", woken, recursive=False):
        assert woken.after(lambda: (tmp_path / "a.csv").rename(tmp_path / "drop" / "a.csv"))


def test_a_file_in_a_new_sub_folder_wakes_a_recursive_watch(tmp_path: Path) -> None:
    woken = Woken()
    with FolderWatch(tmp_path, woken, recursive=True):
        assert woken.after((tmp_path / "sub").mkdir)
        assert woken.after(lambda: (tmp_path / "sub" / "a.csv").write_text("a\n"))


def test_a_missing_folder_is_no_error_and_is_watched_once_it_is_there(tmp_path: Path) -> None:
    woken = Woken()
    folder = tmp_path / "later"
    with FolderWatch(folder, woken, recursive=False) as watch:
        assert "No such file" in watch.failure
        folder.mkdir()
        watch.rearm()
        assert watch.failure == ""
        assert woken.after(lambda: (folder / "a.csv").write_text("a\n"))


@pytest.mark.parametrize("recursive", [False, True])
def test_a_folder_that_vanishes_and_comes_back_is_watched_again(tmp_path: Path, *, recursive: bool) -> None:
    woken = Woken()
    folder = tmp_path / "drop"
    folder.mkdir()
    with FolderWatch(folder, woken, recursive=recursive) as watch:
        assert woken.after(lambda: shutil.rmtree(folder))
        watch.rearm()
        assert watch.failure != ""
        folder.mkdir()
        watch.rearm()
        assert woken.after(lambda: (folder / "a.csv").write_text("a\n"))


def test_a_folder_replaced_between_two_scans_is_watched_again(tmp_path: Path) -> None:
    woken = Woken()
    folder = tmp_path / "drop"
    folder.mkdir()
    with FolderWatch(folder, woken, recursive=False) as watch:
        folder.rename(tmp_path / "old")
        folder.mkdir()
        watch.rearm()
        assert woken.after(lambda: (folder / "a.csv").write_text("a\n"))


class Recording(FolderWatch):
    """Keeps the paths of the events it is told of."""

    def __init__(self, folder: Path, wake: Callable[[], None]) -> None:
        super().__init__(folder, wake, recursive=False)
        self.paths: list[str] = []

    def _changed(self, event: FileSystemEvent) -> None:
        self.paths.append(os.fsdecode(event.src_path))
        super()._changed(event)


def test_reading_a_file_does_not_wake(tmp_path: Path) -> None:
    woken = Woken()
    (tmp_path / "a.csv").write_text("a\n")
    with Recording(tmp_path, woken) as watch:
        (tmp_path / "a.csv").read_text()
        assert woken.after((tmp_path / "marker").touch)
        first = watch.paths[0]  # events come in order: had the reading been told of, it would be first
    assert first == str(tmp_path / "marker")


def test_after_the_context_nothing_wakes_and_no_thread_is_left(tmp_path: Path) -> None:
    woken = Woken()
    threads = threading.active_count()
    with FolderWatch(tmp_path, woken, recursive=False) as watch:
        pass
    watch.rearm()
    assert threading.active_count() == threads
