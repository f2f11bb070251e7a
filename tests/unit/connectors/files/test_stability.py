"""When a file counts as stable."""

from connectors.files.identity import Identity
from connectors.files.stability import StabilityTracker


def file(size: int = 1, mtime: float = 0, inode: int = 1) -> Identity:
    return Identity(1, inode, size, int(mtime * 1e9), 0)


def test_an_old_file_is_stable_at_the_start() -> None:
    assert StabilityTracker(2).update({"a": file(mtime=100)}, now=102) == ["a"]


def test_a_recently_written_file_is_not_stable_at_the_start() -> None:
    still = StabilityTracker(2)
    assert still.update({"a": file(mtime=101)}, now=102) == []
    assert still.next_seconds(102) == 1
    assert still.update({"a": file(mtime=101)}, now=103) == ["a"]


def test_a_file_with_a_time_in_the_future_is_observed_before_it_is_stable() -> None:
    still = StabilityTracker(2)
    assert still.update({"a": file(mtime=9000)}, now=100) == []
    assert still.update({"a": file(mtime=9000)}, now=102) == ["a"]


def test_a_file_that_appears_later_is_observed_regardless_of_its_time() -> None:
    still = StabilityTracker(2)
    still.update({}, now=100)
    assert still.update({"a": file(mtime=0)}, now=101) == []
    assert still.update({"a": file(mtime=0)}, now=102.9) == []
    assert still.update({"a": file(mtime=0)}, now=103) == ["a"]


def test_every_change_restarts_the_time() -> None:
    still = StabilityTracker(2)
    still.update({}, now=100)
    for now, identity in [(101, file(1)), (102, file(2)), (103, file(2, mtime=5)), (104, file(2, mtime=5, inode=9))]:
        assert still.update({"a": identity}, now=now) == []
    assert still.seconds_left("a", 105) == 1
    assert still.update({"a": file(2, mtime=5, inode=9)}, now=106) == ["a"]


def test_a_file_that_was_removed_and_returns_is_a_new_file() -> None:
    still = StabilityTracker(2)
    still.update({}, now=100)
    still.update({"a": file()}, now=101)
    still.update({}, now=102)
    assert still.update({"a": file()}, now=103) == []


def test_a_clock_that_is_set_back_delays_a_file_by_its_stable_time_at_most() -> None:
    still = StabilityTracker(2)
    still.update({}, now=1000)
    still.update({"a": file()}, now=1001)
    assert still.update({"a": file()}, now=500) == []
    assert still.update({"a": file()}, now=502) == ["a"]


def test_with_zero_seconds_a_file_is_stable_immediately() -> None:
    still = StabilityTracker(0)
    assert still.update({"a": file(mtime=9000)}, now=1) == ["a"]
    assert still.next_seconds(1) is None


def test_a_file_that_becomes_stable_while_others_are_read_is_found() -> None:
    still = StabilityTracker(2)
    assert still.update({"a": file(mtime=100), "b": file(mtime=100.1)}, now=102.05) == ["a"]
    assert still.next_seconds(105) == 0
    assert still.update({"a": file(mtime=100), "b": file(mtime=100.1)}, now=105) == ["a", "b"]
    assert still.next_seconds(105) is None
