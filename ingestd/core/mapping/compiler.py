"""The compiler of expressions: it parses with sqlglot and compiles each permitted kind of node with its handler."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import polars as pl
from msgspec.structs import replace
from sqlglot import ErrorLevel, exp, parse_one
from sqlglot.errors import SqlglotError

from ingestd.core.mapping import number
from ingestd.core.mapping.typed import ExpressionError, RecordFault, Typed, position_of, shown

MAX_CHARACTERS = 4000
AT_MOST = "at most 19 digits before and 18 after the point"
FUNCTIONS = (
    "ABS", "CAST", "CEIL", "COALESCE", "CONCAT", "CONTAINS", "ENDS_WITH", "FLOOR", "GREATEST", "IF", "LEAST", "LEFT", "LENGTH",
    "LOWER", "LTRIM", "NULLIF", "REGEXP_EXTRACT", "REGEXP_LIKE", "REPLACE", "RIGHT", "ROUND", "RTRIM", "SPLIT_PART",
    "STARTS_WITH", "SUBSTR", "TRIM", "TRY_CAST", "UPPER",
)  # fmt: skip
"""The functions that expressions can use."""

_IRRELEVANT = {"safe", "typed", "coalesce", "ignore_nulls", "_type"}
"""Attributes that sqlglot sets for other dialects."""


class Handler(msgspec.Struct, frozen=True, kw_only=True):
    """Compiles one kind of node. ``permitted``: the attributes of the node that the handler understands."""

    compile: Callable[[Compiler, Any], Typed]
    permitted: frozenset[str]


def handled(compile_node: Callable[[Compiler, Any], Typed], permitted: str = "this expression") -> Handler:
    """Return a handler; ``permitted`` has the names of attributes, separated by spaces."""
    return Handler(compile=compile_node, permitted=frozenset(permitted.split()))


class Compiler(msgspec.Struct, kw_only=True):
    """Compiles the expressions of one entry mapping.

    ``handlers``: the permitted kinds of nodes. ``steps``: columns to add to the records, in order; the compiled expressions
    refer to them. ``named``: expressions that other expressions use by name.
    """

    handlers: Mapping[type[exp.Expr], Handler]
    steps: list[pl.Expr] = msgspec.field(default_factory=list)
    named: dict[str, Typed] = msgspec.field(default_factory=dict)
    _numbers: dict[str, Typed] = msgspec.field(default_factory=dict)

    def compile(self, text: str) -> Typed:
        """Compile one expression.

        Raises:
            ExpressionError: the expression has a syntax error, or contains something that is not permitted.
        """
        if len(text) > MAX_CHARACTERS:
            raise ExpressionError(f"An expression has at most {MAX_CHARACTERS} characters.", MAX_CHARACTERS)
        try:
            tree = parse_one(text, into=exp.Condition, error_level=ErrorLevel.IMMEDIATE)
            return self.node(tree)
        except SqlglotError as error:
            raise _syntax_error(error, text) from None
        except RecursionError:
            raise ExpressionError("The expression is nested too deeply.") from None

    def define(self, name: str, text: str) -> Typed:
        """Compile an expression that later expressions can use by ``name``.

        Raises:
            ExpressionError: as for `compile`.
        """
        found = self.compile(text)
        if not found.raw and found.constant is None:
            found = replace(found, expr=self.step(found.expr), inexact=None)
        self.named[name] = found
        return found

    def condition(self, text: str) -> Typed:
        """Compile a condition.

        Raises:
            ExpressionError: as for `compile`, or the expression is no condition.
        """
        found = self.compile(text)
        if found.kind not in {"boolean", "null"}:
            raise ExpressionError(f"Expected a condition, such as status = 'released'; this is a {found.kind}.", 0)
        return found

    def step(self, expr: pl.Expr) -> pl.Expr:
        """Add a step that computes ``expr`` once as a column; return an expression for this column."""
        name = f"\0step{len(self.steps)}"
        self.steps.append(expr.alias(name))
        return pl.col(name)

    def node(self, node: exp.Expr) -> Typed:
        """Compile one node of the parsed expression."""
        handler = self.handlers.get(type(node))
        if handler is None:
            raise refusal(node)
        for name, value in node.args.items():
            if value not in (None, False, []) and name not in handler.permitted and name not in _IRRELEVANT:
                raise ExpressionError(
                    f"'{name}' of {shown(node)} is not permitted in an expression.", position_of(node)
                )
        return handler.compile(self, node)

    def number(self, node: exp.Expr) -> Typed:
        """Compile ``node`` as a number."""
        return self.as_number(self.node(node), node)

    def as_number(self, found: Typed, node: exp.Expr) -> Typed:
        """Return a compiled node as a number. A text is read as an exact decimal; a record with another text has a fault."""
        if found.kind == "null":
            return replace(found, expr=found.expr.cast(number.number_type()), kind="number")
        if found.kind == "number":
            return found
        if found.kind == "boolean":
            raise ExpressionError(f"{shown(node)} is a condition; a number is needed here.", position_of(node))
        if found.constant is not None:
            value = number.exact_number(found.constant)
            if value is None:
                raise ExpressionError(f"{shown(node)} is no number with {AT_MOST}.", position_of(node))
            return Typed(expr=number.number_literal(value), kind="number", constant=found.constant)
        key = found.columns[0] if found.raw else ""
        if key not in self._numbers:
            text = found.expr if found.raw else self.step(found.expr)
            numbers = self.step(text.map_batches(number.read_numbers, return_dtype=number.number_type()))
            fault = RecordFault(
                bad=self.step(text.is_not_null() & numbers.is_null()),
                columns=found.columns,
                sentence=f"{shown(node)} is used as a number, which has {AT_MOST}.",
            )
            known = Typed(expr=numbers, kind="number", columns=found.columns, faults=(*found.faults, fault))
            if not key:
                return known
            self._numbers[key] = known
        return self._numbers[key]

    def text(self, node: exp.Expr) -> Typed:
        """Compile ``node`` as text."""
        found = self.node(node)
        return replace(found, expr=found.text(), kind="text", raw=False)

    def boolean(self, node: exp.Expr) -> Typed:
        """Compile ``node`` as a condition."""
        found = self.node(node)
        if found.kind == "null":
            return replace(found, expr=found.expr.cast(pl.Boolean), kind="boolean")
        if found.kind != "boolean":
            raise ExpressionError(
                f"{shown(node)} is a {found.kind}; a condition is needed here, such as {shown(node, '')} = 'yes'.",
                position_of(node),
            )
        return found

    def integer(self, node: exp.Expr, *, least: int, most: int = 10**6) -> int:
        """Return the whole number of a literal node."""
        inner = node.this if isinstance(node, exp.Neg) else node
        value = number.decimal_of(inner.this) if isinstance(inner, exp.Literal) and not inner.is_string else None
        if isinstance(node, exp.Neg) and value is not None:
            value = -value
        if value is None or value != int(value) or not least <= value <= most:
            raise ExpressionError(
                f"Expected a whole number from {least} to {most} here, found {shown(node)}.", position_of(node)
            )
        return int(value)

    def literal(self, node: exp.Expr | None, what: str) -> str:
        """Return the text of a node that is a literal in quotes. ``what`` describes the expected text in errors."""
        if not isinstance(node, exp.Literal) or not node.is_string:
            raise ExpressionError(
                f"Expected {what} in single quotes here.", position_of(node) if node is not None else None
            )
        return str(node.this)


def refusal(node: exp.Expr) -> ExpressionError:
    """Return the error for a kind of node that is not permitted."""
    position = position_of(node)
    if isinstance(node, exp.Query | exp.Subquery | exp.Exists):
        return ExpressionError("An expression has no SELECT: it sees one record at a time.", position)
    if isinstance(node, exp.Window | exp.AggFunc):
        name = shown(node)
        return ExpressionError(f"{name} needs several records; an expression sees one record at a time.", position)
    if isinstance(node, exp.Func):
        name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).upper()
        near = difflib.get_close_matches(name, FUNCTIONS, n=1)
        hint = f" Did you mean {near[0]}?" if near else f" Expressions have {', '.join(FUNCTIONS)}."
        return ExpressionError(f"There is no function '{name}'.{hint}", position)
    return ExpressionError(f"{shown(node)} is not permitted in an expression.", position)


def _syntax_error(error: SqlglotError, text: str) -> ExpressionError:
    found = (getattr(error, "errors", None) or [{}])[0]
    if not text.strip():
        return ExpressionError("The expression is empty.", 0)
    line, column, highlight = found.get("line"), found.get("col"), found.get("highlight") or ""
    if not isinstance(line, int) or not isinstance(column, int):
        if text.count("'") % 2:
            return ExpressionError(
                "A text is opened with ' and not closed; write '' for the character itself.", text.rfind("'")
            )
        return ExpressionError("This is no expression.", 0)
    before = sum(len(row) + 1 for row in text.split("\n")[: line - 1])
    position = max(0, before + column - len(highlight))
    if highlight.upper() in {"SELECT", "WITH", "FROM"}:
        return ExpressionError("An expression has no SELECT: it sees one record at a time.", position)
    return ExpressionError(
        f"Something is missing or too much at '{highlight}'. Put a column name of several words in double quotes.",
        position,
    )
