"""`ingestd connector`: write a package with your own connector, and check such a package."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import click

from ingestd.cli.options import json_option
from ingestd.daemon.exit_codes import ExitCode
from ingestd.process.terminal_text import echo
from ingestd.registry import GROUP, connector_class
from ingestd.sdk import Connector
from ingestd.sdk.package_template import KINDS, PackageRefused, write_package
from ingestd.settings.validation import ConnectorUnusable

_SECONDS = 1800


@click.group()
def connector() -> None:
    """Write a package with your own connector, or check such a package.

    Example: ingestd connector new oven-log
    """


@connector.command()
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(list(KINDS)),
    default="snapshot",
    show_default=True,
    help="What a reading of the source yields.",
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where the folder of the package is made.  [default: here]",
)
def new(name: str, kind: str, folder: Path) -> None:
    """Write a package with the connector NAME, its tests and its CI.

    The package works without changes, and passes `ingestd connector check`. Replace the example of a source by your own source.

    Exit codes: 0 done, 73 the package can't be written.

    Example: ingestd connector new oven-log --kind follow
    """
    try:
        written = write_package(name, kind, folder)
    except PackageRefused as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        echo(f"{folder} can't be written: {error.strerror}.", err=True)
        sys.exit(ExitCode.OUTPUT_UNWRITABLE)
    echo(
        f"Written: {written}. Next: cd {written} && pip install pytest && pip install --editable . && ingestd connector check"
    )


@connector.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path())
@click.option(
    "--at-least",
    type=click.Choice(["bronze", "silver", "gold"]),
    default="bronze",
    show_default=True,
    help="The grade that is needed for exit code 0.",
)
@json_option("Print a JSON object with the grade and each requirement.")
def check(folder: Path, at_least: str, as_json: bool) -> None:
    """Run the tests of the package in FOLDER and print the grade of its connector.

    Bronze: the tests of the kit pass, and everything is described. Silver: the connector also survives network faults, checks
    its access, and shows its connection. Gold: it also survives kills of the daemon, and explains what waits. The package must
    be installed, with pytest.

    Exit codes: 0 the grade is reached, 1 the grade is not reached.

    Example: ingestd connector check ingestd-oven-log --at-least silver
    """
    from ingestd.sdk.testing.grade import GRADES, TestsMissing, grade_of, requirements, run_tests  # noqa: PLC0415 - only here

    found = _connector_of(folder)
    try:
        tests = run_tests(folder, seconds=_SECONDS)
        results = list(requirements(found, folder, tests))
    except TestsMissing as error:
        raise click.ClickException(str(error)) from error
    grade = grade_of(results)
    if as_json:
        parts = [
            {"grade": one.grade, "name": one.name, "passed": one.passed, "sentence": one.sentence} for one in results
        ]
        echo(json.dumps({"grade": grade, "requirements": parts}, ensure_ascii=False, indent=2))
    else:
        for one in results:
            echo(f"{'passed' if one.passed else 'failed'}  {one.grade:<6} {one.name}: {one.sentence}")
        if tests.failed:
            echo(tests.output, err=True)
        echo(f"Grade: {grade}")
    if GRADES.index(grade) < GRADES.index(at_least):
        sys.exit(ExitCode.CASE_FAILED)


def _connector_of(folder: Path) -> type[Connector]:
    """Return the connector that the package declares.

    Raises:
        click.ClickException: the package declares no connector, or is not installed.
    """
    path = folder / "pyproject.toml"
    try:
        declared = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["entry-points"][GROUP]
        name = next(iter(declared))
    except OSError as error:
        raise click.ClickException(f"{path} can't be read: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, KeyError, TypeError, StopIteration) as error:
        raise click.ClickException(f'{path} declares no connector in [project.entry-points."{GROUP}"].') from error
    try:
        return connector_class(name)
    except ConnectorUnusable as error:
        raise click.ClickException(
            f"{error} If the package is not installed: pip install --editable {folder}."
        ) from error
