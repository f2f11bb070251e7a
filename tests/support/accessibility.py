"""axe-core, which finds accessibility defects of a page, run in the browser of a test."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from tests.support.chromium import Browser

# All rules of WCAG 2.2 A and AA and of good practice, and the suitable experimental rules. The names of the passed rules prove
# that axe ran.
_RUN = """
const [only, done] = arguments;
const further = ["label-content-name-mismatch", "focus-order-semantics", "table-fake-caption", "td-has-header",
  "p-as-heading", "target-size"];
axe.run(document, {
  resultTypes: ["violations"],
  ...(only ? {runOnly: only} : {rules: Object.fromEntries(further.map((rule) => [rule, {enabled: true}]))}),
}).then((found) => done([
  found.passes.map((one) => one.id),
  found.violations.flatMap((one) =>
    one.nodes.map((node) => `${one.id}: ${node.html.slice(0, 160)} ${node.failureSummary || ""}`)),
]), (error) => done([[], [String(error)]]));
"""


@cache
def _axe() -> str:
    return files("selenium_axe_python").joinpath("axe-core/axe.min.js").read_text(encoding="utf-8")


def axe_findings(browser: Browser, *, only: str = "") -> list[str]:
    """Return one text for each violation that axe finds on the current page: the rule, the element and what to change.

    ``only``: the only rule to check, such as the contrast rule for a second colour scheme; empty: all rules.
    """
    browser.run(_axe())
    passed: list[str]
    findings: list[str]
    passed, findings = browser.driver.execute_async_script(_RUN, only)
    assert findings or (only or "document-title") in passed, f"axe checked only {passed}"
    return findings
