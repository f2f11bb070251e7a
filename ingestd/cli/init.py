"""`ingestd init`."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import click
import msgspec

from ingestd.cli.check import exit_code, print_findings, print_service
from ingestd.cli.completion import FILE_OR_TABLE
from ingestd.client import Client
from ingestd.client.errors import ServiceError
from ingestd.client.transport import UnusableCertificate
from ingestd.commands.configuration_check import check_access, check_configuration
from ingestd.commands.initial_configuration.sample import columns_of_file, columns_of_table, glob_of, require_columns
from ingestd.commands.initial_configuration.text import (
    InitialFolder,
    InitialSettings,
    InitialTable,
    by_type,
    configuration_text,
    has_no_header,
    is_possible_key,
    suggested_key,
    suggested_values,
)
from ingestd.core.column_profile import ColumnProfile
from ingestd.core.errors import ConfigurationError, SourceError
from ingestd.core.phrases import counted
from ingestd.daemon.configuration import read_configuration
from ingestd.daemon.exit_codes import ExitCode
from ingestd.process.redaction import mask_secrets, redact_text
from ingestd.process.terminal_text import echo
from ingestd.settings.secrets import PlaceholderError, Placeholders

_KEY_VARIABLE = "INGESTD_API_KEY"
_KEY_FILE = "api_key"
_URL_FILE = "database_url"
_REFERENCE = re.compile(r"\$\{(env|file|credential):[^}]+\}")
_COLUMNS_SHOWN = 50
_FILE = click.Path(path_type=Path, dir_okay=False)


class InitFailed(click.ClickException):
    """The configuration can't be made; the sentence says why and what to do."""

    exit_code = ExitCode.SOURCE_FAILED


class _NewFiles(msgspec.Struct):
    """The files that this command created. They are deleted if it does not end well."""

    paths: list[Path] = msgspec.field(default_factory=list)

    def write(self, path: Path, text: str, *, mode: int) -> None:
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        except FileExistsError:
            raise InitFailed(f"{path} exists, and is not overwritten. Move it away, or name another file.") from None
        except OSError as error:
            raise InitFailed(f"{path} can't be written: {error.strerror or error}.") from error
        self.paths.append(path)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)

    def remove(self) -> None:
        for path in self.paths:
            with suppress(FileNotFoundError):
                path.unlink()


class _Dialogue(msgspec.Struct, frozen=True, kw_only=True):
    """Takes a value from its option, else asks for it, else from its default."""

    interactive: bool

    def value(self, given: str | None, question: str, *, option: str, default: str | None = None) -> str:
        if given is not None:
            return given
        if self.interactive:
            return str(click.prompt(question, default=default, err=True))
        if default is None:
            raise click.UsageError(f"--no-input needs {option}.")
        return default

    def secret(self, question: str, *, default: str | None = None) -> str:
        return str(click.prompt(question, default=default, show_default=False, hide_input=True, err=True))


