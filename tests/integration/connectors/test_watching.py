"""Folder events on a real file system."""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from connectors import folder_watch
from connectors.folder_watch import FolderWatch
from connectors.inotify import SHARED, FolderEvent
from connectors.mounts import Mount
from tests.support.daemon_process import ROOT

DEADLINE_SECONDS = 10


class Woken:
    """Counts calls of the function that a watch was given; a test can wait for the next."""

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
    with FolderWatch(tmp_path, woken) as watch:
        assert watch.failure == ""
        assert woken.after(lambda: (tmp_path / "a.csv").write_text("a\n"))
        assert woken.after(lambda: (tmp_path / "a.csv").write_text("a\n1\n"))
        assert woken.after(lambda: (tmp_path / "a.csv").rename(tmp_path / "b.csv"))
        assert woken.after((tmp_path / "b.csv").unlink)


def test_a_file_moved_in_from_another_folder_wakes(tmp_path: Path) -> None:
    woken = Woken()
    (tmp_path / "drop").mkdir()
    (tmp_path / "a.csv").write_text("a\n")
    with FolderWatch(tmp_path / "drop", woken):
        assert woken.after(lambda: (tmp_path / "a.csv").rename(tmp_path / "drop" / "a.csv"))


def test_a_file_in_a_new_sub_folder_wakes_a_recursive_watch(tmp_path: Path) -> None:
    woken = Woken()
    with FolderWatch(tmp_path, woken, recursive=True) as watch:
        assert woken.after((tmp_path / "sub").mkdir)
        watch.rearm()
        assert woken.after(lambda: (tmp_path / "sub" / "a.csv").write_text("a\n"))


def test_a_missing_folder_is_no_error_and_is_watched_when_it_is_created(tmp_path: Path) -> None:
    woken = Woken()
    folder = tmp_path / "later"
    with FolderWatch(folder, woken) as watch:
        assert "No such file" in watch.failure
        folder.mkdir()
        watch.rearm()
        assert watch.failure == ""
        assert woken.after(lambda: (folder / "a.csv").write_text("a\n"))


@pytest.mark.parametrize("recursive", [False, True])
def test_a_folder_that_is_removed_and_created_again_is_watched_again(tmp_path: Path, *, recursive: bool) -> None:
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
    with FolderWatch(folder, woken) as watch:
        folder.rename(tmp_path / "old")
        folder.mkdir()
        watch.rearm()
        assert woken.after(lambda: (folder / "a.csv").write_text("a\n"))


class Recording(FolderWatch):
    """Records the names of the files that had events."""

    def __init__(self, folder: Path, wake: Callable[[], None]) -> None:
        super().__init__(folder, wake)
        self.names: list[str] = []

    def on_event(self, event: FolderEvent) -> None:
        self.names.append(os.fsdecode(event.name))
        super().on_event(event)


def test_reading_a_file_does_not_wake(tmp_path: Path) -> None:
    woken = Woken()
    (tmp_path / "a.csv").write_text("a\n")
    with Recording(tmp_path, woken) as watch:
        (tmp_path / "a.csv").read_text()
        assert woken.after((tmp_path / "marker").touch)
        first = watch.names[0]  # Events are in order: an event of the reading would be first.
    assert first == "marker"


def test_after_the_context_nothing_wakes_and_no_thread_runs(tmp_path: Path) -> None:
    woken = Woken()
    threads = threading.active_count()
    with FolderWatch(tmp_path, woken) as watch:
        pass
    watch.rearm()
    assert threading.active_count() == threads


def test_a_probe_file_proves_that_events_work_and_is_removed(tmp_path: Path) -> None:
    reported: list[str] = []
    with FolderWatch(tmp_path, Woken(), report=reported.append) as watch:
        watch.rearm()
        watch.rearm()
        assert not watch.is_polling
    assert reported == [f"{tmp_path} is watched by events: a test file caused an event"]
    assert list(tmp_path.iterdir()) == []


