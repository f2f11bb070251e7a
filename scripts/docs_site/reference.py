"""The reference pages. When the site is built, each page is generated from the code that it describes."""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import pkgutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from prometheus_client import CollectorRegistry

import ingestd.cli
import ingestd.telemetry.catalogue
import workspaced.cli
from ingestd.client import errors as client_errors
from ingestd.client.errors import ServiceError
from ingestd.core import errors as daemon_errors
from ingestd.daemon.exit_codes import ExitCode
from ingestd.registry import connector_class, connector_names
from ingestd.settings.schema import configuration_schema
from ingestd.telemetry.event import Event, event_name
from ingestd.web.metrics import METRICS
from scripts.docs_site.command_tree import iter_commands
from workspaced.core import problems
from workspaced.telemetry.metrics import Metrics

FIGURES = Path(__file__).parents[2] / "docs" / "figures" / "benchmarks.json"
_UNITS = {
    "_seconds": "seconds",
    "_bytes": "bytes",
    "_days": "days",
    "_rows": "rows",
    "_percent": "percent",
}
_LONGEST_DEFAULT = 60


def reference_pages() -> dict[str, str]:
    """Return the text of each page by its name in ``docs/reference``."""
    pages = {
        "configuration.md": _configuration(),
        "commands.md": _commands(),
        "metrics.md": _metrics(),
        "events.md": _events(),
        "errors.md": _errors(),
        "measurements.md": _measurements(),
    }
    return {name: "\n".join(lines) + "\n" for name, lines in pages.items()}


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(_cell(cell) for cell in row)} |"
    yield ""


def _cell(text: str) -> str:
    return " ".join(text.replace("``", "`").replace("|", "\\|").replace("<", "&lt;").split())


def _code(value: object) -> str:
    return f"`{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}`"


# Configuration


def _configuration() -> Iterator[str]:
    schema = configuration_schema({name: connector_class(name) for name in connector_names()})
    yield "# Configuration"
    yield ""
    yield "All settings of the configuration file, from the models that validate the file. A setting without a default is"
    yield "optional, unless it is marked *required*."
    yield "[config/ingestd.yaml](../files/config/ingestd.yaml.md) shows all settings in one file, with comments."
    yield from _settings("The file", schema, "file")
    for name, definition in schema["$defs"].items():
        if "properties" in definition:
            yield from _settings(name, definition, _anchor(name))
        elif "oneOf" in definition:
            yield from (
                "",
                f"## {name} {{: #{_anchor(name)} }}",
                "",
                f"{definition['description']} {_kind(definition)}.",
            )


def _anchor(name: str) -> str:
    return name.lower().replace(".", "-")


def _settings(title: str, definition: Mapping[str, Any], anchor: str) -> Iterator[str]:
    yield ""
    yield f"## {title} {{: #{anchor} }}"
    yield ""
    yield definition.get("description", "")
    required = definition.get("required", ())
    yield from _table(
        ("setting", "value", "default", "meaning", "example"),
        (
            (
                f"`{name}`",
                _kind(part) + next((f", in {unit}" for end, unit in _UNITS.items() if name.endswith(end)), ""),
                "*required*" if name in required else _default(part),
                part.get("description", ""),
                ", ".join(_code(example) for example in part.get("examples", ())),
            )
            for name, part in definition["properties"].items()
        ),
    )


def _default(part: Mapping[str, Any]) -> str:
    if "default" not in part:
        return ""
    text = _code(part["default"])
    return text if len(text) <= _LONGEST_DEFAULT else "a list; see the meaning"


def _kind(part: Mapping[str, Any]) -> str:
    """Return the values that a setting takes, with links to the settings of objects."""
    match part:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            return "" if name == "Placeholder" else f"[{name}](#{_anchor(name)})"
        case {"enum": [*values]} | {"const": values}:
            return ", ".join(_code(value) for value in (values if isinstance(values, list) else [values]))
        case {"anyOf": parts} | {"oneOf": parts}:
            return " or ".join(dict.fromkeys(filter(None, map(_kind, parts))))
        case {"type": "array", "items": items}:
            return f"list of {_kind(items)}"
        case {"type": kind}:
            return str(kind) + _range(part)
    return "any"


def _range(part: Mapping[str, Any]) -> str:
    words = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    limits = [f"{sign} {part[name]:g}" for name, sign in words.items() if name in part]
    return f" {', '.join(limits)}" if limits else ""


# Commands


def _commands() -> Iterator[str]:
    yield "# Commands"
    yield ""
    yield "The help text of each command, as the programs print it."
    for program, name in ((ingestd.cli.main, "ingestd"), (workspaced.cli.main, "workspaced")):
        for command, ctx in iter_commands(program, name):
            ctx.terminal_width = 100
            yield from ("", f"## {ctx.command_path}", "", "```text", click.Command.get_help(command, ctx), "```")