@click.command()
@click.option("-o", "--output", type=_FILE, default="ingestd.yaml", show_default=True, help="The new configuration.")
@click.option("--url", help="The address of the workspace service.")
@click.option(
    "--api-key",
    "key_reference",
    metavar="REFERENCE",
    help=f"Where the API key is: ${{env:NAME}} or ${{file:PATH}}. Default: ${{env:{_KEY_VARIABLE}}}, else it is asked for.",
)
@click.option("--workspace", help="The label or id of the workspace.")
@click.option(
    "--sample",
    type=FILE_OR_TABLE,
    help="A file as it will be dropped in its folder: CSV, XLSX, JSON or another known format.",
)
@click.option("--database", metavar="URL", help="The address of a database, or ${env:NAME}, instead of --sample.")
@click.option("--table", help="With --database: the table.")
@click.option("--pipeline", metavar="NAME", help="The name of the pipeline.")
@click.option("--sink", help="The label of the data sink; it is created if it does not exist.")
@click.option("--key", metavar="COLUMN", help="The column that names a record.")
@click.option("--column", "columns", multiple=True, help="A column with values; may be repeated.")
@click.option("--no-input", is_flag=True, help="Ask nothing: use the options and the defaults.")
def init(  # noqa: PLR0917 - click names them
    output: Path,
    url: str | None,
    key_reference: str | None,
    workspace: str | None,
    sample: str | None,
    database: str | None,
    table: str | None,
    pipeline: str | None,
    sink: str | None,
    key: str | None,
    columns: tuple[str, ...],
    no_input: bool,
) -> None:
    """Write a first configuration: ask for the service and a sample, test the connection, and choose the columns.

    The sample is a file of a folder, or a table of a database. It is read once, and suggests the columns. The configuration has
    comments, and is checked like 'ingestd check' does it. No file is overwritten. An API key and the address of a database
    server are written to files of their own, with mode 0600, or stay in an environment variable; never in the YAML.

    Exit codes: 0 done, 5 the service or the sample can't be used, or a file exists; nothing is left behind.

    Example: ingestd init

    Example: ingestd init --no-input --url http://127.0.0.1:8400 --sample drop/mass-budget.csv
    """
    if sample is not None and database is not None:
        raise click.UsageError("--sample and --database exclude each other. Use one of them.")
    if output.exists():
        raise InitFailed(f"{output} exists, and is not overwritten. Name another file with --output.")
    ask, new = _Dialogue(interactive=not no_input), _NewFiles()
    base = output.absolute().parent
    try:
        url = ask.value(url, "Address of the workspace service", option="--url", default="http://127.0.0.1:8400")
        reference = _api_key_reference(key_reference, ask, new, base)
        labels = _workspaces(url, _filled(reference, base))
        default = labels[0] if len(labels) == 1 else None
        echo(f"The service responded. Workspaces: {', '.join(labels)}.", err=True)
        workspace = ask.value(workspace, "Workspace", option="--workspace", default=default)
        if sample is None and database is None:
            question = "A sample file, or the address of a database without its password"
            named = ask.value(None, question, option="--sample or --database")
            sample, database = (None, named) if "://" in named or "${" in named else (named, None)
        source: InitialFolder | InitialTable
        if sample is not None:
            source, profile, name = _file_source(Path(sample), base)
        else:
            database = _with_password(str(database), ask)
            table = ask.value(table, "Table", option="--table")
            source, profile, name = _table_source(database, table, new, base)
        key, chosen = _columns(profile, key, columns, ask)
        commas = {name: thousands for name, thousands in profile.decimal_commas().items() if name in chosen}
        numbers, texts = by_type(profile.contract(), tuple(name for name in chosen if name not in commas))
        settings = InitialSettings(
            url=url,
            api_key=reference,
            # Two configurations of a folder must not share a state file.
            state=f"var/{output.stem}.db",
            workspace=workspace,
            pipeline=ask.value(pipeline, "Name of the pipeline", option="--pipeline", default=name),
            sink=ask.value(sink, "Label of the data sink", option="--sink", default=name),
            source=source,
            key=key,
            numbers=numbers,
            texts=texts,
            commas=commas,
        )
        new.write(output, configuration_text(settings), mode=0o644)
        _check(output)
    except BaseException:
        new.remove()
        raise
    program = "ingestd" if output == Path("ingestd.yaml") else f"ingestd -c {output}"
    echo(
        f"{' and '.join(map(str, new.paths))} written. Next: '{program} plan', then '{program} sync' or '{program} run'."
    )


def _api_key_reference(given: str | None, ask: _Dialogue, new: _NewFiles, base: Path) -> str:
    """Return the placeholder of the API key; write a key that was typed to a file."""
    if given is None and os.environ.get(_KEY_VARIABLE):
        given = f"${{env:{_KEY_VARIABLE}}}"
    if given is None:
        if not ask.interactive:
            raise click.UsageError(f"--no-input needs --api-key, or the environment variable {_KEY_VARIABLE}.")
        api_key = ask.secret("API key (it is written to a file of its own)")
        new.write(base / _KEY_FILE, f"{api_key}\n", mode=0o600)
        return f"${{file:{_KEY_FILE}}}"
    if not _REFERENCE.fullmatch(given):
        raise click.UsageError("--api-key is a reference such as ${env:NAME} or ${file:PATH}, not the key itself.")
    return given


def _filled(text: str, base: Path) -> str:
    try:
        filled = Placeholders(environment=os.environ, base=base).fill(text).text
    except PlaceholderError as error:
        raise InitFailed(str(error)) from None
    mask_secrets([filled])
    return filled


def _workspaces(url: str, api_key: str) -> list[str]:
    """Return the labels of the workspaces that the key can read; this tests the connection."""
    try:
        with Client(url, api_key=api_key) as client:
            labels = [one.label for one in client.list_workspaces()]
    except (ServiceError, UnusableCertificate, ValueError) as error:
        raise InitFailed(redact_text(f"The service {url} can't be used: {error}")) from error
    if not labels:
        raise InitFailed(f"The service {url} responded, but the key can read no workspace. Create one first.")
    return labels


def _file_source(path: Path, base: Path) -> tuple[InitialFolder, ColumnProfile, str]:
    if not path.is_file():
        raise InitFailed(f"There is no file {path}.")
    path = path.absolute()
    profile = _read(lambda: columns_of_file(path, _report_sheet), path.name)
    folder = path.parent.relative_to(base) if path.parent.is_relative_to(base) else path.parent
    return (
        InitialFolder(path=str(folder), pattern=glob_of(path.name)),
        profile,
        _name(path.name.split(".")[0]),
    )