class Deaf(FolderWatch):
    """A watch on a file system without events."""

    def on_event(self, event: FolderEvent) -> None:
        pass


def test_without_events_the_folder_is_polled_and_this_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_watch, "_PROBE_SECONDS", 0.05)
    with Deaf(tmp_path, Woken()) as watch:
        watch.rearm()
        assert watch.is_polling
        assert "is watched by polling: a test file caused no event" in watch.sentence
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "polling", "words"),
    [("nfs4", True, "it is on nfs4, where changes made by others cause no events"), ("ext4", False, "caused an event")],
)
def test_the_kind_of_file_system_decides_if_a_probe_file_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, kind: str, polling: bool, words: str
) -> None:
    monkeypatch.setattr(folder_watch, "current_mount", lambda _: Mount(point="/", kind=kind))
    with FolderWatch(tmp_path, Woken()) as watch:
        watch.rearm()
        assert watch.is_polling is polling
        assert words in watch.sentence


def test_a_configured_method_is_not_probed(tmp_path: Path) -> None:
    with FolderWatch(tmp_path, Woken(), mode="polling") as watch:
        watch.rearm()
        assert watch.is_polling
        assert watch.sentence.endswith("is watched by polling, as configured")


def test_a_remounted_folder_is_probed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "drop"
    folder.mkdir()
    reported: list[str] = []
    with FolderWatch(folder, Woken(), report=reported.append) as watch:
        watch.rearm()
        monkeypatch.setattr(folder_watch, "current_mount", lambda _: Mount(point="/", kind="cifs"))
        folder.rename(tmp_path / "old")
        folder.mkdir()
        watch.rearm()
    assert ["events" in reported[0], "cifs" in reported[1], len(reported)] == [True, True, 2]


class Overflowing(FolderWatch):
    """Reports that it has woken because events were lost."""

    def __init__(self, folder: Path, wake: Callable[[], None], *, recursive: bool) -> None:
        super().__init__(folder, wake, recursive=recursive)
        self.overflowed = threading.Event()

    def on_overflow(self) -> None:
        super().on_overflow()
        self.overflowed.set()


