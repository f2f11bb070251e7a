"""URLs of PostgreSQL, with one host or several."""

from __future__ import annotations

import pytest

from ingestd.process.postgres_address import postgres_address


@pytest.mark.parametrize(
    ("url", "shown", "parameters"),
    [
        ("postgresql://u@a:1/w", "postgresql://u@a:1/w", {"host": "a", "port": "1", "user": "u"}),
        (
            "postgresql://u:p%40@a:1,b:2/w",
            "postgresql://u@a:1,b:2/w",
            {"host": "a,b", "port": "1,2", "user": "u", "password": "p@", "target_session_attrs": "read-write"},
        ),
        (
            "postgresql://a,b:2/w?target_session_attrs=any",
            "postgresql://a,b:2/w",
            {"host": "a,b", "port": ",2", "target_session_attrs": "any"},
        ),
        (
            "postgresql:///w?host=a,b&port=5&password=secret",
            "postgresql://a:5,b:5/w",
            {"host": "a,b", "port": "5", "password": "secret", "target_session_attrs": "read-write"},
        ),
        (
            "postgres://[::1]:5,[fe80::1]/w",
            "postgresql://[::1]:5,[fe80::1]/w",
            {"host": "::1,fe80::1", "port": "5,", "target_session_attrs": "read-write"},
        ),
        ("postgresql://%2Fvar%2Frun/w", "postgresql:///var/run/w", {"host": "/var/run"}),
    ],
)
def test_a_url_gives_the_parameters_of_libpq_and_is_shown_without_password(
    url: str, shown: str, parameters: dict[str, str]
) -> None:
    address = postgres_address(url)
    given = dict(address.parameters)
    waits = {"connect_timeout", "tcp_user_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count"}
    assert str(address) == shown
    expected = {"dbname": "w", "target_session_attrs": "any", **parameters}
    assert {name: value for name, value in given.items() if value and name not in waits} == expected
    assert waits <= given.keys()


def test_a_wait_of_the_url_replaces_the_default() -> None:
    given = dict(postgres_address("postgresql://a,b/w?tcp_user_timeout=9000&connect_timeout=7").parameters)
    assert (given["tcp_user_timeout"], given["connect_timeout"]) == ("9000", "7")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hunter2@a:x,b/w",
        "postgresql://u:hunter2@a:1,b:70000/w",
        "postgresql://u:hunter2@[::1,b/w",
        "postgresql://u:hunter2@a,b",
        "postgresql://u:hunter2@a/w/x",
        "postgresql://u:hunter2@a/w#x",
        "postgresql://u:hunter2@a/w?x",
        "postgresql://u:hunt/er2@a,b/w",
        "mysql://u:hunter2@a/w",
        "hunter2",
    ],
)
def test_a_url_that_names_no_database_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(
        ValueError, match=r"The database's URL .* with several hosts postgresql://user@a:5432,b:5432/name"
    ) as caught:
        postgres_address(url)
    assert "hunt" not in str(caught.value)
