"""The variables of the environment that libpq reads: none leads to another server or schema than the URL."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from connectors.database.options import DatabaseOptions
from connectors.database.postgresql_connection import libpq_parameters
from ingestd.process.postgres_address import postgres_address


def source_parameters(url: str) -> dict[str, Any]:
    return libpq_parameters(DatabaseOptions.model_validate({"url": url, "table": "t"}))


def address_parameters(url: str) -> dict[str, Any]:
    return dict(postgres_address(url).parameters)


@pytest.fixture(autouse=True)
def services(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Define a service that leads elsewhere."""
    file = tmp_path / "pg_service.conf"
    file.write_text("[elsewhere]\nhostaddr=192.0.2.1\noptions=-c search_path=elsewhere\n")
    monkeypatch.setenv("PGSERVICEFILE", str(file))


@pytest.fixture(params=[source_parameters, address_parameters])
def parameters_of(request: pytest.FixtureRequest) -> Callable[[str], dict[str, Any]]:
    found: Callable[[str], dict[str, Any]] = request.param
    return found


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PGHOSTADDR", "192.0.2.1"),
        ("PGHOST", "elsewhere.invalid"),
        ("PGPORT", "1"),
        ("PGUSER", "another_user"),
        ("PGDATABASE", "elsewhere"),
        ("PGOPTIONS", "-c search_path=elsewhere"),
        ("PGTARGETSESSIONATTRS", "standby"),
        ("PGSERVICE", "elsewhere"),
    ],
)
def test_a_variable_of_libpq_does_not_lead_elsewhere(
    postgresql: Any,
    parameters_of: Callable[[str], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
) -> None:
    monkeypatch.setenv(variable, value)
    parts = conninfo_to_dict(postgresql.url)
    where = f"postgresql://{parts['user']}@{parts['host']}:{parts['port']}/{parts['dbname']}"
    given = parameters_of(where) | ({"password": parts["password"]} if "password" in parts else {})
    with psycopg.connect(**given) as connection:
        (path,) = connection.execute("SHOW search_path").fetchone() or ("",)
    assert "elsewhere" not in path


def test_a_url_without_host_port_and_user_has_the_defaults_of_libpq(
    parameters_of: Callable[[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in {"PGHOST": "elsewhere.invalid", "PGPORT": "1", "PGUSER": "another_user"}.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(psycopg.OperationalError) as error:
        psycopg.connect(**parameters_of("postgresql:///no-such-database?host=/no-such-folder"))
    assert "/no-such-folder/.s.PGSQL.5432" in str(error.value)


def test_a_service_that_the_url_names_gives_the_server(
    postgresql: Any, parameters_of: Callable[[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parts = conninfo_to_dict(postgresql.url)
    services = tmp_path / "pg_service.conf"
    services.write_text("[plant]\n" + "".join(f"{name}={value}\n" for name, value in parts.items() if name != "dbname"))
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    with psycopg.connect(**parameters_of(f"postgresql:///{parts['dbname']}?service=plant")) as connection:
        assert connection.info.port == int(str(parts["port"]))
