"""The HTTP layer serves any resource, so it must not name one."""

from __future__ import annotations

import re
from pathlib import Path

import workspaced.http
from workspaced.app import create_app
from workspaced.settings.model import WorkspacedSettings

_FOLDER = Path(workspaced.http.__path__[0])


def test_http_names_no_resource(tmp_path: Path) -> None:
    operations = create_app(WorkspacedSettings(data=tmp_path)).operations
    words = {word for operation in operations for word in re.findall(r"(?<=/)[a-z-]+", operation.path)}
    assert {"data-sink", "webhooks", "audit-log"} <= words
    # `http` itself serves the description of the API; `workspace` is the unit of its permission checks.
    resources = words - {"openapi", "docs", "workspace"}
    literal = re.compile(rf'["/]({"|".join(sorted(resources))})["/]')
    modules = [module for module in _FOLDER.rglob("*.py") if module.parent.name != "openapi"]
    assert _FOLDER / "dispatch.py" in modules
    named = {module.name: literal.findall(module.read_text("utf-8")) for module in modules}
    assert {name: found for name, found in named.items() if found} == {}
