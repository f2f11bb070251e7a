"""The systemd units of the package, with the paths of the programs on this machine, for the system or for one user."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_PROGRAMS = "/opt/ingestd/bin/"
"""The folder of the programs in the units of the package."""

_SYSTEM_FOLDERS = {
    ".service": Path("etc/systemd/system"),
    ".sysusers.conf": Path("etc/sysusers.d"),
    ".tmpfiles.conf": Path("etc/tmpfiles.d"),
}

_SYSTEM_ONLY = re.compile(
    r"^(User|Group|After|Wants|CapabilityBoundingSet|AmbientCapabilities|Protect\w+|Private\w+|DevicePolicy|ReadWritePaths|RemoveIPC"
    r"|KeyringMode|StateDirectory\w*|WorkingDirectory)=.*\n",
    re.MULTILINE,
)
"""Settings that the service manager of a user can't apply, because they need privileges, other users, or units of the system.

The settings for state folders are omitted, too, because the programs create their folders. With these settings, and if only
~/.config/ingestd exists, systemd 254 and later makes ~/.local/state/ingestd a link to it, and mixes state and configuration.
"""

_USER_PLACES = (
    (re.compile(r"/etc/ingestd\b"), "%E/ingestd"),
    (re.compile(r"/var/lib/"), "%S/"),
    (re.compile(r"^WantedBy=multi-user.target$", re.MULTILINE), "WantedBy=default.target"),
)


class UnitsChanged(Exception):
    """Existing files have different content; nothing was written."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self.paths = paths
        super().__init__(", ".join(map(str, paths)))


def units_folder() -> Path:
    """Return the folder of the units, in the installed package or in the source checkout."""
    installed = _PACKAGE / "systemd"
    return installed if installed.is_dir() else _PACKAGE.parent / "systemd"


def system_units(root: Path) -> Mapping[Path, str]:
    """Return, by path below ``root``, the systemd files for units, users and folders, with the programs of this environment."""
    return dict(_files(root))


def user_units(environment: Mapping[str, str], home: Path) -> Mapping[Path, str]:
    """Return, by path, the units for a user's service manager, without settings that only the system's manager can apply."""
    folder = Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "systemd/user"
    units: dict[Path, str] = {}
    for path, found in _files(Path("/")):
        if path.suffix == ".service":
            text = _SYSTEM_ONLY.sub("", found)
            for place, replacement in _USER_PLACES:
                text = place.sub(replacement, text)
            units[folder / path.name] = text
    return units


def write_units(units: Mapping[Path, str], *, force: bool) -> tuple[list[Path], list[Path]]:
    """Write each changed file atomically. Return the paths that were written, and the paths that were up to date.

    Raises:
        UnitsChanged: existing files have different content, and ``force`` is False. Nothing was written.
        OSError: a file can't be written.
    """
    present = {path: path.read_text(encoding="utf-8") if path.exists() else None for path in units}
    changed = tuple(path for path, text in present.items() if text is not None and text != units[path])
    if changed and not force:
        raise UnitsChanged(changed)
    written = [path for path, text in present.items() if text != units[path]]
    for path in written:
        _write(path, units[path])
    return written, [path for path in units if path not in written]


def _files(root: Path) -> Iterator[tuple[Path, str]]:
    programs = str(Path(sys.executable).parent) + "/"
    for source in sorted(units_folder().iterdir()):
        for ending, folder in _SYSTEM_FOLDERS.items():
            if source.name.endswith(ending):
                name = source.name if ending == ".service" else f"{source.name.removesuffix(ending)}.conf"
                yield root / folder / name, source.read_text(encoding="utf-8").replace(_PROGRAMS, programs)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), 0o644)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
