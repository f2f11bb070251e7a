"""The contract, its citations and its anchors agree (contract G37).

A citation is the word ``contract`` and ids with commas between them.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from workspaced.core import problems

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "service-contract.md"
CITING: Final = ("ingestd", "connectors", "workspaced", "tests", "bench", "docs")
TEXTS: Final = frozenset({".py", ".sql", ".md", ".toml", ".yaml", ".html", ".js", ".css"})

_ID: Final = r"[A-Z]{1,2}[0-9]{1,2}"
_ANCHOR: Final = re.compile(rf'<a id="([^"]+)"></a>(?:\*\*)?({_ID})\b')
_CITATION: Final = re.compile(rf"\bcontract ({_ID}(?:, {_ID})*)\b")
# The table of operations is data in code and tests: an operation's id is a separate string.
_OPERATION: Final = re.compile(r'"((?:DS|BL|WS|CS|WH|AK|AU|OP)[0-9]{1,2})"')
_OTHER_FORM: Final = re.compile(rf"\bcontract(?:,|, section) ?{_ID}|\bcontract {_ID}(?:,? and| to) {_ID}")
_BARE: Final = re.compile(rf"\(({_ID}(?:, | and | to ){_ID}|{_ID})\)")
_LINK: Final = re.compile(r"\]\((?:service-contract\.md|docs/service-contract\.md)?#([^)\s]+)\)")

# Raised only for pages, commands, and the end of a stream that has begun, which no client of the interface sees.
_NOT_OF_THE_INTERFACE: Final = frozenset(
    {
        "response_cut",
        "bad_form",
        "bad_table",
        "empty_table",
        "file_not_found",
        "no_such_asset",
        "no_such_page",
        "not_deleted",
        "purge_begun",
        "workspace_deleted",
    }
)


def clauses() -> list[str]:
    return [found[2] for found in _ANCHOR.finditer(PAGE.read_text(encoding="utf-8"))]


def texts(*folders: str) -> Iterator[tuple[str, str]]:
    """Return the path and text of every file that can contain a citation, without the contract itself."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in TEXTS and path != PAGE and path.is_file():
                yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def cited_in(text: str) -> set[str]:
    named = {one for found in _CITATION.finditer(text) for one in found[1].split(", ")}
    return named | {found[1] for found in _OPERATION.finditer(text)}


def codes_of_code() -> set[str]:
    """Return the codes of problems and mistakes in the service's code."""
    kinds = {name for name, kind in vars(problems).items() if isinstance(kind, type)}
    trees = [ast.parse(text) for path, text in texts("workspaced") if path.endswith(".py")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {code for call in calls for code in _codes_of_call(call, kinds)}


def _codes_of_call(call: ast.Call, kinds: set[str]) -> set[str]:
    match call.func:
        case ast.Name(id=name) if name in kinds:
            arguments = [*call.args[:1], *(one.value for one in call.keywords if one.arg == "code")]
        case ast.Attribute(attr="at" | "mistake"):
            arguments = call.args[1:2]
        case _:
            return set()
    named = {one.value for one in arguments if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    return {text for text in named if re.fullmatch("[a-z0-9_]+", text)}


def slug(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_every_id_is_one_clauses_and_is_its_anchor() -> None:
    text = PAGE.read_text(encoding="utf-8")
    anchors = re.findall(r'<a id="([^"]+)"></a>', text)
    assert [name for name, count in Counter(anchors).items() if count > 1] == []
    assert [(found[1], found[2]) for found in _ANCHOR.finditer(text) if found[1] != found[2].lower()] == []
    assert len(clauses()) == len(anchors) > 150


def test_every_link_to_the_contract_resolves() -> None:
    page = PAGE.read_text(encoding="utf-8")
    known = {one.lower() for one in clauses()} | {slug(found) for found in re.findall(r"^#+ (.+)$", page, re.MULTILINE)}
    readers = {"docs/service-contract.md": page, "README.md": (ROOT / "README.md").read_text(encoding="utf-8")}
    readers |= {name: text for name, text in texts("docs") if name.endswith(".md")}
    wrong = [
        (name, found[1])
        for name, text in readers.items()
        for found in _LINK.finditer(text)
        if (name == "docs/service-contract.md" or "service-contract.md" in found[0]) and found[1] not in known
    ]
    assert wrong == []
    assert "(docs/service-contract.md)" in readers["README.md"]
    assert "(service-contract.md)" in readers["docs/service.md"]


def test_every_cited_clause_exists() -> None:
    known = set(clauses())
    unknown = [(path, sorted(gone)) for path, text in texts(*CITING) if (gone := cited_in(text) - known)]
    assert unknown == [], "docs/service-contract.md has no such clause"


def test_every_clause_is_cited_by_a_test() -> None:
    cited = {one for path, text in texts("tests") if Path(path).stem.startswith("test_") for one in cited_in(text)}
    assert [one for one in clauses() if one not in cited] == [], "cite it in the test that proves it, or drop it"


def test_citations_have_one_form() -> None:
    known = set(clauses())
    wrong: list[tuple[str, str]] = []
    for path, text in texts(*CITING):
        wrong += [(path, found[0]) for found in _OTHER_FORM.finditer(text)]
        if path.startswith(("connectors", "tests/integration/connectors")):
            continue  # names of cells in sheets resemble clauses
        bare = [(found[0], set(re.findall(_ID, found[1]))) for found in _BARE.finditer(text)]
        wrong += [(path, group) for group, named in bare if named <= known]
    assert wrong == [], "write 'contract', and the ids with commas between them"


def test_the_tables_have_the_operations_of_the_openapi_document() -> None:
    row = re.compile(rf'^\| <a id="[^"]+"></a>({_ID}) \| `([A-Z]+) (/[^`]*)` \| `([^`]+)` \|', re.MULTILINE)
    shown = {(found[2], found[3], found[4]) for found in row.finditer(PAGE.read_text(encoding="utf-8"))}
    document: Mapping[str, Mapping[str, Mapping[str, str]]] = json.loads(
        (ROOT / "docs" / "openapi.json").read_text(encoding="utf-8")
    )["paths"]
    served = {
        (method.upper(), path, operation["operationId"])
        for path, methods in document.items()
        for method, operation in methods.items()
    }
    assert shown == served


def test_the_table_of_codes_has_those_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index('<a id="g37"></a>') : text.index("\n## Authentication")]
    shown = set(re.findall(r"`([a-z0-9_]{4,})`", table)) - {"code", "errors", "bad_"}
    raised = codes_of_code() - _NOT_OF_THE_INTERFACE
    assert sorted(raised - shown) == []
    everything = "\n".join(text for _, text in texts("workspaced"))
    assert [code for code in sorted(shown) if f'"{code}"' not in everything] == []
    assert {kind.status for kind in _kinds(problems.Problem)} <= {int(one) for one in re.findall(r"\| (\d{3})", table)}


def _kinds(kind: type[problems.Problem]) -> Iterator[type[problems.Problem]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)
