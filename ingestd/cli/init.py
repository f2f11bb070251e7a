"""`ingestd init`."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote, urlsplit

import click
import msgspec

from ingestd.cli.check import exit_code, print_findings, print_service
from ingestd.cli.completion import FILE_OR_TABLE
from ingestd.cli.dialogue import Dialogue
from ingestd.cli.init_columns import choose_entries, choose_key, list_columns
from ingestd.cli.plan import partition_lines
from ingestd.client import Client
from ingestd.client.addresses import workspaces_request
from ingestd.client.errors import ServiceError, value_of
from ingestd.client.transport import UnusableCertificate
from ingestd.commands.configuration_check import check_access, check_configuration
from ingestd.commands.initial_configuration.file_format import understand_file
from ingestd.commands.initial_configuration.file_sample import FileSample
from ingestd.commands.initial_configuration.findings import first_records, sentences
from ingestd.commands.initial_configuration.record_keys import DOCUMENT
from ingestd.commands.initial_configuration.sample import SampleRecords, glob_of, records_of_table, require_records
from ingestd.commands.initial_configuration.text import (
    InitialFolder,
    InitialSettings,
    InitialTable,
    configuration_text,
)
from ingestd.commands.initial_configuration.trial import SHOWN, plan_of_sample
from ingestd.commands.sync_plan.execution import Interrupted
from ingestd.core.errors import ConfigurationError, SourceError
from ingestd.core.phrases import counted
from ingestd.daemon.configuration import read_configuration
from ingestd.daemon.exit_codes import ExitCode
from ingestd.process.logs import configure_logs
from ingestd.process.redaction import mask_secrets, redact_text
from ingestd.process.terminal_text import echo, safe_line
from ingestd.settings.secrets import PlaceholderError, Placeholders

T = TypeVar("T")

_KEY_VARIABLE = "INGESTD_API_KEY"
_KEY_FILE = "api_key"
_URL_FILE = "database_url"
_REFERENCE = re.compile(r"\$\{(env|file|credential):[^}]+\}")
_FILE = click.Path(path_type=Path, dir_okay=False)


class InitFailed(click.ClickException):
    """The configuration can't be made; the sentence says why and what to do."""

    exit_code = ExitCode.SOURCE_FAILED


class _NewFiles(msgspec.Struct):
    """The files that this command created. If the command fails, the files are deleted."""

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


