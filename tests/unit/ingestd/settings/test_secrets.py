from __future__ import annotations

import os
from pathlib import Path

import pytest

from ingestd.settings.secrets import MAX_SECRET_BYTES, PlaceholderError, Placeholders


def fill(text: str, base: Path, **environment: str) -> str:
    return Placeholders(environment=environment, base=base).fill(text).text


def refusal(text: str, base: Path, **environment: str) -> tuple[int, str]:
    with pytest.raises(PlaceholderError) as caught:
        fill(text, base, **environment)
    return caught.value.position, str(caught.value)


def test_a_variable_is_filled_in_anywhere_in_a_text(tmp_path: Path) -> None:
    assert fill("pg://${env:U}:${env:P}@h", tmp_path, U="me", P="x") == "pg://me:x@h"


def test_what_is_filled_in_is_not_looked_through_again(tmp_path: Path) -> None:
    assert fill("${env:A}", tmp_path, A="${env:B}", B="b") == "${env:B}"


def test_two_dollars_keep_the_characters(tmp_path: Path) -> None:
    filled = Placeholders(environment={}, base=tmp_path).fill("$${env:A} and $5 and {b}")
    assert (filled.text, filled.secret) == ("${env:A} and $5 and {b}", False)


@pytest.mark.parametrize(
    ("content", "expected"),
    [(b"key", "key"), (b"key\n", "key"), (b"key\r\n", "key"), (b"key\n\n", "key\n"), (b"key \r", "key \r"), (b"", "")],
)
def test_a_file_gives_its_content_without_one_line_end(content: bytes, expected: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(content)
    assert fill("${file:key}", tmp_path) == expected
    assert fill(f"${{file:{tmp_path}/key}}", Path("/nowhere")) == expected


def test_a_credential_is_a_file_in_the_credentials_directory(tmp_path: Path) -> None:
    (tmp_path / "api-key").write_text("k\n")
    assert fill("${credential:api-key}", Path("/nowhere"), CREDENTIALS_DIRECTORY=str(tmp_path)) == "k"


@pytest.mark.parametrize("name", ["../key", "/etc/passwd", "..", ".", "a/b"])
def test_a_credential_never_leaves_its_directory(name: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k")
    (tmp_path / "credentials").mkdir()
    _, sentence = refusal(f"${{credential:{name}}}", tmp_path, CREDENTIALS_DIRECTORY=str(tmp_path / "credentials"))
    assert "is not the name of a credential" in sentence


def test_a_large_file_is_refused_and_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * MAX_SECRET_BYTES)
    assert len(fill("${file:big}", tmp_path)) == MAX_SECRET_BYTES
    (tmp_path / "big").write_bytes(b"x" * (MAX_SECRET_BYTES + 1))
    assert "it is larger than 65536 bytes" in refusal("${file:big}", tmp_path)[1]
    assert "it is not a regular file" in refusal("${file:/dev/zero}", tmp_path)[1]


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "it is not a regular file" in refusal("${file:pipe}", tmp_path)[1]


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("ab${env:NONE}", 2, "The environment variable NONE is not set."),
        ("${env:HOEM}", 0, "Did you mean 'HOME'?"),
        ("x ${file:none}", 2, "There is no file"),
        ("${credential:a}", 0, "CREDENTIALS_DIRECTORY is not set"),
        ("a${vault:b}", 1, "'${vault:b}' is not a placeholder"),
        ("${en:b}", 0, "Did you mean 'env'?"),
        ("${HOME}", 0, "'${HOME}' is not a placeholder"),
        ("${env:}", 0, "'${env:}' is not a placeholder"),
        ("ab ${env:A", 3, "'${' has no '}'"),
        ("${env:BYTES}", 0, "The environment variable BYTES is not UTF-8 text."),
        ("${file:bytes}", 0, "is not UTF-8 text"),
    ],
)
def test_a_placeholder_that_cannot_be_filled_is_a_sentence(
    text: str, position: int, words: str, tmp_path: Path
) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    found, sentence = refusal(text, tmp_path, HOME="/h", BYTES=os.fsdecode(b"\xff"))
    assert found == position
    assert words in sentence


def test_nothing_that_was_filled_in_shows_in_a_repr(tmp_path: Path) -> None:
    placeholders = Placeholders(environment={"A": "hunter22"}, base=tmp_path)
    assert "hunter22" not in repr(placeholders) + repr(placeholders.fill("${env:A}"))
