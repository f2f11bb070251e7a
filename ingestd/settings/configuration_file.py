"""The configuration file: its path, its tree, and the settings that are read without validation, such as `state`.

This module imports little, because `ingestd status` calls the running daemon before it imports any other module.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ingestd.core.errors import ConfigurationError, Mistake
from ingestd.settings.document import Document, DocumentError, read_document
from ingestd.settings.node import ConfigLocation, ListNode, MappingNode, Scalar
from ingestd.settings.secrets import PlaceholderError, Placeholders, read_bounded, reason

MAX_FILE_BYTES = 1024 * 1024
SYSTEM_FILE = Path("/etc/ingestd/ingestd.yaml")
_VARIABLE = "INGESTD_CONFIG"
_NAME = "ingestd.yaml"


def find_configuration(
    explicit: Path | None, environment: Mapping[str, str], cwd: Path, *, system: Path = SYSTEM_FILE
) -> Path:
    """Return the file to read: ``explicit`` (--config), INGESTD_CONFIG, ./ingestd.yaml, or the system's file.

    If a file is named explicitly, no other file is used. `load_document` checks whether the file can be read.

    Raises:
        ConfigurationError: no file is named, and neither default file exists; the sentence lists the files.
    """
    if explicit is not None:
        return explicit
    if named := environment.get(_VARIABLE):
        return cwd / named
    for usual in (cwd / _NAME, system):
        if usual.exists():
            return usual
    raise ConfigurationError((
        Mistake(
            file=_NAME, line=0, column=0, key="",
            sentence="There is no configuration file. Tried: --config (not given), "
            f"{_VARIABLE} (not set), {cwd / _NAME}, {system}. Create one of these files, or name yours with --config.",
        ),
    ))  # fmt: skip


def load_document(path: Path) -> Document:
    """Read a YAML file of at most 1 MiB as a tree.

    Raises:
        ConfigurationError: the file does not exist, or is not readable as YAML.
    """
    try:
        text = read_bounded(path, MAX_FILE_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        location = ConfigLocation(
            line=before.count(b"\n") + 1, column=len(before.rpartition(b"\n")[2].decode("utf-8-sig")) + 1
        )
        raise ConfigurationError(
            (mistake_at(path, location, "", "The file is not UTF-8 text. Save it as UTF-8."),)
        ) from None
    except FileNotFoundError:
        raise ConfigurationError((mistake_at(path, None, "", "There is no such file."),)) from None
    except (OSError, ValueError) as error:
        sentence = f"The file can't be read: {reason(error)}."
        raise ConfigurationError((mistake_at(path, None, "", sentence),)) from None
    try:
        return read_document(text)
    except DocumentError as error:
        raise ConfigurationError((mistake_at(path, error.location, "", error.sentence),)) from None


def mistake_at(path: Path, location: ConfigLocation | None, key: str, sentence: str) -> Mistake:
    """Return a mistake in a file. ``location`` None: the mistake is about the whole file."""
    line, column = (location.line, location.column) if location is not None else (0, 0)
    return Mistake(file=str(path), line=line, column=column, key=key, sentence=sentence)


def read_pipeline_names(path: Path) -> list[str]:
    """Return the names of the pipelines in a file, without a check of any setting.

    Raises:
        ConfigurationError: the file does not exist, or is not readable as YAML.
    """
    root = load_document(path).root
    entry = root.entry("pipelines") if isinstance(root, MappingNode) else None
    pipelines = entry[1].items if entry is not None and isinstance(entry[1], ListNode) else ()
    names = (one.entry("name") for one in pipelines if isinstance(one, MappingNode))
    return [name[1].text for name in names if name is not None and isinstance(name[1], Scalar)]


def read_state_path(path: Path, environment: Mapping[str, str]) -> Path | None:
    """Return the path of the state file, without a check of any other setting; None if the path is missing or can't be used.

    Raises:
        ConfigurationError: the file does not exist, or is not readable as YAML.
    """
    root = load_document(path).root
    entry = root.entry("state") if isinstance(root, MappingNode) else None
    if entry is None or not isinstance(node := entry[1], Scalar) or not isinstance(node.value, str):
        return None
    base = path.absolute().parent
    try:
        return base / Placeholders(environment=environment, base=base).fill(node.value).text
    except PlaceholderError:
        return None
