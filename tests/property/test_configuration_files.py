from __future__ import annotations

import io
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from ingestd.core.errors import ConfigurationError
from ingestd.settings.model import Settings
from tests.support.sample_connectors import CONNECTORS, GOOD, RigOptions, load, with_source

_KEYS = sorted(
    {"service", "url", "api_key", "state", "pipelines", "name", "source", "connector", "entries", "key", "value"}
    | {"columns", "type", "sink", "workspace", "label", "id", "visible_id", "schedule", "every", "cron", "timezone"}
    | set(RigOptions.model_fields)
)
_WORDS = [
    *CONNECTORS, "on-change", "15m", "0 2 * * *", "Europe/Berlin", "{a}", "{column}", "{", "${env:KEY}", "${env:NONE}",
    "${file:x}", "${credential:..}", "$${", "http://h", "rig:x", "archive", "keep", "yes", "0755", "1_000", "~",
]  # fmt: skip
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(_WORDS),
    st.sampled_from(_KEYS),
)
_NAMES = st.one_of(st.sampled_from(_KEYS), st.text(max_size=8))
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_NAMES, inner, max_size=6)),
    max_leaves=25,
)
_SOURCES = st.fixed_dictionaries(
    {"connector": st.sampled_from([*CONNECTORS])}, optional=dict.fromkeys(RigOptions.model_fields, _VALUES)
)
_PIPELINES = st.fixed_dictionaries(
    {},
    optional={
        "name": _SCALARS,
        "source": _VALUES | _SOURCES,
        "entries": _VALUES,
        "sink": _VALUES,
        "schedule": _VALUES,
    },
)  # fmt: skip
_DOCUMENTS = st.one_of(
    _VALUES,
    st.fixed_dictionaries(
        {}, optional={"service": _VALUES, "state": _VALUES, "pipelines": st.lists(_PIPELINES, max_size=3)}
    ),
)


def outcome(text: str | bytes) -> Settings | ConfigurationError:
    """Return the settings or the mistakes; any other exception fails the test."""
    with TemporaryDirectory() as folder:
        try:
            return load(text, Path(folder), KEY="hunter22-secret")
        except ConfigurationError as error:
            refused = error
    assert refused.mistakes
    assert [(one.line, one.column) for one in refused.mistakes] == sorted(
        (one.line, one.column) for one in refused.mistakes
    )
    assert "hunter22" not in str(refused)
    return refused


def written(value: Any) -> str:
    stream = io.StringIO()
    YAML(typ="safe", pure=True).dump(value, stream)
    return stream.getvalue()


@given(_DOCUMENTS)
def test_any_document_gives_settings_or_mistakes(document: Any) -> None:
    outcome(written(document))


@given(st.one_of(st.text(max_size=200), st.text("{}[]:-,&*!|>'\"%@`#? \n\tab01\\${", max_size=60)))
def test_any_text_gives_settings_or_mistakes(text: str) -> None:
    outcome(text.encode("utf-8", "surrogatepass"))


@given(st.binary(max_size=100))
def test_any_bytes_give_settings_or_mistakes(content: bytes) -> None:
    outcome(content)


@given(st.data())
def test_a_damaged_file_gives_settings_or_mistakes(data: st.DataObject) -> None:
    good = with_source('{connector: rig, path: "${env:KEY}", pattern: [a, b], password: "${env:KEY}"}') + GOOD
    at = data.draw(st.integers(0, len(good)))
    length = data.draw(st.integers(0, 12))
    outcome(good[:at] + data.draw(st.text(max_size=8)).replace("\ud800", "") + good[at + length :])
