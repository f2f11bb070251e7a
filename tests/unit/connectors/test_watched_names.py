"""No module takes a name below a watched folder but `connectors.beneath`: the source code is examined."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import connectors

ROOT = Path(connectors.__file__).parent
COVERED = [
    path
    for folder in ("directory", "file", "files", "log")
    for path in sorted((ROOT / folder).rglob("*.py"))
] + [ROOT / "folder_watch.py", ROOT / "inotify.py", ROOT / "mounts.py"]  # fmt: skip
"""Every module that a watched folder, file or log reaches. Formats get open files; remote stores have no watched folder."""

BY_NAME = {
    "builtins": {"open"},
    "io": {"open", "open_code"},
    "os": {
        "access", "chdir", "chflags", "chmod", "chown", "chroot", "fwalk", "getxattr", "lchown", "link", "listdir", "listxattr",
        "lstat", "makedirs", "mkdir", "mkfifo", "mknod", "open", "pathconf", "readlink", "remove", "removedirs", "removexattr",
        "rename", "renames", "replace", "rmdir", "scandir", "setxattr", "stat", "statvfs", "symlink", "truncate", "unlink",
        "utime", "walk",
    },
    "os.path": {
        "exists", "getatime", "getctime", "getmtime", "getsize", "isdir", "isfile", "islink", "ismount", "lexists", "realpath",
        "samefile",
    },
}  # fmt: skip
WHOLE_MODULES = {"glob", "shutil", "tempfile"}
PATH_METHODS = {
    "chmod", "exists", "expanduser", "glob", "hardlink_to", "is_block_device", "is_char_device", "is_dir", "is_fifo",
    "is_file", "is_mount", "is_socket", "is_symlink", "iterdir", "lchmod", "link_to", "lstat", "mkdir", "open",
    "read_bytes", "read_text", "readlink", "rename", "replace", "resolve", "rglob", "rmdir", "samefile", "stat", "symlink_to",
    "touch", "unlink", "walk", "write_bytes", "write_text",
}  # fmt: skip

EXCEPTIONS = {
    # Names of the configuration, not of a watched folder: the daemon compares them, and opens nothing.
    ("directory/connector.py", "os.path.realpath"): "claims: the configured folders",
    ("file/connector.py", "os.path.realpath"): "claims: the configured file",
    ("log/connector.py", "os.path.realpath"): "claims: the configured folder",
    ("file/connector.py", "os.path.isdir"): "a sentence on the configured folder itself",
    ("folder_watch.py", "os.path.isdir"): "whether the configured folder itself exists",
    ("file/connector.py", "glob.escape"): "text only",
    ("log/names.py", "glob.escape"): "text only",
    ("log/connector.py", "glob.replace"): "text only",
    ("directory/disposal.py", "os.utime"): "by the descriptor of the copy",
    # Objects that are no paths.
    ("directory/file_source.py", "file.open"): "DropFile.open",
    ("directory/checks.py", "drop.file(name).open"): "DropFile.open",
    ("directory/folder_state.py", "self.drop.file(name).open"): "DropFile.open",
    ("directory/scan.py", "entry.stat"): "an entry of an open folder, without links",
    ("directory/scan.py", "entry.is_dir"): "an entry of an open folder, to report a link to a folder",
    ("directory/scan.py", "entry.is_file"): "an entry of an open folder, without links",
    ("directory/scan.py", "entry.is_symlink"): "an entry of an open folder",
    ("directory/local_folder.py", "entry.stat"): "an entry of an open folder, without links",
    ("folder_watch.py", "entry.is_dir"): "an entry of an open folder, without links",
    ("log/folder.py", "entry.stat"): "an entry of an open folder, without links",
    ("log/folder.py", "entry.is_symlink"): "an entry of an open folder",
    # RootedPath.resolve, which follows links below the root only.
    ("directory/archiver.py", "path.resolve"): "RootedPath",
    ("directory/local_folder.py", "place.resolve"): "RootedPath",
    ("directory/location.py", "place.resolve"): "RootedPath",
    ("directory/scan.py", "RootedPath(self._folder, name).resolve"): "RootedPath",
    ("file/connector.py", "RootedPath(self._path.parent, self._name).resolve"): "RootedPath",
    ("files/durable_write.py", "self.folder.replace"): "Folder",
    # The kernel's tables and open files of processes, never a watched folder.
    ("directory/readiness/not_open.py", "proc.iterdir"): "/proc",
    ("directory/readiness/not_open.py", "(folder / 'fd').iterdir"): "/proc",
    ("directory/readiness/not_open.py", "(folder / 'comm').read_text"): "/proc",
    ("directory/readiness/not_open.py", "(process / 'fd' / descriptor).stat"): "/proc",
    ("directory/readiness/not_open.py", "(process / 'fdinfo' / descriptor).read_text"): "/proc",
    ("inotify.py", "Path('/proc/sys', *name.split('.')).read_text"): "/proc",
    ("inotify.py", "os.open"): "/dev/null",
    ("mounts.py", "table.read_text"): "/proc",
    ("log/tail.py", "Path(f'/proc/self/fd/{self._file.fileno()}').open"): "an open file again",
    # The folder of LogFolder, not a path.
    ("log/connector.py", "self._folder.link_to"): "LogFolder",
    ("log/rotation.py", "self._folder.open"): "LogFolder",
    ("log/tail.py", "self.folder.open"): "LogFolder",
}


def uses_by_name(tree: ast.AST) -> Iterator[str]:
    """Yield each call, or other use, of a function or method that takes a name of the file system."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in {*BY_NAME, *WHOLE_MODULES}:
            names = {alias.name for alias in node.names}
            yield from (f"from {node.module}" for _ in names & BY_NAME.get(node.module, names))
        if isinstance(node, ast.Name) and node.id == "open":
            yield "open"
        if isinstance(node, ast.Attribute):
            owner, text = ast.unparse(node.value), ast.unparse(node)
            is_method = node.attr in PATH_METHODS and not _is_text_replace(node, tree)
            if node.attr in BY_NAME.get(owner, PATH_METHODS if is_method else set()) or owner in WHOLE_MODULES:
                yield text


