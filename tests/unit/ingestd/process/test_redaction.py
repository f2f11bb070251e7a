from __future__ import annotations

from pathlib import Path

import pytest

from ingestd.process.redaction import redact, redact_text

KEY = "edw_AbCd1234_" + "x" * 43 + "Zz9911"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"the key {KEY} was refused", "the key edw_*** was refused"),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_***"),
        ("postgresql://reader:p4ss@db:5432/pdm", "postgresql://***@db:5432/pdm"),
        ("postgresql://reader:p@ss/w@db/pdm", "postgresql://***@db/pdm"),
        ("https://token@host/x", "https://***@host/x"),
        ("host=db user=u password=geheim dbname=x", "host=db user=u password=*** dbname=x"),
        ("https://h/x?api_key=abc&take=3", "https://h/x?api_key=***&take=3"),
        ("x-api-key: abc", "x-api-key: ***"),
        ("Authorization: Bearer abcdefghijkl", "Authorization: Bearer ***"),
    ],
)
def test_a_secret_in_a_text_is_masked_and_the_rest_is_kept(text: str, expected: str) -> None:
    assert redact_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8400/v1/x/a@b",
        "mail to a@b.example",
        "12 rows of mass.csv",
        "C:\\share\\a.csv",
        "sqlite:///var/pdm.db",
    ],
)
def test_a_text_without_a_secret_stays_itself(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    "name", ["api_key", "API_KEY", "password", "service.api_key", "x-api-key", "signing_secret", "token"]
)
def test_a_field_with_a_secret_name_is_masked_whatever_it_holds(name: str) -> None:
    assert redact("harmless looking", name) == "***"
    assert redact(1234, name) == "***"


@pytest.mark.parametrize("name", ["key", "idempotency_key", "tokens_left", "keys"])
def test_a_field_with_a_harmless_name_is_kept(name: str) -> None:
    assert redact("P-1.mass", name) == "P-1.mass"


def test_containers_are_masked_inside() -> None:
    hidden = redact(
        {"headers": {"x-api-key": "abc", "ClientId": "bench-3"}, "urls": ["http://u:p@h/"], "path": Path("a/b")}
    )
    assert hidden == {"headers": {"x-api-key": "***", "ClientId": "bench-3"}, "urls": ["http://***@h/"], "path": "a/b"}


def test_the_words_of_an_exception_are_masked() -> None:
    assert redact(ValueError(f"no such key {KEY}"), "error") == "ValueError('no such key edw_***')"