def _report_sheet(sheet: str) -> None:
    echo(
        f"The sheet '{sheet}' was read, the first visible sheet with cells. For another sheet, use a sample with only"
        " that sheet, then set 'format: {type: excel, sheet: NAME, header_row: N}' in the source.",
        err=True,
    )


def _with_password(address: str, ask: _Dialogue) -> str:
    """Return the address of a database with its password, which is asked for without showing it."""
    try:
        parts = urlsplit(address)
    except ValueError:  # the reading of the table reports it
        return address
    user, _, host = parts.netloc.rpartition("@")
    if not ask.interactive or not user or ":" in user or _REFERENCE.search(address):
        return address
    password = ask.secret(f"Password of {unquote(user)} (empty: none)", default="")
    return parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}").geturl() if password else address


def _table_source(address: str, table: str, new: _NewFiles, base: Path) -> tuple[InitialTable, ColumnProfile, str]:
    if found := re.fullmatch(r"sqlite:///([^/].*)", address):
        address = f"sqlite:///{Path(found[1]).absolute()}"
    url = _filled(address, base) if _REFERENCE.search(address) else address
    mask_secrets([url])
    profile = _read(lambda: columns_of_table(url, table), table)
    if not _REFERENCE.search(address) and not url.startswith("sqlite:"):
        new.write(base / _URL_FILE, f"{url}\n", mode=0o600)
        address = f"${{file:{_URL_FILE}}}"
    return InitialTable(url=address, table=table), profile, _name(table)


def _read(read: Callable[[], ColumnProfile], name: str) -> ColumnProfile:
    try:
        profile = read()
        require_columns(profile, name)
    except SourceError as error:
        raise InitFailed(redact_text(str(error))) from error
    except ConfigurationError as error:  # of a draft that the user does not know
        raise InitFailed(redact_text(" ".join(one.sentence for one in error.mistakes))) from error
    return profile


def _list_columns(profile: ColumnProfile) -> None:
    contract, commas = profile.contract(), profile.decimal_commas()
    echo(f"{counted(profile.records, 'record')}. Columns:", err=True)
    for name, column in list(contract.items())[:_COLUMNS_SHOWN]:
        kind = "decimal with a comma" if name in commas else column.type
        echo(f"  {name}: {kind}{', always filled' if column.filled else ''}", err=True)
    if len(contract) > _COLUMNS_SHOWN:
        echo(f"  and {counted(len(contract) - _COLUMNS_SHOWN, 'more column')}", err=True)
    if has_no_header(tuple(contract)):
        echo(
            "These names are values: the sample seems to have no header, and its first row would not be delivered. If so, add"
            " 'format: {type: csv, columns: [NAME, NAME]}' with your names to the source.",
            err=True,
        )


def _columns(
    profile: ColumnProfile, key: str | None, columns: Sequence[str], ask: _Dialogue
) -> tuple[str, tuple[str, ...]]:
    """Return the column of keys, and those with values."""
    contract, commas, repeated = profile.contract(), profile.decimal_commas(), profile.repeated()
    _list_columns(profile)
    key = ask.value(
        key, "Column that names a record", option="--key", default=suggested_key(contract, commas, repeated)
    )
    for name in (key, *columns):
        if name not in contract:
            raise InitFailed(f"The sample has no column '{name}'. Its columns are: {', '.join(contract)}.")
    if not is_possible_key(key):
        raise InitFailed(
            f"The column '{key}' can't be named in a template. Rename it in the source, or choose another column."
        )
    if key in repeated:
        echo(
            f"Several records have the same value of '{key}'. Only the last one of them would be delivered. Choose another"
            " column, or name more columns in the 'key' of the configuration, such as {number}.{revision}.",
            err=True,
        )
    if columns:
        return key, tuple(columns)
    suggested = suggested_values(contract, key, commas)
    if not suggested:
        raise InitFailed(f"The sample has no column with values besides '{key}'. Name a sample with two columns.")
    if not ask.interactive:
        return key, suggested
    chosen = tuple(
        name
        for name in contract
        if name != key and click.confirm(f"Send '{name}'?", default=name in suggested, err=True)
    )
    if not chosen:
        raise InitFailed("No column was chosen, so there is nothing to send.")
    return key, chosen


def _name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "first"


def _check(output: Path) -> None:
    try:
        configuration = read_configuration(output, environment=os.environ, cwd=output.absolute().parent)
    except ConfigurationError as error:
        raise InitFailed(redact_text(str(error))) from error
    findings = print_findings(check_configuration(configuration), as_json=False)
    findings += print_findings(check_access(configuration), as_json=False)
    findings += asyncio.run(print_service(configuration, as_json=False))
    if exit_code(findings) != ExitCode.DONE:
        raise InitFailed("The configuration does not pass the check, so nothing was written. Correct what failed.")
