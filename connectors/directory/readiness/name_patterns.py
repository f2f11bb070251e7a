"""Templates for names of companions: ``{name}.done``, ``{stem}.ready``."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator

_FIELDS = re.compile(r"\{(name|stem)\}")


def _check_template(template: str) -> str:
    if "/" in template:
        raise ValueError("it is the name of a file in the same folder, so it has no slash")
    if len(_FIELDS.findall(template)) != 1 or "{" in _FIELDS.sub("", template) or "}" in _FIELDS.sub("", template):
        raise ValueError("it names {name} (run.csv) or {stem} (run) once, and no other field")
    if template in {"{name}", "{stem}"}:
        raise ValueError("it must differ from the file's own name")
    return template


CompanionName = Annotated[str, AfterValidator(_check_template)]
"""The template of a companion's name, with ``{name}``, the file's whole name, or ``{stem}``, that without its last suffix."""


def companion_name(template: str, base: str) -> str:
    """Return the name of the companion of the file ``base``."""
    return template.replace("{name}", base).replace("{stem}", PurePosixPath(base).stem)


def is_companion_name(template: str, base: str) -> bool:
    """Return True if ``base`` is the name of a companion of some file."""
    return _compile(template).fullmatch(base) is not None


@lru_cache(maxsize=64)
def _compile(template: str) -> re.Pattern[str]:
    before, after = (re.escape(part) for part in _FIELDS.sub("\0", template).split("\0"))
    return re.compile(f"{before}.+{after}", re.DOTALL)
