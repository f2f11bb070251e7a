"""Every regular expression of the product works in time linear in the text: another program may send the text.

An expression gets its own worst alphabet: its literal characters and their pairs, repeated. The worst ones by a short text are
repeated up to 50 kB. The processor time must be below a budget; a machine that is slow passes if the growth is linear.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import permutations
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import pytest

import connectors
import ingestd
import workspaced
from connectors.formats.csv.dialect import Dialect
from ingestd.core.contract import PATTERNS

Pattern: TypeAlias = "re.Pattern[Any]"

SHORT, LONG = 4_000, 50_000
BUDGET_SECONDS = 0.02
QUADRATIC = 10.0
"""Four times the text takes 16 times as long in a quadratic expression, and 4 times in a linear one."""
CANDIDATES = 3

_CALL = r"\b{name}(?:\([\w., ]*\))?\.(search|sub|subn|finditer|findall|split|match|fullmatch)\b"

OF_FILE_NAMES = {"connectors.files.resubmission._NAME"}
"""Expressions for names of files only, which have at most 255 bytes."""

BUILT: Mapping[str, tuple[object, ...]] = {
    "connectors.directory.readiness.companion._compile": ("{stem}_x.ok",),
    "connectors.directory.readiness.file_groups._compile": ("r{a}_{b}_{c}_{part}.csv", ("x", "y")),
    "connectors.formats.csv.fast._plain_quotes": (Dialect(delimiter=","),),
    "connectors.formats.csv.fast._misplaced_quote": (Dialect(delimiter=","),),
    "connectors.formats.csv.scanner._field_end": (",",),
    "connectors.formats.csv.tolerant._clean_record": (Dialect(delimiter=","),),
    "ingestd.core.mapping.specification.name_parts": ("R{a}_{b}_{c}_{d}.csv",),
}
"""Functions that build an expression, with their arguments for an example."""

CONFIGURED = {
    "connectors.directory.scan._compiled": "wildcards, which fnmatch translates to atomic groups",
    "connectors.directory.readiness.trailer._compile": "an expression of the configuration",
    "connectors.directory.readiness.trailer._check_pattern": "an expression of the configuration",
    "ingestd.workbooks.open_xml._is_worth_parsing": "alternatives of fixed texts",
    "connectors.log.names._compile": "wildcards, which fnmatch translates to atomic groups",
    "ingestd.commands.initial_configuration.text_lines.find_pattern": "fixed parts, for the lines of a person's sample",
    "ingestd.core.claims._matchers_for": "wildcards, which fnmatch translates to atomic groups",
    "ingestd.core.contract._type_of": "one of PATTERNS, which are tested here, too",
    "ingestd.core.mapping.conversion.convert": "an expression of the configuration",
    "ingestd.core.mapping.conversion._without_groups": "digits in groups of three",
    "ingestd.core.mapping.key_pattern.can_make": "an expression of the configuration",
    "ingestd.core.mapping.key_pattern.columns_in": "the template of the configuration, for a key of the command line",
    "ingestd.process.redaction.mask_secrets": "alternatives of fixed texts",
    "ingestd.settings.entry_values._check_pattern": "an expression of the configuration",
}
"""Functions that build an expression that another program can't choose, with what it is."""


@cache
def modules() -> dict[str, ModuleType]:
    """Return every module of the product by its name."""
    found = {}
    for package in (connectors, ingestd, workspaced):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__") and ".package_template" not in module.name:
                found[module.name] = importlib.import_module(module.name)
    return found


@cache
def source(module: ModuleType) -> str:
    """Return the module's source."""
    return Path(str(module.__file__)).read_text(encoding="utf-8")


