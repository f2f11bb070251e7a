"""Loads a configuration file as `Settings`, or raises an error with all mistakes of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, SecretStr

from ingestd.core.claims import FileClaim
from ingestd.core.errors import ConfigurationError
from ingestd.process.redaction import mask_secrets
from ingestd.settings.configuration_file import load_document, mistake_at
from ingestd.settings.document import Document
from ingestd.settings.mistakes import LocatedMistake, validate
from ingestd.settings.model import PipelineSettings, Settings
from ingestd.settings.node import Node, dotted, find
from ingestd.settings.secrets import Placeholders
from ingestd.settings.validation import ConnectorKind
from ingestd.settings.values import filled

Kept = TypeVar("Kept", bound=BaseModel)


def load_settings(
    path: Path,
    *,
    options_of: Callable[[str], type[ConnectorKind]],
    environment: Mapping[str, str],
    secrets: bool = True,
    document: Document | None = None,
) -> Settings:
    """Read the file at ``path``, fill its placeholders, and validate it. Later log lines mask its secrets.

    ``secrets`` False is for commands that only read the state file. Placeholders of ``service`` and of a source's options
    may then stay unfilled (`SourceSettings.complete`). ``document``: the content of the file, if it is only in memory.
    ``options_of`` returns the connector with a name, or raises `ConnectorUnusable`. Relative paths are joined to the file's
    folder.

    Raises:
        ConfigurationError: every mistake in the file, in the order of the file.
    """
    base = path.absolute().parent
    document = load_document(path) if document is None else document
    placeholders = Placeholders(environment=environment, base=base)
    values = filled(document.root, placeholders)
    mask_secrets(placeholders.contents)
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
    if found := set(equal_sources(document.root, resolved.pipelines, options_of, base)):
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


def _with_absolute_paths(settings: Settings, base: Path) -> Settings:
    """Return the settings with relative paths joined to ``base``: state file, log file, certificates, options of connectors."""

    def rebased_pipeline(one: PipelineSettings) -> PipelineSettings:
        options = _rebased(one.source.options, base)
        return one.model_copy(update={"source": one.source.model_copy(update={"options": options})})

    pipelines = tuple(rebased_pipeline(one) for one in settings.pipelines)
    service = _rebased(settings.service, base)
    log, listen = _rebased(settings.log, base), _rebased(settings.listen, base)
    changes = {"service": service, "state": base / settings.state, "log": log, "listen": listen, "pipelines": pipelines}
    return settings.model_copy(update=changes)


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


def equal_sources(
    root: Node, pipelines: Sequence[PipelineSettings], options_of: Callable[[str], type[ConnectorKind]], base: Path
) -> Iterator[LocatedMistake]:
    """Yield a mistake for each pipeline that reads the same files as an earlier pipeline, if either of them removes files.

    Patterns that overlap only partly are detected later, when a common file is read (`ClaimedFiles`). Paths of ``pipelines``
    are already joined to ``base``.
    """
    known: dict[object, tuple[str, int, FileClaim]] = {}
    for index, pipeline in enumerate(pipelines):
        if not pipeline.source.complete:
            continue
        path, name = ("pipelines", index, "source", "path"), pipeline.source.connector
        location = find(root, path).node.location
        try:
            claims = options_of(name).claims(pipeline.source.options, base)
        except Exception as error:  # noqa: BLE001 - a connector may be foreign code
            what = f"The connector '{name}' failed while it listed the files that it reads ({type(error).__name__})"
            yield location, dotted(path), f"{what}. This is a bug of the connector; report it to its author."
            continue
        for claim in claims:
            before, line, other = known.setdefault(
                (claim.folder, frozenset(claim.patterns)), (pipeline.name, location.line, claim)
            )
            if before != pipeline.name and (claim.takes or other.takes):
                yield location, dotted(path), _sentence((before, line, other), (pipeline.name, location.line, claim))


def _sentence(first: tuple[str, int, FileClaim], second: tuple[str, int, FileClaim]) -> str:
    (before, line, _), (name, second_line, claim) = first, second
    return (
        f"Pipelines '{before}' (line {line}) and '{name}' (line {second_line}) read the same files of {claim.folder}, and"
        f" '{name if claim.takes else before}' removes files that it has read. Give each pipeline a different folder or pattern,"
        " or set after: keep in both."
    )
