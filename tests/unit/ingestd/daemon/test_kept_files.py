"""The private folders of connectors beside the state file."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from ingestd.daemon.kept_files import cache_folder, kept_folder, move_kept, read_kept, remove_unused, restore_kept
from ingestd.mirror.sqlite import SqliteMirror, back_up_state, restore_state
from ingestd.sdk import KeptFile, SourceContext


def _context(state: Path, pipeline: str) -> SourceContext:
    return SourceContext(
        pipeline=pipeline,
        base=state.parent,
        now=lambda: 0.0,
        cache_folder=cache_folder(state, pipeline),
        kept_folder=kept_folder(state, pipeline),
    )


@pytest.mark.parametrize("pipeline", ["parts", "..", ".", "a/b", "a b", "Prüfstand"])
def test_a_cache_is_private_and_below_the_folder_of_the_state_file(tmp_path: Path, pipeline: str) -> None:
    path = _context(tmp_path / "ingestd.db", pipeline).cache("rows.db")
    assert path is not None
    assert path.resolve().parent.parent == tmp_path / "ingestd.db.kept"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_two_pipelines_have_two_folders(tmp_path: Path) -> None:
    names = ["a", "a.", "a/", "a%2F", "A b", "a b"]
    assert len({cache_folder(tmp_path / "state.db", name) for name in names}) == len(names)


def test_a_cache_keeps_its_content_and_that_of_a_removed_pipeline_goes(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    for name in ("parts", "orders"):
        path = _context(state, name).cache("rows.db")
        assert path is not None
        path.write_text(name)
    remove_unused(state, ["parts"])
    kept = _context(state, "parts").cache("rows.db")
    assert kept is not None
    assert kept.read_text() == "parts"
    assert not cache_folder(state, "orders").exists()
    remove_unused(tmp_path / "other.db", [])


def test_without_a_folder_nothing_is_cached(tmp_path: Path) -> None:
    assert SourceContext(pipeline="p", base=tmp_path, now=lambda: 0.0).cache("rows.db") is None


def test_a_kept_file_is_private_whole_and_stays_with_its_pipeline(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    kept = _context(state, "a/b").keep("client-id")
    assert kept.read() is None
    kept.write(b"first")
    kept.write(b"ingestd-417")
    (path,) = kept_folder(state, "a/b").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    remove_unused(state, [])
    move_kept(state, [("a/b", "renamed"), ("never there", "other")])
    assert _context(state, "renamed").keep("client-id").read() == b"ingestd-417"
    assert _context(state, "a/b").keep("client-id").read() is None


def test_kept_files_follow_exchanged_names_and_are_never_replaced(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    for name in ("a", "b", "c", "d"):
        _context(state, name).keep("client-id").write(name.encode())
    move_kept(state, [("a", "b"), ("b", "c"), ("c", "a"), ("d", "b.2")])
    found = {name: _context(state, name).keep("client-id").read() for name in ("a", "b", "c", "d", "b.2")}
    assert found == {"a": b"c", "b": b"a", "c": b"b", "d": None, "b.2": b"d"}
    move_kept(state, [("a", "b")])
    assert _context(state, "a").keep("client-id").read() == b"c"
    assert _context(state, "b").keep("client-id").read() == b"a"


def test_an_interrupted_move_of_kept_files_is_completed(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    _context(state, "a").keep("client-id").write(b"a")
    kept_folder(state, "a").rename(kept_folder(state, "a").with_name(".b"))
    move_kept(state, [])
    assert _context(state, "b").keep("client-id").read() == b"a"


def test_a_process_that_only_looks_reads_a_kept_file_and_writes_none(tmp_path: Path) -> None:
    folder = kept_folder(tmp_path / "state.db", "p")
    context = SourceContext(pipeline="p", base=tmp_path, now=lambda: 0.0, kept_folder=folder, unsaved={})
    context.keep("key").write(b"new")
    assert (context.keep("key").read(), folder.exists()) == (b"new", False)
    _context(tmp_path / "state.db", "p").keep("key").write(b"stored")
    later = SourceContext(pipeline="p", base=tmp_path, now=lambda: 0.0, kept_folder=folder, unsaved={})
    assert later.keep("key").read() == b"stored"


def test_a_file_of_the_first_use_is_written_once_by_any_process(tmp_path: Path) -> None:
    folder = tmp_path / "var" / "state.db.connectors" / "line"
    kept = KeptFile(folder, "certificate.pem", unsaved={})
    assert kept.write_first(b"one") == b"one"
    assert KeptFile(folder, "certificate.pem", unsaved=None).write_first(b"two") == b"one"
    assert (folder / "certificate.pem").stat().st_mode & 0o777 == 0o600
    assert [one.name for one in folder.iterdir()] == ["certificate.pem"]


def test_a_file_of_the_first_use_is_never_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state.db.connectors").mkdir()
    (tmp_path / "state.db.connectors" / "line").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="line"):
        KeptFile(tmp_path / "state.db.connectors" / "line", "certificate.pem", unsaved=None).write_first(b"one")
    assert not any((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc/passwd", ".hidden"])
def test_a_name_with_more_than_one_part_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a kept file"):
        _context(tmp_path / "state.db", "p").keep(name)


def test_a_kept_file_is_bounded(tmp_path: Path) -> None:
    kept = _context(tmp_path / "state.db", "p").keep("key")
    with pytest.raises(ValueError, match="at most 1048576 bytes"):
        kept.write(bytes(1024 * 1024 + 1))


def test_a_backup_has_the_kept_files_and_a_restore_writes_them_again(tmp_path: Path) -> None:
    state, backup = tmp_path / "state.db", tmp_path / "backup.db"
    SqliteMirror.open(state).close()
    for pipeline in ("benches", "a/b"):
        _context(state, pipeline).keep("client-id").write(pipeline.encode())
    back_up_state(state, backup, kept=lambda: read_kept(state))
    _context(state, "benches").keep("client-id").write(b"another")
    _context(state, "newer").keep("client-id").write(b"newer")
    other = tmp_path / "elsewhere" / "state.db"
    for target in (state, other):
        restore_state(target, backup, restore_kept=partial(restore_kept, target))
        for pipeline in ("benches", "a/b"):
            assert _context(target, pipeline).keep("client-id").read() == pipeline.encode()
        SqliteMirror.open(target).close()
    assert _context(state, "newer").keep("client-id").read() == b"newer"


@pytest.mark.parametrize("link", ["state.db.kept", "state.db.kept/p", "state.db.connectors", "state.db.connectors/p"])
def test_a_link_in_place_of_a_private_folder_is_not_followed(tmp_path: Path, link: str) -> None:
    state, outside = tmp_path / "state.db", tmp_path / "outside"
    (outside / "p").mkdir(parents=True)
    (outside / "precious").write_text("")
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(outside)
    context = _context(state, "p")
    with pytest.raises(OSError, match=r"symbolic link|Not a directory"):
        context.cache("rows.db") if ".kept" in link else context.keep("client-id").write(b"1")
    remove_unused(state, [])
    with suppress(OSError):
        move_kept(state, [("p", "q")])
    assert sorted(path.name for path in outside.rglob("*")) == ["p", "precious"]


def test_a_link_or_a_pipe_in_place_of_a_kept_file_is_neither_read_nor_waited_for(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    (tmp_path / "secret").write_text("of root")
    kept_folder(state, "p").mkdir(parents=True)
    (kept_folder(state, "p") / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(kept_folder(state, "p") / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match=r"symbolic link|no regular file"):
            _context(state, "p").keep(name).read()
    assert list(read_kept(state)) == []