def test_an_overflow_of_events_wakes_and_loses_no_sub_folder(tmp_path: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if most > 70_000:
        pytest.skip(f"the kernel keeps {most} events, more than a test should make")
    woken = Woken()
    with Overflowing(tmp_path, woken, recursive=True) as watch:
        reader = SHARED._instance
        assert reader is not None
        with reader._lock:  # no event is read meanwhile
            files = [(tmp_path / name).open("w") for name in ("a.csv", "b.csv")]
            for number in range(most + 5_000):  # one buffer of them was read already
                files[number % 2].write("x")
                files[number % 2].flush()
            (tmp_path / "sub").mkdir()
            for file in files:
                file.close()
        assert watch.overflowed.wait(DEADLINE_SECONDS)
        watch.rearm()  # as each pass does, and the overflow woke for one
        assert woken.after(lambda: (tmp_path / "sub" / "a.csv").write_text("a\n"))


def test_a_linked_folder_is_watched_by_events(tmp_path: Path) -> None:
    woken = Woken()
    (tmp_path / "real").mkdir()
    (tmp_path / "drop").symlink_to("real")
    with FolderWatch(tmp_path / "drop", woken, recursive=True) as watch:
        watch.rearm()
        assert not watch.is_polling
        assert woken.after(lambda: (tmp_path / "real" / "a.csv").write_text("a\n"))


def test_many_folders_share_one_inotify_instance_and_one_thread(tmp_path: Path) -> None:
    folders = [tmp_path / f"drop{number}" for number in range(300)]
    for folder in folders:
        folder.mkdir()
    wakes = [Woken() for _ in folders]
    threads, instances = threading.active_count(), open_instances()
    with contextlib.ExitStack() as stack:
        watches = [
            stack.enter_context(FolderWatch(folder, woken)) for folder, woken in zip(folders, wakes, strict=True)
        ]
        assert {watch.failure for watch in watches} == {""}
        assert (threading.active_count(), open_instances()) == (threads + 1, instances + 1)
        for folder, woken in zip(folders, wakes, strict=True):
            assert woken.after(partial((folder / "a.csv").write_text, "a\n"))
    assert (threading.active_count(), open_instances()) == (threads, instances)


def open_instances() -> int:
    """Return the number of inotify instances of this process."""
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found += str(link.readlink()) == "anon_inode:inotify"
    return found


def test_an_event_wakes_only_the_watch_of_its_folder(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    first, second = Woken(), Woken()
    with (
        FolderWatch(tmp_path / "a", first),
        Recording(tmp_path / "b", second) as other,
        Recording(tmp_path / "b", second) as twin,
    ):
        assert first.after((tmp_path / "a" / "x.csv").touch)
        assert second.after((tmp_path / "b" / "y.csv").touch)
        assert first.after((tmp_path / "a" / "z.csv").touch)  # Events are in order.
        assert set(other.names) == set(twin.names) == {"y.csv"}


class Failing(FolderWatch):
    """Fails at its first event."""

    failures = 1

    def on_event(self, event: FolderEvent) -> None:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the loop is closed")
        super().on_event(event)


def test_a_failing_watch_is_restarted_and_does_not_affect_others(tmp_path: Path) -> None:
    woken, reported = Woken(), Woken()
    sentences: list[str] = []

    def report(sentence: str) -> None:
        sentences.append(sentence)
        reported()

    with Failing(tmp_path, woken, report=report) as failing, Recording(tmp_path, woken):
        assert reported.after((tmp_path / "a.csv").touch)
        assert "RuntimeError: the loop is closed" in sentences[0]
        assert woken.after((tmp_path / "b.csv").touch)
        failing.rearm()
        assert failing.failure == ""
    with FolderWatch(tmp_path, woken):
        assert woken.after((tmp_path / "c.csv").touch)


def test_a_sub_folder_that_was_moved_away_is_no_longer_watched(tmp_path: Path) -> None:
    woken = Woken()
    (tmp_path / "drop" / "sub" / "deep").mkdir(parents=True)
    with Recording(tmp_path / "drop", woken) as plain, FolderWatch(tmp_path / "drop", woken, recursive=True) as watch:
        assert plain.failure == ""
        assert woken.after(lambda: (tmp_path / "drop" / "sub").rename(tmp_path / "sub"))
        watch.rearm()
        assert len(watch._watches) == 1


LIMITED = """
import os, sys
from pathlib import Path
from connectors.inotify import SHARED
from connectors.folder_watch import FolderWatch
from tests.support.daemon_process import ROOT
limit, folder = Path(sys.argv[1]), Path(sys.argv[2])
limit.write_text(sys.argv[3])
(folder / "sub").mkdir()
woken = []
with FolderWatch(folder, lambda: woken.append(1), recursive=True, report=print) as watch:
    watch.rearm()
    print(watch.is_polling, SHARED._instance is None)
    watch.rearm()
    limit.write_text("100")
    watch.rearm()
    print(watch.is_polling)
"""


@pytest.mark.parametrize(("kind", "number"), [("instances", "0"), ("watches", "1")])
def test_an_exhausted_kernel_limit_is_named_and_the_folder_is_polled_meanwhile(
    tmp_path: Path, kind: str, number: str
) -> None:
    # Limits below /proc/sys/user belong to the user namespace that writes them; fs.inotify belongs to the machine.
    limit = f"/proc/sys/user/max_inotify_{kind}"
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", LIMITED, limit, str(tmp_path), number]
    if subprocess.run([*command[:3], "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system allows no user namespaces")
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    first, state, then, after = run.stdout.splitlines()
    assert f"is watched by polling: the account has used up fs.inotify.max_user_{kind} (" in first
    assert "raise it with sysctl" in first
    assert state.startswith("True")
    assert "is watched by events" in then
    assert after == "False"
