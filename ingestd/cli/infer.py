"""`ingestd infer`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator

import click
import msgspec

from ingestd.cli.options import json_option, with_configuration
from ingestd.core.contract import Contract
from ingestd.core.errors import SourceError
from ingestd.core.phrases import counted
from ingestd.daemon.configuration import Configuration, PipelineUnknown, chosen_pipelines
from ingestd.daemon.exit_codes import ExitCode
from ingestd.daemon.source_profile import read_profile
from ingestd.process.redaction import redact_text
from ingestd.process.terminal_text import echo
from ingestd.settings.node import resolve

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@click.command()
@click.argument("pipeline")
@json_option("Print one JSON object instead of YAML.")
@with_configuration
def infer(configuration: Configuration, pipeline: str, as_json: bool) -> None:
    """Print a contract of the columns of PIPELINE, as YAML for the configuration. Its source is read once.

    The contract has the name of each column, whether it is always filled, and the type of its values: integer, decimal, date,
    text, or a list of values if there are few. Nothing is stored, moved or sent. The intake then checks each reading.

    Exit codes: 0 done, 5 the source is unavailable or can't be read as configured.

    Example: ingestd infer mass-budget >> contract.yaml
    """
    try:
        chosen_pipelines(configuration, (pipeline,))
    except PipelineUnknown as error:
        raise click.UsageError(str(error)) from error
    (chosen,) = (one for one in configuration.settings.pipelines if one.name == pipeline)
    try:
        profile = read_profile(configuration, chosen)
    except SourceError as error:
        echo(redact_text(str(error)), err=True)
        sys.exit(ExitCode.SOURCE_FAILED)
    columns = profile.contract()
    if not columns:
        echo("The source has no records now, so there is no contract.", err=True)
        sys.exit(ExitCode.SOURCE_FAILED)
    contract = Contract(columns=columns)
    if as_json:
        document = {"pipeline": pipeline, "records": profile.records, "contract": msgspec.to_builtins(contract)}
        echo(json.dumps(document, ensure_ascii=False, indent=2))
        return
    echo(f"# from {counted(profile.records, 'record')}; below the pipeline '{pipeline}'")
    for line in _lines(contract):
        echo(line)


def _lines(contract: Contract) -> Iterator[str]:
    yield "contract:"
    yield f"  new: {contract.new}        # accept | reject: a column that is not listed"
    yield f"  missing: {contract.missing}    # accept | reject: a listed column, or a value of a filled one"
    yield f"  retyped: {contract.retyped}    # accept | reject: a value of another type"
    yield "  columns:"
    for name, column in contract.columns.items():
        parts = [f"values: [{', '.join(map(_text, column.values))}]" if column.values else f"type: {column.type}"]
        parts += ["filled: true"] if column.filled else []
        yield f"    {_text(name)}: {{{', '.join(parts)}}}"


def _text(text: str) -> str:
    """Return a text as YAML; JSON's quotes are YAML's."""
    is_plain = _PLAIN.fullmatch(text) and resolve(text) == text
    return text if is_plain else json.dumps(text, ensure_ascii=False)
