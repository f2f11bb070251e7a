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

    An explicitly named file is never replaced by another one. Loading checks whether it can be read.

    Raises:
        ConfigurationError: nothing is named and neither of the usual files exists; the sentence lists what was tried.
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
            sentence=f"There is no configuration. Tried: --config (not given), {_VARIABLE} (not set), {cwd / _NAME}, {system}. "
            "Write one of these files, or name yours with --config.",
        ),
    ))  # fmt: skip


def load_settings(
    path: Path,
    *,
    options_of: Callable[[str], type[ConnectorKind]],
    environment: Mapping[str, str],
    secrets: bool = True,
) -> Settings:
    """Read, fill in and check the file at ``path``. Its secrets are masked in every log line from then on.

    ``secrets`` False is for who only reads the state file: what can't be filled in below ``service`` and in a source's options
    is no mistake then (`SourceSettings.complete`).

    ``options_of`` gives the connector of a name and raises `ConnectorUnusable` where there is none. Relative paths come
    back joined to the file's folder.

    Raises:
        ConfigurationError: every mistake in the file, in the order of the file.
    """
    base = path.absolute().parent
    document = _document(path)
    placeholders = Placeholders(environment=environment, base=base)
    values = filled(document.root, placeholders)
    if not secrets:
        values = values.without_secrets()
    settings, mistakes = validate(document.root, values, options_of, secrets=secrets)
    found = {
        *((place, key, sentence) for place, key, sentence in document.faults),
        *((place, dotted(at), sentence) for at, (place, sentence) in values.unfilled.items()),
        *mistakes,
    }
    if settings is None or found:
        raise ConfigurationError(tuple(_mistake(path, *one) for one in sorted(found)))
    placed = _placed(settings, base)
    if found := set(overlaps(document.root, placed.pipelines, options_of, base)):
        raise ConfigurationError(tuple(_mistake(path, *one) for one in sorted(found)))
    if secrets:
        mask_secrets(secret_texts(settings))
        if (text := values.outside.get(("service", "api_key"))) is not None:
            placed.service._api_key_source = placeholders.again(text)  # noqa: SLF001 - of the model, and no setting
    return placed


def secret_texts(value: object) -> Iterator[str]:
    """Yield the secrets in a part of the settings: texts that are secret by their type."""
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


def _document(path: Path) -> Document:
    try:
        text = read_bounded(path, MAX_FILE_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        place = ConfigLocation(
            line=before.count(b"\n") + 1, column=len(before.rpartition(b"\n")[2].decode("utf-8-sig")) + 1
        )
        raise ConfigurationError(
            (_mistake(path, place, "", "The file is not UTF-8 text. Save it as UTF-8."),)
        ) from None
    except FileNotFoundError:
        raise ConfigurationError((_mistake(path, None, "", "There is no such file."),)) from None
    except (OSError, ValueError) as error:
        sentence = f"The file can't be read: {reason(error)}."
        raise ConfigurationError((_mistake(path, None, "", sentence),)) from None
    try:
        return read_document(text)
    except DocumentError as error:
        raise ConfigurationError((_mistake(path, error.place, "", error.sentence),)) from None


def _mistake(path: Path, place: ConfigLocation | None, key: str, sentence: str) -> Mistake:
    line, column = (place.line, place.column) if place is not None else (0, 0)
    return Mistake(file=str(path), line=line, column=column, key=key, sentence=sentence)


def _placed(settings: Settings, base: Path) -> Settings:
    """The same with every relative path joined to ``base``: of the state file, the certificates, a connector's options."""

    def pipeline(one: PipelineSettings) -> PipelineSettings:
        options = _rebased(one.source.options, base)
        return one.model_copy(update={"source": one.source.model_copy(update={"options": options})})

    pipelines = tuple(pipeline(one) for one in settings.pipelines)
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
