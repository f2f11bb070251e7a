"""Placeholders for values that are stored outside the configuration file.

``${env:NAME}`` is an environment variable, ``${file:PATH}`` the content of a file, ``${credential:NAME}`` the file NAME in
the credentials directory of systemd, and ``$${`` the characters ``${``. Error sentences name the variable or the file and
never quote its content.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ingestd.core.phrases import nearest, shortened

MAX_SECRET_BYTES = 64 * 1024
_KINDS = ("env", "file", "credential")
_TOKEN = re.compile(r"\$\$\{|\$\{(?P<body>[^}]*)(?P<end>\}?)")
_CREDENTIAL_NAME = re.compile(r"(?!\.{1,2}\Z)[^/\0]{1,255}")


class PlaceholderError(Exception):
    """A placeholder cannot be filled; ``position`` is its 0-based offset in the text."""

    def __init__(self, sentence: str, position: int) -> None:
        self.position = position
        super().__init__(sentence)


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """A text with filled placeholders. ``secret`` is True if it had a placeholder."""

    text: str
    secret: bool

    def __repr__(self) -> str:
        return f"Filled(secret={self.secret})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeholders:
    """Fills placeholders from ``environment`` and from files; a relative path starts at ``base``.

    ``contents``: the contents of the files and credentials that were read so far. They are secrets in every setting. A
    variable may be a host or a path, so it is a secret only in a setting for secrets.
    """

    environment: Mapping[str, str]
    base: Path
    contents: set[str] = field(default_factory=set, compare=False)

    def __repr__(self) -> str:
        return f"Placeholders(base={str(self.base)!r})"

    def fill(self, text: str) -> Filled:
        """Replace every placeholder in ``text``; inserted values are not expanded again.

        Raises:
            PlaceholderError: a placeholder is malformed, or there is no such variable or file.
        """
        parts: list[str] = []
        end = 0
        secret = False
        for token in _TOKEN.finditer(text):
            parts.append(text[end : token.start()])
            end = token.end()
            if token["body"] is None:
                parts.append("${")
                continue
            if not token["end"]:
                raise PlaceholderError(
                    "'${' has no '}'. Write '$${' for the characters '${' themselves.", token.start()
                )
            parts.append(self._value(token["body"], token.start()))
            secret = True
        return Filled(text="".join([*parts, text[end:]]), secret=secret)

    def again(self, text: str) -> RepeatedSecret:
        """Return ``text`` as a secret that may change: its placeholders are filled at each use."""
        return RepeatedSecret(text=text, placeholders=self)

    def _value(self, body: str, position: int) -> str:
        kind, colon, name = body.partition(":")
        if kind not in _KINDS or not colon or not name:
            shown = shortened(body)
            raise PlaceholderError(
                f"'${{{shown}}}' is not a placeholder; expected ${{env:NAME}}, ${{file:PATH}} or ${{credential:NAME}}."
                f"{nearest(kind, _KINDS) if kind not in _KINDS else ''} Write '$${{' for the characters '${{' themselves.",
                position,
            )
        try:
            if kind == "env":
                return self._variable(name)
            content = _content(self._credential(name) if kind == "credential" else self.base / name)
        except _Missing as missing:
            raise PlaceholderError(str(missing), position) from None
        self.contents.add(content)
        return content

    def _variable(self, name: str) -> str:
        value = self.environment.get(name)
        if value is None:
            raise _Missing(f"The environment variable {shortened(name)} is not set.{nearest(name, self.environment)}")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _Missing(f"The environment variable {shortened(name)} is not UTF-8 text.") from None
        return value

    def _credential(self, name: str) -> Path:
        folder = self.environment.get("CREDENTIALS_DIRECTORY")
        if not folder:
            raise _Missing(
                f"The credential '{shortened(name)}' can't be read: CREDENTIALS_DIRECTORY is not set. systemd "
                "sets it for a unit with LoadCredential=; otherwise use ${file:PATH} or ${env:NAME}."
            )
        if not _CREDENTIAL_NAME.fullmatch(name):
            raise _Missing(f"'{shortened(name)}' is not the name of a credential. Write one file name, without '/'.")
        return Path(folder) / name


class RepeatedSecret(msgspec.Struct, frozen=True, kw_only=True):
    """A secret with its placeholders, which are filled at each use because a file may change."""

    text: str
    placeholders: Placeholders

    def read(self) -> str:
        """Fill the placeholders. Blocks, because it reads small files.

        Raises:
            PlaceholderError: a file can't be read.
        """
        return self.placeholders.fill(self.text).text


class _Missing(Exception):
    """A placeholder has no value; the message is the reason."""


def _content(path: Path) -> str:
    """Return the content of a regular file, without its last line end."""
    try:
        content = read_bounded(path, MAX_SECRET_BYTES)
    except FileNotFoundError:
        raise _Missing(f"There is no file {path}.") from None
    except (OSError, ValueError) as error:
        raise _Missing(f"The file {shortened(str(path))} can't be read: {reason(error)}.") from None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise _Missing(f"The file {path} is not UTF-8 text.") from None
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text


def reason(error: OSError | ValueError) -> str:
    """Return the system's reason without the path, which the sentence contains already."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return text[:1].lower() + text[1:]


def read_bounded(path: Path, limit_bytes: int) -> bytes:
    """Return the content of a regular file of at most ``limit_bytes``; never block on a pipe or a device.

    Raises:
        OSError: the file cannot be opened or read, is not a regular file, or is larger than the limit.
        ValueError: the path contains a NUL character.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is not a regular file")
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise OSError(0, f"it is larger than {limit_bytes} bytes")
    return content
