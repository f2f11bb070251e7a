from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.process.redaction import mask_secrets, redact, redact_text

KEY = "edw_AbCd1234_" + "x" * 43 + "Zz9911"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"the key {KEY} was refused", "the key edw_*** was refused"),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_***"),
        ("postgresql://reader:p4ss@db:5432/pdm", "postgresql://***@db:5432/pdm"),
        ("postgresql://reader:p@ss/w@db/pdm", "postgresql://***@db/pdm"),
        ("https://token@host/x", "https://***@host/x"),
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
        "i.yaml:1:2: service.api_key: The environment variable X is not set.",
        "service.proxy_password: There is no file /etc/x.",
    ],
)
def test_a_text_without_a_secret_is_unchanged(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    "name", ["api_key", "API_KEY", "password", "service.api_key", "x-api-key", "signing_secret", "token"]
)
def test_a_field_with_a_secret_name_is_masked_with_any_value(name: str) -> None:
    assert redact("harmless looking", name) == "***"
    assert redact(1234, name) == "***"


@pytest.mark.parametrize("name", ["key", "idempotency_key", "tokens_left", "keys"])
def test_a_field_with_an_ordinary_name_is_kept(name: str) -> None:
    assert redact("P-1.mass", name) == "P-1.mass"


def test_a_known_secret_is_masked_everywhere_and_nothing_else_is() -> None:
    mask_secrets(["gehe1mer-Schlüssel", "postgresql://reader:p%40ssw0rt@db/pdm", "abc"])
    assert redact_text("host=db password=p@ssw0rt, key (gehe1mer-Schlüssel)") == "host=db password=***, key (***)"
    assert redact_text("p%40ssw0rt") == "***"
    # The address of a database is no secret, and a text of three letters is part of many words.
    assert redact_text("db/pdm abc gehe1mer-Schlüssel2") == "db/pdm abc gehe1mer-Schlüssel2"
    assert redact(["gehe1mer-Schlüssel"]) == ["***"]


def test_values_inside_containers_are_masked() -> None:
    hidden = redact(
        {"headers": {"x-api-key": "abc", "ClientId": "bench-3"}, "urls": ["http://u:p@h/"], "path": Path("a/b")}
    )
    assert hidden == {"headers": {"x-api-key": "***", "ClientId": "bench-3"}, "urls": ["http://***@h/"], "path": "a/b"}


def test_the_message_of_an_exception_is_masked() -> None:
    assert redact(ValueError(f"no such key {KEY}"), "error") == "ValueError('no such key edw_***')"


@pytest.mark.parametrize("unit", ["://a:", "://", "://a@", "://a:@", "://1:1", "@", "Basic ", "edw_"])
def test_four_times_the_text_takes_four_times_as_long(unit: str) -> None:
    def seconds(length: int) -> float:
        began = time.process_time()
        redact_text(unit * (length // len(unit)))
        return time.process_time() - began

    # 600 kB took more than 10 minutes. The budget is for a machine that is 50 times slower than an ordinary one.
    assert seconds(600_000) < 10


@given(st.lists(st.sampled_from(["://", ":", "@", "/", "a", "1", "#", "?", " ", "80"]), max_size=14).map("".join))
def test_the_user_part_of_urls_is_that_of_the_plain_expression(text: str) -> None:
    plain = re.compile(r"(://)(?:[^:/\s@]*:(?!\d+[/?#])\S*|[^:/?#\s@]+)(?=@)")
    assert redact_text(text) == plain.sub(r"\g<1>***", text)
