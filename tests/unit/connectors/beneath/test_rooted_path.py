"""Names below a root: no part is followed over a link, with openat2 and without it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.beneath import Folder, LeadsOutside, NotRegularFile, OpenFolders, RootedPath, path_below, system_calls


@pytest.fixture(params=["openat2", "by parts"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "by parts":
        monkeypatch.setattr(system_calls, "has_openat2", lambda: False)
    elif not system_calls.has_openat2():
        pytest.skip("this kernel has no openat2")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "b.csv").write_text("SECRET")
    folder = tmp_path / "root"
    (folder / "x" / "y").mkdir(parents=True)
    (folder / "x" / "y" / "a.csv").write_text("a")
    return folder


@pytest.fixture
def open_descriptors(tmp_path: Path) -> Iterator[None]:
    """Check that the test leaves no descriptor of its folder open. Descriptors of other tests may be closed meanwhile."""
    yield
    opened = [str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    assert [one for one in opened if Path(one.removesuffix(" (deleted)")).is_relative_to(tmp_path)] == []


@pytest.mark.usefixtures("open_descriptors")
def test_a_file_in_a_sub_folder_is_opened(root: Path) -> None:
    with os.fdopen(RootedPath(root, "x/y/a.csv").open_file(), "rb") as file:
        assert file.read() == b"a"
        assert os.path.samestat(os.fstat(file.fileno()), RootedPath(root, "x/y/a.csv").status())


@pytest.mark.usefixtures("open_descriptors")
@pytest.mark.parametrize("linked", ["x", "x/y", "x/y/a.csv"])
@pytest.mark.parametrize("target", ["../secret", "secret", "absolute"])
def test_no_part_of_a_name_is_followed_if_it_is_a_link(root: Path, linked: str, target: str) -> None:
    """Wherever the link is and leads to, even if the file there has the whole path."""
    place = root / linked
    place.rename(root.parent / "moved")
    place.symlink_to({"absolute": str(root.parent / "moved"), "secret": "nowhere"}.get(target, "../" * 3 + "moved"))
    path = RootedPath(root, "x/y/a.csv")
    with pytest.raises(OSError, match=r"symbolic links|regular file") as caught:
        path.open_file()
    assert not isinstance(caught.value, FileNotFoundError)
    assert str(root) in str(caught.value.filename)
    if linked != "x/y/a.csv":
        with pytest.raises(OSError, match="symbolic links"):
            path.status()
        with pytest.raises(OSError, match="symbolic links"):
            path.parent.make_folder()


@pytest.mark.parametrize("name", ["../secret/b.csv", "x/../../secret/b.csv", "/etc/passwd", "x//y", "x/./y", "x/\0"])
def test_a_name_that_leads_out_is_refused(root: Path, name: str) -> None:
    with pytest.raises(OSError, match="The name leads out of its folder"):
        RootedPath(root, name).open_file()


@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "link"])
def test_only_a_regular_file_is_opened_and_nothing_blocks(root: Path, kind: str) -> None:
    import socket

    place = root / "f"
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "link":
        place.symlink_to(root / "x/y/a.csv")
    else:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(place))
    with pytest.raises(NotRegularFile):
        RootedPath(root, "f").open_file()


@pytest.mark.parametrize("kind", ["file", "dangling link", "pipe"])
def test_a_file_is_created_only_under_a_free_name(root: Path, kind: str) -> None:
    place = root / "new"
    if kind == "file":
        place.write_text("old")
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(root.parent / "made")
    with Folder.open_root(root) as folder, pytest.raises(FileExistsError):
        folder.create("new", 0o600)
    assert not (root.parent / "made").exists()


@pytest.mark.usefixtures("open_descriptors")
def test_links_inside_the_root_are_resolved_and_others_refused(root: Path) -> None:
    (root / "in.csv").symlink_to("x/y/a.csv")
    (root / "absolute.csv").symlink_to(root / "x/y/a.csv")
    (root / "up.csv").symlink_to("x/../x/y/a.csv")
    (root / "over").symlink_to("x")
    (root / "out.csv").symlink_to("../secret/b.csv")
    (root / "far.csv").symlink_to(root.parent / "secret/b.csv")
    (root / "chain.csv").symlink_to("out.csv")
    (root / "loop.csv").symlink_to("loop.csv")
    for name in ("in.csv", "absolute.csv", "up.csv", "over/y/a.csv", "x/y/a.csv"):
        assert RootedPath(root, name).resolve() == RootedPath(root, "x/y/a.csv"), name
    assert RootedPath(root, "none/at/all").resolve() == RootedPath(root, "none/at/all")
    for name in ("out.csv", "far.csv", "chain.csv", "../secret/b.csv"):
        with pytest.raises(LeadsOutside, match="It leads out of the folder"):
            RootedPath(root, name).resolve()
    with pytest.raises(OSError, match="Too many levels"):
        RootedPath(root, "loop.csv").resolve()


def test_an_output_folder_is_below_the_root_however_its_path_is_written(tmp_path: Path) -> None:
    root = tmp_path / "real" / "drop"
    (root / "done").mkdir(parents=True)
    (tmp_path / "alias").symlink_to("real")
    (tmp_path / "into").symlink_to("real/drop/done")
    (tmp_path / "outside").mkdir()
    below = RootedPath(root, "done/2026")
    for written in ("real/drop/done/2026", "alias/drop/done/2026", "real/drop/../drop/done/2026", "into/2026"):
        assert path_below(tmp_path / written, root) == below, written
    assert path_below(tmp_path / "alias/drop", root) == RootedPath(root)
    other = tmp_path / "outside" / "done"
    assert path_below(other, root) == RootedPath(other)
    (root / "evil").symlink_to(tmp_path / "outside")
    assert path_below(root / "evil", root) == RootedPath(root, "evil"), "a link below the root is not followed"


def test_folders_are_made_and_kept_open_below_the_root(root: Path) -> None:
    with OpenFolders() as folders:
        made = folders.make(RootedPath(root, "new/deep"))
        assert folders.get(RootedPath(root, "new/deep")) is made
    assert (root / "new/deep").is_dir()
    assert made.descriptor == -1
