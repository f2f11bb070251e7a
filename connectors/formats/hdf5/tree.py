"""The tree of an HDF5 file: its groups and datasets by path, with links that stay inside the file."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator

import h5py

from ingestd.sdk import SourceBroken

OBJECTS = 100_000
_DEPTH = 100
_MATLAB = ("#refs#", "#subsystem#")
"""Groups in which MATLAB keeps the content of cells; only references lead to them."""


def is_selected(path: str, select: str) -> bool:
    """Return whether ``select`` may name the object at a path, or something in it."""
    return fnmatch.fnmatchcase(path, select) or select.startswith(f"{path}/") or fnmatch.fnmatchcase(f"{path}/", select)


class Hdf5Tree:
    """Finds every object of a file once by each of its paths.

    A group that contains itself, by hard or soft links, isn't entered again. No other file is opened.
    """

    def __init__(self, file: h5py.File, name: str, select: str) -> None:
        self._file = file
        self._name = name
        self._select = select
        self._count = 0

    def walk(self) -> Iterator[tuple[str, h5py.Group | h5py.Dataset]]:
        """Yield path and object, groups before their content, members in the order of their names.

        Raises:
            SourceBroken: a selected link leads to another file, or there are too many objects.
        """
        yield from self._walk(self._file, "", [h5py.h5o.get_info(self._file["/"].id).addr])

    def _walk(self, group: h5py.Group, path: str, above: list[int]) -> Iterator[tuple[str, h5py.Group | h5py.Dataset]]:
        for member in sorted(group):
            if not path and member in _MATLAB:
                continue
            inner = f"{path}/{member}" if path else member
            found = self._resolve(group, member, inner, 0)
            if not isinstance(found, (h5py.Group, h5py.Dataset)):
                continue  # a named type, or a link to nothing
            self._count += 1
            if self._count > OBJECTS:
                raise SourceBroken(f"{self._name} has more than {OBJECTS} groups and datasets. Split it.")
            address = h5py.h5o.get_info(found.id).addr
            if isinstance(found, h5py.Dataset):
                yield inner, found
            elif address not in above and len(above) < _DEPTH:
                yield inner, found
                yield from self._walk(found, inner, [*above, address])

    def _resolve(
        self, group: h5py.Group, member: str, path: str, depth: int
    ) -> h5py.Group | h5py.Dataset | h5py.Datatype | None:
        """Return what a member is, without the library, which follows a soft link through a link to another file."""
        if depth > _DEPTH:
            return None
        link = group.get(member, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            if is_selected(path, self._select):
                raise SourceBroken(
                    f"{self._name}: {path} is a link to another file, {link.filename}, which is not read. Copy the data into the"
                    " file, or leave it out by select."
                )
            return None
        if isinstance(link, h5py.HardLink):
            return group[member]
        found: h5py.Group | h5py.Dataset | h5py.Datatype | None = self._file if link.path.startswith("/") else group
        for part in [one for one in link.path.split("/") if one not in ("", ".")]:
            if not isinstance(found, h5py.Group) or found.get(part, getlink=True, default=None) is None:
                return None
            found = self._resolve(found, part, path, depth + 1)
        return found