class _Source(msgspec.Struct, frozen=True, kw_only=True):
    """The source that the configuration will have, and its sample.

    ``sample``: the file; None for a table. ``address``: the address of the database. ``name``: the default name of the
    pipeline. ``kind``: the name of the format, or `DOCUMENT`.
    """

    settings: InitialFolder | InitialTable
    records: SampleRecords
    name: str
    sample: Path | None = None
    address: str = ""
    kind: str = ""


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
@click.option("--table", help="With --database: the table or view.")
@click.option("--pipeline", metavar="NAME", help="The name of the pipeline. Default: the name of the folder or table.")
@click.option(
    "--sink", help="The label of the data sink; it is created if it does not exist. Default: the name of the pipeline."
)
@click.option(
    "--header-row", metavar="ROW", type=click.IntRange(min=0), help="The first row of the header; 0: there is none."
)
@click.option("--units-row/--no-units-row", default=None, help="Whether the row below the header holds units.")
@click.option("--encoding", help="The encoding of a text file, such as windows-1252.")
@click.option("--sheet", help="The sheet of a workbook.")
@click.option("--area", metavar="RANGE", help="The cells of the sheet that contain the table, such as C:H.")
@click.option("--records", metavar="PATH", help="The path of the records in a JSON or XML document.")
@click.option("--pattern", metavar="REGEX", help="The pattern of the lines of a log, with named groups.")
@click.option("--decimal", type=click.Choice([",", "."]), help="What separates decimals in numbers such as 1,250.")
@click.option(
    "--key",
    "key",
    multiple=True,
    metavar="COLUMN",
    help="A column that identifies a record; repeat the option for several columns.",
)
@click.option("--column", "columns", multiple=True, help="A column with values; may be repeated.")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing: use the options, the defaults and every proposal.")
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
    header_row: int | None,
    units_row: bool | None,
    encoding: str | None,
    sheet: str | None,
    area: str | None,
    records: str | None,
    pattern: str | None,
    decimal: str | None,
    key: tuple[str, ...],
    columns: tuple[str, ...],
    yes: bool,
) -> None:
    """Write a first configuration: ask for the service and a sample, show what it understood, choose the columns.

    The sample is a file of a folder, or a table of a database. The command reads it, and shows its header, its units, the types
    of its columns and the key. It asks for facts that the sample does not prove. Without a terminal, the command can't ask: it
    ends with a sentence that names the option to use, unless --yes accepts the proposal.

    The configuration has comments. A plan of the sample shows the entries of its records, and the rejected records. Then the
    configuration is checked as by 'ingestd check'. No file is overwritten. An API key and the address of a database server are
    written to separate files with mode 0600, or stay in an environment variable. They are never in the YAML.

    Exit codes: 0 done; 3 done, but records of the sample would be rejected; 2 an option is needed; 5 the service or the sample
    can't be used, or a file exists. After 2 and 5, no new file remains.

    Example: ingestd init

    Example: ingestd init --yes --url http://127.0.0.1:8400 --sample drop/mass-budget.csv
    """
    if sample is not None and database is not None:
        raise click.UsageError("--sample and --database exclude each other. Use one of them.")
    if output.exists():
        raise InitFailed(f"{output} exists, and is not overwritten. Name another file with --output.")
    configure_logs(level="error")
    options = {
        "--url": url, "--workspace": workspace, "--table": table, "--pipeline": pipeline, "--sink": sink,
        "--header-row": None if header_row is None else str(header_row),
        "--units-row": None if units_row is None else "yes" if units_row else "no",
        "--encoding": encoding, "--sheet": sheet, "--area": area, "--records": records, "--pattern": pattern,
        "--decimal": decimal,
    }  # fmt: skip
    ask = Dialogue(interactive=sys.stdin.isatty() and not yes, accepts=yes, options=options)
    new, base = _NewFiles(), output.absolute().parent
    try:
        url = ask.value("--url", "Address of the workspace service", default="http://127.0.0.1:8400")
        reference = _api_key_reference(key_reference, ask, new, base)
        workspaces = _workspaces(url, _filled(reference, base))
        labels = list(workspaces.values())
        echo(f"The service responded. Workspaces: {', '.join(labels)}.", err=True)
        only = labels[0] if len(labels) == 1 else None
        workspace = ask.value("--workspace", "Workspace", default=only, choices=[*labels, *workspaces])
        source = _source(sample, database, ask, new, base)
        for line in first_records(source.records.first):
            echo(f"  {safe_line(line)}", err=True)
        list_columns(source.records)
        names = choose_key(source.records, key, ask, kind=source.kind)
        entries = choose_entries(source.records, names.columns, columns, ask, kind=source.kind)
        pipeline = ask.value("--pipeline", "Name of the pipeline", default=source.name)
        settings = InitialSettings(
            url=url,
            api_key=reference,
            # Two configurations of a folder must not share a state file.
            state=f"var/{output.stem}.db",
            workspace=workspace,
            pipeline=pipeline,
            sink=ask.value("--sink", "Label of the data sink", default=source.name),
            source=source.settings,
            key=names.columns,
            entries=entries,
            repeated=names.repeated,
        )
        rejected = _show_plan(settings, source, ask)
        new.write(output, configuration_text(settings), mode=0o644)
        _check(output)
    except BaseException:
        new.remove()
        raise
    program = "ingestd" if output == Path("ingestd.yaml") else f"ingestd -c {output}"
    echo(
        f"{' and '.join(map(str, new.paths))} written. Next: '{program} plan', then '{program} sync' or '{program} run'."
    )
    if rejected:
        echo(f"{counted(rejected, 'record')} of the sample would be rejected, with the reasons above.", err=True)
        sys.exit(ExitCode.REJECTED)


def _api_key_reference(given: str | None, ask: Dialogue, new: _NewFiles, base: Path) -> str:
    """Return the placeholder of the API key. If a person types the key, write it to a file."""
    if given is None and os.environ.get(_KEY_VARIABLE):
        given = f"${{env:{_KEY_VARIABLE}}}"
    if given is None:
        if not ask.interactive:
            raise click.UsageError(
                f"Without questions, --api-key or the environment variable {_KEY_VARIABLE} is needed."
            )
        api_key = ask.secret("API key (it is written to a separate file)")
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


