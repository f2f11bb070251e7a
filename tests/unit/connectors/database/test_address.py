"""A URL in its parts, and what is shown of it."""

import pytest

from connectors.database.address import parse_address


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///file.db", "sqlite:///file.db"),
        ("sqlite:////srv/a b#c.db", "sqlite:////srv/a b#c.db"),
        ("postgresql://me:p@host:5432/pdm", "postgresql://me:***@host:5432/pdm"),
        ("postgresql+psycopg://me@host/pdm?password=p", "postgresql://me@host/pdm"),
        ("postgresql://me:p%40q@a:1,b:2/pdm", "postgresql://me:***@a:1,b:2/pdm"),
        ("postgresql://[::1]:5432/pdm", "postgresql://[::1]:5432/pdm"),
        ("postgresql:///pdm?host=/run/postgresql", "postgresql:///run/postgresql/pdm"),
        ("mysql+pymysql://me:a/b@host/pdm", "mysql://me:***@host/pdm"),
        ("mariadb://me:a@b@host/pdm?ssl_ca=/x@y.pem", "mariadb://me:***@host/pdm"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert str(parse_address(url)) == shown


def test_user_and_password_are_decoded_and_the_settings_are_separate() -> None:
    address = parse_address("postgres://m%65:p%40%3A%25@h/pdm?sslmode=require&options=-c%20a%3Db")
    assert (address.family, address.user, address.password, address.host, address.database) == (
        "postgresql",
        "me",
        "p@:%",
        "h",
        "pdm",
    )
    assert address.query == {"sslmode": "require", "options": "-c a=b"}
