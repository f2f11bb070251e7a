"""Folder events on a real file system."""

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from watchdog.events import FileSystemEvent

from connectors import watching
from connectors.mounts import Mount
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


def test_a_file_made_to_try_it_out_proves_that_events_come_and_leaves_no_trace(tmp_path: Path) -> None:
    told: list[str] = []
    with FolderWatch(tmp_path, Woken(), recursive=False, tell=told.append) as watch:
        watch.rearm()
        watch.rearm()
        assert not watch.polling
    assert told == [f"{tmp_path} is watched by events: a file that was made to try it out was told of"]
    assert list(tmp_path.iterdir()) == []


class Deaf(FolderWatch):
    """As on a file system that tells of nothing."""

    def _changed(self, event: FileSystemEvent) -> None:
        pass


def test_where_no_event_comes_the_folder_is_polled_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_PROBE_SECONDS", 0.05)
    with Deaf(tmp_path, Woken(), recursive=False) as watch:
        watch.rearm()
        assert watch.polling
        assert "is watched by polling: a file that was made to try it out was not told of" in watch.sentence
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "polling", "words"),
    [("nfs4", True, "it lies on nfs4, where changes made by others are not told"), ("ext4", False, "was told of")],
)
def test_the_kind_of_file_system_decides_where_our_own_files_prove_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, kind: str, polling: bool, words: str
) -> None:
    monkeypatch.setattr(watching, "mount_now", lambda _: Mount(point="/", kind=kind))
    with FolderWatch(tmp_path, Woken(), recursive=False) as watch:
        watch.rearm()
        assert watch.polling is polling
        assert words in watch.sentence


def test_what_is_configured_is_not_tried_out(tmp_path: Path) -> None:
    with FolderWatch(tmp_path, Woken(), recursive=False, how="polling") as watch:
        watch.rearm()
        assert watch.polling
        assert watch.sentence.endswith("is watched by polling, as configured")


def test_a_remounted_folder_is_tried_out_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "drop"
    folder.mkdir()
    told: list[str] = []
    with FolderWatch(folder, Woken(), recursive=False, tell=told.append) as watch:
        watch.rearm()
        monkeypatch.setattr(watching, "mount_now", lambda _: Mount(point="/", kind="cifs"))
        folder.rename(tmp_path / "old")
        folder.mkdir()
        watch.rearm()
    assert ["events" in told[0], "cifs" in told[1], len(told)] == [True, True, 2]


def test_more_events_than_the_kernel_keeps_wake_and_lose_no_sub_folder(tmp_path: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if most > 70_000:
        pytest.skip(f"the kernel keeps {most} events, more than a test should make")
    woken = Woken()
    with FolderWatch(tmp_path, woken, recursive=True) as watch:
        reader = watch._observer._inotify_fd  # type: ignore[union-attr]
        with reader._lock:  # nobody reads events meanwhile
            files = [(tmp_path / name).open("w") for name in ("a.csv", "b.csv")]
            for number in range(most + 100):
                files[number % 2].write("x")
                files[number % 2].flush()
            (tmp_path / "sub").mkdir()
            for file in files:
                file.close()
        assert woken.after(lambda: None)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not woken.after(lambda: (tmp_path / "sub" / "a.csv").write_text("a\n")):
            assert time.monotonic() < deadline


def test_a_folder_behind_a_link_is_watched_by_events(tmp_path: Path) -> None:
    woken = Woken()
    (tmp_path / "real").mkdir()
    (tmp_path / "drop").symlink_to("real")
    with FolderWatch(tmp_path / "drop", woken, recursive=True) as watch:
        watch.rearm()
        assert not watch.polling
        assert woken.after(lambda: (tmp_path / "real" / "a.csv").write_text("a\n"))
