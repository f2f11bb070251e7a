"""Loads a configuration file as `Settings`, or raises all its mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, SecretStr

from ingestd.core.errors import ConfigurationError, Mistake
from ingestd.process.redaction import mask_secrets
from ingestd.settings.document import Document, DocumentError, read_document
from ingestd.settings.mistakes import validate
from ingestd.settings.model import PipelineSettings, Settings
from ingestd.settings.node import ConfigLocation, dotted
from ingestd.settings.overlaps import overlaps
from ingestd.settings.secrets import Placeholders, read_bounded, reason
from ingestd.settings.validation import ConnectorKind
from ingestd.settings.values import filled

MAX_FILE_BYTES = 1024 * 1024
SYSTEM_FILE = Path("/etc/ingestd/ingestd.yaml")
_VARIABLE = "INGESTD_CONFIG"
_NAME = "ingestd.yaml"

Kept = TypeVar("Kept", bound=BaseModel)


def find_configuration(
    explicit: Path | None, environment: Mapping[str, str], cwd: Path, *, system: Path = SYSTEM_FILE
) -> Path:
    """Return the file to read: ``explicit`` (--config), INGESTD_CONFIG, ./ingestd.yaml, or the system's file.

    If a file is named explicitly, no other file is used. Loading checks whether it can be read.

    Raises:
        ConfigurationError: no file is named and neither of the usual files exists; the sentence lists what was tried.
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


def load_settings(
    path: Path,
    *,
    options_of: Callable[[str], type[ConnectorKind]],
    environment: Mapping[str, str],
    secrets: bool = True,
) -> Settings:
    """Read the file at ``path``, fill its placeholders and validate it; mask its secrets in all later log lines.

    ``secrets`` False is for commands that only read the state file. Placeholders of ``service`` and of a source's options
    may then stay unfilled (`SourceSettings.complete`).

    ``options_of`` returns the connector of a name, or raises `ConnectorUnusable`. Relative paths are joined to the
    file's folder.

    Raises:
        ConfigurationError: every mistake in the file, in the order of the file.
    """
    base = path.absolute().parent
    document = load_document(path)
    placeholders = Placeholders(environment=environment, base=base)
    values = filled(document.root, placeholders)
    if not secrets:
        values = values.without_secrets()
    settings, mistakes = validate(document.root, values, options_of, secrets=secrets)
    found = {
        *((location, key, sentence) for location, key, sentence in document.faults),
        *((location, dotted(at), sentence) for at, (location, sentence) in values.unfilled.items()),
        *mistakes,
    }
    if settings is None or found:
        raise ConfigurationError(tuple(mistake_at(path, *one) for one in sorted(found)))
    resolved = _with_absolute_paths(settings, base)
    if found := set(overlaps(document.root, resolved.pipelines, options_of, base)):
        raise ConfigurationError(tuple(mistake_at(path, *one) for one in sorted(found)))
    if secrets:
        mask_secrets(secret_texts(settings))
        if (text := values.outside.get(("service", "api_key"))) is not None:
            resolved.service._api_key_source = placeholders.again(text)  # noqa: SLF001 - not a setting
    return resolved


def secret_texts(value: object) -> Iterator[str]:
    """Yield the texts of type ``SecretStr`` in a part of the settings."""
    match value:
        case SecretStr():
            yield value.get_secret_value()
        case BaseModel():
            for name in type(value).model_fields:
                yield from secret_texts(getattr(value, name))
        case list() | tuple():
            for item in value:
                yield from secret_texts(item)
        case dict():
            for item in value.values():
                yield from secret_texts(item)


def load_document(path: Path) -> Document:
    """Read a YAML file of at most 1 MiB as a tree.

    Raises:
        ConfigurationError: there is no such file, or it is not readable as YAML.
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
    """Return a mistake in a file; without a location it is about the whole file."""
    line, column = (location.line, location.column) if location is not None else (0, 0)
    return Mistake(file=str(path), line=line, column=column, key=key, sentence=sentence)


def _with_absolute_paths(settings: Settings, base: Path) -> Settings:
    """Return the settings with relative paths joined to ``base``: state file, certificates, options of connectors."""

    def rebased_pipeline(one: PipelineSettings) -> PipelineSettings:
        options = _rebased(one.source.options, base)
        return one.model_copy(update={"source": one.source.model_copy(update={"options": options})})

    pipelines = tuple(rebased_pipeline(one) for one in settings.pipelines)
    service = _rebased(settings.service, base)
    return settings.model_copy(update={"service": service, "state": base / settings.state, "pipelines": pipelines})


def _rebased(value: object, base: Path) -> object:
    match value:
        case Path():
            return base / value
        case BaseModel():
            changes = {name: _rebased(getattr(value, name), base) for name in type(value).model_fields}
            return value.model_copy(
                update={name: new for name, new in changes.items() if new is not getattr(value, name)}
            )
        case list():
            return [_rebased(item, base) for item in value]
        case tuple() if type(value) is tuple:
            return tuple(_rebased(item, base) for item in value)
        case dict():
            return {name: _rebased(item, base) for name, item in value.items()}
    return value