def _workspaces(url: str, api_key: str) -> Mapping[str, str]:
    """Return, by id, the labels of the workspaces that the key can read. This also tests the connection."""
    try:
        with Client(url, api_key=api_key) as client:
            labels = {one.id: one.label for one in value_of(client.send(workspaces_request()))}
    except (ServiceError, UnusableCertificate, ValueError) as error:
        raise InitFailed(redact_text(f"The service {url} can't be used: {error}")) from error
    if not labels:
        raise InitFailed(
            f"The service {url} responded, but the key can read no workspace. Create one first, "
            "for example with 'workspaced workspaces create LABEL'."
        )
    return labels


def _source(sample: str | None, database: str | None, ask: Dialogue, new: _NewFiles, base: Path) -> _Source:
    if sample is None and database is None:
        question = "A sample file, or the address of a database without its password"
        named = ask.value("--sample or --database", question)
        sample, database = (None, named) if "://" in named or "${" in named else (named, None)
    if sample is not None:
        return _file_source(Path(sample), ask, base)
    address = _with_password(str(database), ask)
    return _table_source(address, ask.value("--table", "Table"), new, base)


def _file_source(path: Path, ask: Dialogue, base: Path) -> _Source:
    if path.is_dir():
        raise InitFailed(
            f"{path} is a folder. Name one of its files with --sample; the configuration reads the whole folder."
        )
    if not path.is_file():
        raise InitFailed(f"There is no file {path}.")
    path = path.absolute()
    sample: FileSample = _read(lambda: understand_file(path, ask))
    _read(lambda: require_records(sample.records, path.name))
    found = tuple(sentences(path.name, sample))
    for sentence in found:
        echo(safe_line(sentence), err=True)
    folder = path.parent.relative_to(base) if path.parent.is_relative_to(base) else path.parent
    return _Source(
        settings=InitialFolder(path=str(folder), pattern=glob_of(path.name), format=sample.settings, found=found),
        records=sample.records,
        name=_name(path.parent.name),
        sample=path,
        kind=DOCUMENT if sample.is_document else sample.format,
    )


def _with_password(address: str, ask: Dialogue) -> str:
    """Return the address of a database with its password. If necessary, ask for the password without showing it."""
    try:
        parts = urlsplit(address)
    except ValueError:  # the reading of the table reports the mistake
        return address
    user, _, host = parts.netloc.rpartition("@")
    if not ask.interactive or not user or ":" in user or _REFERENCE.search(address):
        return address
    password = ask.secret(f"Password of {unquote(user)} (empty: none)", default="")
    return parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}").geturl() if password else address


def _table_source(address: str, table: str, new: _NewFiles, base: Path) -> _Source:
    if found := re.fullmatch(r"sqlite:///([^/].*)", address):
        address = f"sqlite:///{Path(found[1]).absolute()}"
    url = _filled(address, base) if _REFERENCE.search(address) else address
    mask_secrets([url])
    records: SampleRecords = _read(lambda: records_of_table(url, table))
    _read(lambda: require_records(records, table))
    if not _REFERENCE.search(address) and not url.startswith("sqlite:"):
        new.write(base / _URL_FILE, f"{url}\n", mode=0o600)
        address = f"${{file:{_URL_FILE}}}"
    return _Source(settings=InitialTable(url=address, table=table), records=records, name=_name(table), address=url)


def _read(read: Callable[[], T]) -> T:
    try:
        return read()
    except SourceError as error:
        raise InitFailed(redact_text(str(error))) from error
    except ConfigurationError as error:  # the messages of this check are about a draft that the user does not know
        raise InitFailed(redact_text(" ".join(one.sentence for one in error.mistakes))) from error


def _show_plan(settings: InitialSettings, source: _Source, ask: Dialogue) -> int:
    """Show the plan of the sample, and return the number of its records that would be rejected."""
    try:
        planned = _read(lambda: plan_of_sample(settings, sample=source.sample, address=source.address))
    except Interrupted as interrupted:
        sys.exit(interrupted.exit_status)
    echo("The plan of the sample:")
    for line in partition_lines(planned, SHOWN, more=""):
        echo(f"  {safe_line(line)}")
    if not planned.created:
        raise InitFailed(
            "No record of the sample gives an entry, so nothing was written. Choose another key or header row."
        )
    if planned.rejected * 2 > planned.records and not ask.accepts:
        doubt = f"{planned.rejected} of {counted(planned.records, 'record')} of the sample would be rejected."
        if not ask.interactive or not click.confirm(f"{doubt} Write the configuration?", default=False, err=True):
            raise InitFailed(
                f"{doubt} Nothing was written. Correct it by --header-row or --key, or accept it by --yes."
            )
    return planned.rejected


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