# Metrics


def _metrics() -> Iterator[str]:
    yield "# Metrics"
    yield ""
    yield "[Monitoring](../monitoring.md) describes the listener of the daemon, alerts and a dashboard."
    yield from ("", "## ingestd")
    yield from _table(
        ("metric", "kind", "labels", "meaning"),
        ((f"`{name}`", one.kind, ", ".join(one.labels), one.help) for name, one in METRICS.items()),
    )
    yield "## workspaced"
    yield ""
    yield "`/metrics` of the admin port also has gauges that are read from the database, each with its meaning."
    registry = CollectorRegistry()
    Metrics(registry)
    yield from _table(
        ("metric", "kind", "meaning"),
        (
            (f"`{one.name}{'_total' if one.type == 'counter' else ''}`", one.type, one.documentation)
            for one in registry.collect()
        ),
    )


# Events


def _events() -> Iterator[str]:
    yield "# Events of the log"
    yield ""
    yield "A line of the log is an event with a stable name and typed fields. [Commands](../operations.md#the-log) select events."
    for module in _modules(ingestd.telemetry.catalogue):
        kinds = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__]
        yield from ("", f"## {module.__name__.rpartition('.')[2]}")
        yield from _table(
            ("event", "level", "fields", "when"),
            (
                (
                    f"`{event_name(kind)}`",
                    kind.level,
                    ", ".join(f"`{name}`" for name in kind.__struct_fields__),
                    inspect.getdoc(kind) or "",
                )
                for kind in kinds
                if issubclass(kind, Event)
            ),
        )


def _modules(package: Any) -> Iterator[Any]:
    for found in pkgutil.iter_modules(package.__path__):
        yield importlib.import_module(f"{package.__name__}.{found.name}")


# Errors


def _errors() -> Iterator[str]:
    yield "# Exit codes and errors"
    yield from ("", "## Exit codes of ingestd")
    yield from _table(("code", "meaning"), sorted(_exit_codes(), key=lambda row: int(row[0])))
    yield from ("", "## Errors of `ingestd.client`", "", (client_errors.__doc__ or "").partition("\n\n")[0])
    yield from _table(("class", "status", "meaning"), _client_errors())
    for title, module in (("Errors of the daemon", daemon_errors), ("Problems of the service", problems)):
        head, _, rest = (module.__doc__ or "").partition("\n\n")
        tree = [line for line in rest.splitlines() if line.startswith(" ")]
        yield from ("", f"## {title}", "", head, "", "```text", textwrap.dedent("\n".join(tree)), "```")


def _client_errors() -> Iterator[tuple[str, str, str]]:
    for kind in vars(client_errors).values():
        if inspect.isclass(kind) and issubclass(kind, ServiceError):
            statuses = ", ".join(map(str, getattr(kind, "statuses", ())))
            yield f"`{kind.__name__}`", statuses, (inspect.getdoc(kind) or "").partition("\n\n")[0]


def _exit_codes() -> Iterator[tuple[str, str]]:
    yield "2", "A mistake in the command line."
    # A docstring below a member is not available at run time, so it is read from the source.
    lines = inspect.getsource(ExitCode).splitlines()
    for line, text in itertools.pairwise(lines):
        name, _, value = line.strip().partition(" = ")
        if name in ExitCode.__members__:
            yield value, text.strip().strip('"')


# Measurements


def _measurements() -> Iterator[str]:
    found = json.loads(FIGURES.read_text(encoding="utf-8"))
    yield "# Measurements"
    yield ""
    yield f"The figures of [the benchmarks](../development/benchmarks.md) as last measured: {found['machine']}."
    yield "A ratio compares two figures of one round. The table has its median and range over the rounds, and our aim."
    yield ""
    yield "![Bars: first delivery, unchanged files, and the time until a drop is visible](../figures/benchmarks.svg)"
    for name, benchmark in found["benchmarks"].items():
        yield from ("", f"## {name}")
        for title, figures in benchmark.items():
            if isinstance(figures, dict) and title != "ratios":
                yield from _table(
                    (title.replace("_", " "), ""), ((what, _number(value)) for what, value in figures.items())
                )
        yield from _table(
            ("ratio", "median", "range", "aim"),
            (
                (what, f"{one['median']:.3g}", f"{one['lowest']:.3g} to {one['highest']:.3g}", one["aim"])
                for what, one in benchmark.get("ratios", {}).items()
            ),
        )


def _number(value: object) -> str:
    match value:
        case float() | int():
            return f"{value:,.4g}" if abs(value) < 1_000 else f"{value:,.0f}"
        case dict():
            return ", ".join(f"{name} {_number(one)}" for name, one in value.items())
    return str(value)