def flattened(value: object) -> Iterator[Pattern]:
    """Yield the expressions in a value of a module."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, Mapping):
        yield from flattened(tuple(value.values()))
    elif isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from flattened(item)


def calls_of(module: ModuleType) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of `re` within functions, with the function's name."""
    for function in ast.walk(ast.parse(source(module))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args:
                    yield function.name, node


def methods_of(name: str, module: ModuleType, *, otherwise: tuple[str, ...] = ("search", "fullmatch")) -> set[str]:
    """Return the methods by which the module that declares an expression, or one that imports it, uses it."""
    call = re.compile(_CALL.format(name=re.escape(name)))
    own = set(call.findall(source(module)))
    others = (source(one) for one in modules().values() if name in vars(one))
    return own or {method for text in others for method in call.findall(text)} or set(otherwise)


@cache
def expressions() -> dict[str, tuple[Pattern, frozenset[str]]]:
    """Return every expression by its place, with the methods that use it."""
    found: dict[str, tuple[Pattern, frozenset[str]]] = {}
    for name, module in modules().items():
        for variable, value in vars(module).items():
            for number, pattern in enumerate(flattened(value)):
                place = f"{name}.{variable}" + (f"[{number}]" if not isinstance(value, re.Pattern) else "")
                found[place] = (pattern, frozenset(methods_of(variable, module)))
        for function, call in calls_of(module):
            argument, method = call.args[0], ast.unparse(call.func).removeprefix("re.")
            text = vars(module).get(ast.unparse(argument)) if not isinstance(argument, ast.Constant) else argument.value
            if method in {"compile", "escape"} or not isinstance(text, str | bytes):
                continue
            found[f"{name}.{function}:{call.lineno}"] = (re.compile(text), frozenset({method}))
    for kind, text in PATTERNS.items():
        found[f"ingestd.core.contract.PATTERNS[{kind}]"] = (re.compile(text), frozenset({"search"}))
    for place, arguments in BUILT.items():
        owner, _, function = place.rpartition(".")
        pattern = getattr(modules()[owner], function)(*arguments)
        found[place] = (pattern, frozenset(methods_of(function, modules()[owner], otherwise=("fullmatch",))))
    return {place: one for place, one in found.items() if place not in OF_FILE_NAMES}


def seconds(pattern: Pattern, method: str, text: str | bytes) -> float:
    """Return the processor time of one use of an expression."""
    began = time.process_time()
    found = getattr(pattern, method)(*((text[:0], text) if method in {"sub", "subn"} else (text,)))
    if method == "finditer":
        for _ in found:
            pass
    return time.process_time() - began


def texts(pattern: Pattern, unit: str, length: int) -> str | bytes:
    """Return a unit repeated, with an end that nothing expects."""
    text = (unit * (length // len(unit) + 1))[:length] + "\x01"
    return text.encode("latin-1", "ignore") if isinstance(pattern.pattern, bytes) else text


def units_of(pattern: Pattern) -> list[str]:
    """Return the worst alphabet of an expression."""
    text = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    plain = re.sub(r"\\[a-zA-Z]|\(\?[P:<>!=]*|\{\d+(,\d*)?\}|[\[\]()|*+^$]", "", text)
    letters = list(dict.fromkeys([*plain, " ", "a", "1"]))[:12]
    pairs = ["".join(pair) for pair in permutations(letters[:8], 2)]
    return [*letters, *pairs, *(f"{one}a{two}" for one in letters[:3] for two in letters[:3]), "://a:", "<a>;"]


def faults(pattern: Pattern, method: str) -> Iterator[str]:
    """Yield what takes too long."""
    units = units_of(pattern)
    units.sort(key=lambda unit: seconds(pattern, method, texts(pattern, unit, SHORT)), reverse=True)
    for unit in units[:CANDIDATES]:
        quarter = min(seconds(pattern, method, texts(pattern, unit, LONG // 4)) for _ in range(2))
        whole = seconds(pattern, method, texts(pattern, unit, LONG)) if quarter < 10 * BUDGET_SECONDS else quarter * 16
        if whole > BUDGET_SECONDS and whole > QUADRATIC * quarter:
            yield f"{method} of {unit!r}: {whole:.3f} s for {LONG} characters, {quarter:.3f} s for a quarter"


@pytest.mark.parametrize("package", ["connectors", "ingestd", "workspaced"])
def test_expressions_take_time_linear_in_the_text(package: str) -> None:
    found = {
        f"{place}: {fault}"
        for place, (pattern, methods) in expressions().items()
        if place.startswith(f"{package}.")
        for method in methods
        for fault in faults(pattern, method)
    }
    assert not found


def test_every_expression_that_a_function_builds_is_an_example_or_configured() -> None:
    built = {
        f"{name}.{function}"
        for name, module in modules().items()
        for function, call in calls_of(module)
        if ast.unparse(call.func) != "re.escape"
        and not isinstance(call.args[0], ast.Constant)
        and not isinstance(vars(module).get(ast.unparse(call.args[0])), str | bytes)
    }
    assert built == BUILT.keys() | CONFIGURED.keys()


def test_a_quadratic_expression_is_found() -> None:
    pattern = re.compile(r"<[^>]*>")
    assert next(faults(pattern, "search"), "")
