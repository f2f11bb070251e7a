"""`ingestd test`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import click
import msgspec

from ingestd.cli.completion import PIPELINE
from ingestd.cli.options import chosen_names, json_option, with_configuration_without_secrets
from ingestd.commands.mapping_test.case_file import MappingCase, read_cases
from ingestd.commands.mapping_test.case_run import CaseResult, rules_of, run_case
from ingestd.commands.mapping_test.sample import read_sample
from ingestd.core.groups import Aggregation
from ingestd.core.mapping import Mapping
from ingestd.core.phrases import counted
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.exit_codes import ExitCode
from ingestd.process.redaction import redact_text
from ingestd.process.terminal_text import echo
from ingestd.settings.model import PipelineSettings

_USUAL = "tests.yaml"


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, dir_okay=False), metavar="[FILE]...")
@click.option("--pipeline", "name", type=PIPELINE, metavar="NAME", help="Only the cases of this pipeline.")
@json_option("Print one JSON object.")
@with_configuration_without_secrets
def test(configuration: Configuration, files: tuple[Path, ...], name: str | None, as_json: bool) -> None:
    """Test the mappings with cases: records, and the entries and rejections that they make.

    Each FILE is YAML; without a FILE, tests.yaml in the folder of the configuration is read. The cases run through the
    pipeline's mapping. No state file, service, secret or source is used, except sample files. Rules that made no expected entry
    are listed.

    \b
    cases:
      - name: a part with a mass
        pipeline: mass-budget
        rows: [{part_number: 00417, mass_kg: 0.30}]
        entries: [{key: 00417.mass, value: 0.30, type: scalar}]
      - name: the delivered file, and a row without a number
        pipeline: mass-budget
        sample: samples/mass-budget.csv
        partial: true
        entries: [{key: 00418.mass, value: 12.5}]
        rejected: [{row: 7, reason: no 'part_number'}]

    Exit codes: 0 every case is as expected, 1 a case differs, 78 a mistake in the configuration or in a FILE.

    Example: ingestd test cases/mass-budget.yaml --pipeline mass-budget
    """  # noqa: D301 - click's mark of a paragraph that is not rewrapped
    chosen = chosen_names(configuration, (name,) if name else ())
    known = [pipeline.name for pipeline in configuration.settings.pipelines]
    cases = [case for file in files or (configuration.base / _USUAL,) for case in read_cases(file, pipelines=known)]
    emit = _nothing if as_json else echo
    tested = [
        _run(configuration, pipeline, [case for case in cases if case.pipeline == pipeline.name], emit=emit)
        for pipeline in configuration.settings.pipelines
        if pipeline.name in chosen
    ]
    results = [result for one in tested for result in one.results]
    failed = sum(bool(result.differences) for _, result in results)
    if as_json:
        echo(json.dumps(_document(tested), ensure_ascii=False, indent=2))
    else:
        echo(f"{counted(len(results), 'case')}, {failed} failed.")
    sys.exit(ExitCode.CASE_FAILED if failed else ExitCode.DONE)


class _Tested(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a pipeline's cases, and the labels of the rules that made no expected entry."""

    pipeline: str
    results: list[tuple[MappingCase, CaseResult]]
    untested: list[str]


def _nothing(line: str) -> None:
    """Print nothing: the JSON document is printed at the end."""


def _document(tested: list[_Tested]) -> dict[str, object]:
    return {
        "cases": [
            {
                "pipeline": one.pipeline,
                "name": case.name,
                "file": str(case.file),
                "outcome": "failed" if result.differences else "passed",
                "differences": [{"line": line, "sentence": redact_text(text)} for line, text in result.differences],
            }
            for one in tested
            for case, result in one.results
        ],
        "untested": [{"pipeline": one.pipeline, "rule": label} for one in tested for label in one.untested],
    }


def _run(
    configuration: Configuration, pipeline: PipelineSettings, cases: list[MappingCase], *, emit: Callable[[str], None]
) -> _Tested:
    mapping, rules = Mapping(pipeline.entries), rules_of(pipeline.entries)
    groups = Aggregation(pipeline.group) if pipeline.group is not None else None
    results = []
    for case in cases:
        result = run_case(
            case,
            mapping=mapping,
            rules=rules,
            sample=lambda path: read_sample(configuration, pipeline, path),
            groups=groups,
        )
        results.append((case, result))
        if not result.differences:
            emit(f"passed  {pipeline.name} · {case.name}")
        for line, sentence in result.differences:
            emit(redact_text(f"failed  {pipeline.name} · {case.name}\n        {case.file}:{line}: {sentence}"))
    covered = frozenset[int]().union(*(result.covered for _, result in results))
    untested = [rule.label for index, rule in enumerate(rules) if index not in covered]
    for label in untested:
        emit(f"untested  {pipeline.name} · {label}: no case expects an entry of this rule")
    return _Tested(pipeline=pipeline.name, results=results, untested=untested)