def _is_text_replace(attribute: ast.Attribute, tree: ast.AST) -> bool:
    """Return True for `replace` of a text or of a data class, which has two arguments, or keywords."""
    return attribute.attr == "replace" and any(
        isinstance(call, ast.Call) and call.func is attribute and (len(call.args) == 2 or call.keywords)
        for call in ast.walk(tree)
    ) and ast.unparse(attribute.value) != "self.folder"  # fmt: skip


def found() -> list[tuple[str, str]]:
    return [
        (path.relative_to(ROOT).as_posix(), use)
        for path in COVERED
        for use in uses_by_name(ast.parse(path.read_text(encoding="utf-8")))
    ]


def test_no_name_below_a_watched_folder_is_used_outside_the_one_module() -> None:
    assert len(COVERED) > 50
    strange = [use for use in found() if use not in EXCEPTIONS]
    assert strange == [], "use connectors.beneath, or add a reason to EXCEPTIONS"


def test_every_exception_is_still_needed() -> None:
    assert set(EXCEPTIONS) - set(found()) == set()


@pytest.mark.parametrize("source", [
    "open('a')", "f = open", "import os\nos.open(p, 0)", "import os\nos.path.exists(p)", "from os import rename\nrename(a, b)",
    "path.open('rb')", "path.rename(other)", "(folder / name).stat()", "path.replace(target)", "import shutil\nshutil.move(a, b)",
])  # fmt: skip
def test_the_examination_finds_each_form(source: str) -> None:
    assert list(uses_by_name(ast.parse(source)))


@pytest.mark.parametrize(
    "source", ["text.replace('a', 'b')", "dataclasses.replace(one, last=True)", "os.fstat(descriptor)"]
)
def test_the_examination_knows_what_is_no_name(source: str) -> None:
    assert not list(uses_by_name(ast.parse(source)))
