from __future__ import annotations

import re
from pathlib import Path

import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.errors import ConfigurationError
from ingestd.core.mapping import EntrySpec
from ingestd.settings.configuration_file import MAX_FILE_BYTES, find_configuration, read_state_path
from ingestd.settings.loader import load_settings
from ingestd.settings.model import PipelineSettings, Settings, SourceSettings
from ingestd.settings.schedule import Cron, Every, OnChange
from ingestd.settings.service import ServiceSettings, client_id_of
from tests.support.sample_connectors import GOOD, RigOptions, load, mistakes, options_of, with_source


def options(settings: Settings) -> RigOptions:
    found = settings.pipelines[0].source.options
    assert isinstance(found, RigOptions)
    return found


def test_the_documented_structure_is_read(tmp_path: Path) -> None:
    settings = load(
        """\
service:
  url: http://127.0.0.1:8400/
  api_key: ${env:KEY}
  client_id: bench-3
state: var/ingestd.db
pipelines:
  - name: mass-budget
    source:
      connector: rig
      path: drop
      pattern: "*.csv"
      settle_seconds: 2
      after: archive
      archive: done
    entries:
      key: "{part_number}.mass"
      value: "{mass_kg}"
      type: scalar
    sink: {workspace: w, label: Mass budget}
    schedule: on-change
""",
        tmp_path,
    )
    assert settings.service.url == "http://127.0.0.1:8400"
    assert settings.service.api_key.get_secret_value() == "k-1234567"
    assert settings.service.client_id == "bench-3"
    assert settings.state == tmp_path / "var/ingestd.db"
    [pipeline] = settings.pipelines
    assert pipeline.entries == (EntrySpec(key="{part_number}.mass", value="{mass_kg}", columns=(), type="scalar"),)
    assert pipeline.sink == SinkAddress(workspace="w", by="label", name="Mass budget")
    assert pipeline.schedule == OnChange()
    assert options(settings) == RigOptions(
        path=tmp_path / "drop", pattern="*.csv", settle_seconds=2, after="archive", archive=tmp_path / "done"
    )


def test_the_example_configuration_without_optional_keys_has_the_documented_defaults(tmp_path: Path) -> None:
    settings = load(GOOD, tmp_path)
    assert settings.pipelines[0].schedule == OnChange()
    assert settings.service.client_id
    assert (settings.service.connect_timeout_seconds, settings.service.read_timeout_seconds) == (5, 30)


def test_entries_may_be_a_list_of_mappings_and_may_name_columns(tmp_path: Path) -> None:
    text = GOOD.replace(
        'entries: {key: "{part}.mass", value: "{mass}"}',
        'entries: [{key: "{part}.{column}", columns: [mass, length]}, {key: "{part}.name", value: "{name}", type: text}]',
    )
    assert load(text, tmp_path).pipelines[0].entries == (
        EntrySpec(key="{part}.{column}", value=None, columns=("mass", "length"), type="scalar"),
        EntrySpec(key="{part}.name", value="{name}", columns=(), type="text"),
    )


@pytest.mark.parametrize(
    ("notation", "expected"),
    [
        ("on-change", OnChange()),
        ("{every: 15m}", Every(seconds=900)),
        ("{every: 1h30m}", Every(seconds=5400)),
        ("{every: 1d2h3m4s}", Every(seconds=93784)),
        ('{cron: "0 2 * * *", timezone: Europe/Berlin}', Cron(expression="0 2 * * *", timezone="Europe/Berlin")),
        ('{cron: "*/10 6-18 * * mon-fri"}', Cron(expression="*/10 6-18 * * mon-fri", timezone="UTC")),
    ],
)
def test_a_schedule_has_three_notations(notation: str, expected: object, tmp_path: Path) -> None:
    assert load(f"{GOOD}    schedule: {notation}\n", tmp_path).pipelines[0].schedule == expected


@pytest.mark.parametrize("by", ["label", "id", "visible_id"])
def test_a_sink_is_named_in_one_of_three_ways(by: str, tmp_path: Path) -> None:
    sink = load(GOOD.replace("label: Bench", f"{by}: Bench"), tmp_path).pipelines[0].sink
    assert (sink.by, sink.name) == (by, "Bench")


def test_every_relative_path_starts_at_the_folder_of_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    found = options(load(with_source("{connector: rig, path: ../drop, archive: /done, more: [a, b/c]}"), folder))
    assert (found.path, found.archive, found.more) == (
        folder / "../drop",
        Path("/done"),
        (folder / "a", folder / "b/c"),
    )


def test_a_configuration_with_a_relative_path_has_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ingestd.yaml").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    settings = load_settings(Path("ingestd.yaml"), options_of=options_of, environment={"KEY": "k"})
    assert settings.state == tmp_path / "var/ingestd.db"


def test_a_placeholder_gives_a_number_or_a_boolean_if_one_is_expected(tmp_path: Path) -> None:
    source = '{connector: rig, path: drop, settle_seconds: "${env:S}", retries: "${env:R}", strict: "${env:T}"}'
    found = options(load(with_source(source), tmp_path, S="0.5", R="7", T="true"))
    assert (found.settle_seconds, found.retries, found.strict) == (0.5, 7, True)


def test_a_placeholder_that_resembles_a_number_is_text_if_text_is_expected(tmp_path: Path) -> None:
    assert load(GOOD, tmp_path, KEY="00417").service.api_key.get_secret_value() == "00417"


def test_settings_never_show_values_of_secrets(tmp_path: Path) -> None:
    text = with_source('{connector: rig, path: "${env:SECRET}", url: "rig:${env:SECRET}", password: "${env:SECRET}"}')
    text = text.replace("http://127.0.0.1:8400", "http://${env:SECRET}").replace(
        "label: Bench", "label: '${env:SECRET}'"
    )
    settings = load(text, tmp_path, SECRET="hunter22", KEY="hunter22")
    assert settings.service.url == "http://hunter22"
    assert "hunter22" not in repr(settings) + str(settings) + repr(settings.pipelines[0]) + repr(settings.service)


@pytest.mark.parametrize(
    "source",
    [
        '{connector: rig, path: drop, url: "${env:SECRET}"}',
        '{connector: rig, path: drop, url: "x${env:SECRET}", after: archive}',
        '{connector: rig, path: drop, settle_seconds: "${env:SECRET}"}',
        '{connector: rig, path: drop, after: "${env:SECRET}"}',
        '{connector: rig, path: drop, password: "${env:SHORT}"}',
        '{connector: "${env:SECRET}", path: drop}',
        '{connector: lax, depth: "${env:SECRET}"}',
        '{connector: faulty, depth: "${env:NUMBER}"}',
    ],
)
def test_no_message_quotes_a_secret(source: str, tmp_path: Path) -> None:
    found = mistakes(with_source(source), tmp_path, SECRET="hunter22", SHORT="hunt", NUMBER="77123")
    assert found
    assert not any(word in line for line in found for word in ("hunter22", "hunt", "77123"))


@pytest.mark.parametrize(
    "change",
    [
        ('url: "http://127.0.0.1:8400"', "url: '${env:SECRET}'"),
        ("name: bench", "name: '${env:SECRET}'"),
        ("label: Bench", "label: Bench, id: '${env:SECRET}', x: 1"),
        ('value: "{mass}"', "value: '${env:SECRET}'"),
        ('value: "{mass}"', "value: x, type: '${env:SECRET}'"),
        ("label: Bench}", "label: Bench}\n    schedule: '${env:SECRET}'"),
        ("label: Bench}", "label: Bench}\n    schedule: {every: '${env:SECRET}'}"),
        ("label: Bench}", "label: Bench}\n    schedule: {cron: '${env:SECRET}', timezone: '${env:SECRET}'}"),
    ],
)
def test_no_message_about_general_settings_quotes_a_secret(change: tuple[str, str], tmp_path: Path) -> None:
    found = mistakes(GOOD.replace(*change), tmp_path, SECRET="Hunter 22{")
    assert found
    assert not any("Hunter" in line for line in found)
    assert any("${env:SECRET}" in line or "x" in line for line in found)


def test_a_setting_of_a_secret_type_is_not_shown_even_if_the_file_contains_it(tmp_path: Path) -> None:
    text = GOOD.replace('"${env:KEY}"', "12345678")
    assert mistakes(text, tmp_path) == [
        "ingestd.yaml:1:50: service.api_key: Expected text, found a value that is not shown. Put it in quotes."
    ]


def test_a_reason_that_does_not_depend_on_the_secret_is_reported(tmp_path: Path) -> None:
    source = '{connector: rig, path: drop, after: archive, password: "${env:SECRET}"}'
    assert mistakes(with_source(source), tmp_path, SECRET="hunter22") == [
        "ingestd.yaml:5:13: pipelines[0].source: after: archive needs the folder 'archive'."
    ]


def test_a_reason_about_a_secret_address_is_reported_without_the_address(tmp_path: Path) -> None:
    source = '{connector: rig, path: drop, after: archive, url: "${env:ADDRESS}"}'
    address = "rig://reader:hunter22@vault.lab:5432/pdm"
    assert mistakes(with_source(source), tmp_path, ADDRESS=address) == [
        "ingestd.yaml:5:13: pipelines[0].source: after: archive needs the folder 'archive'."
    ]
    found = mistakes(with_source(source), tmp_path, ADDRESS="x" + address)
    assert not any(word in line for line in found for word in ("reader", "hunter", "vault", "5432", "pdm"))


def test_a_missing_variable_is_the_only_message_about_its_setting(tmp_path: Path) -> None:
    source = '{connector: rig, path: drop, url: "rig:${env:RIG_URI}", retries: "${env:NONE}"}'
    assert mistakes(with_source(source), tmp_path, RIG_URL="x") == [
        (
            "ingestd.yaml:5:52: pipelines[0].source.url: The environment variable RIG_URI is not set. "
            "Did you mean 'RIG_URL'?"
        ),
        "ingestd.yaml:5:79: pipelines[0].source.retries: The environment variable NONE is not set.",
    ]


def test_a_connector_that_cannot_watch_needs_a_schedule(tmp_path: Path) -> None:
    text = with_source("{connector: poll}")
    expected = "This source does not report changes, so it needs 'schedule: {every: 15m}' or a cron expression."
    assert mistakes(text, tmp_path) == [f"ingestd.yaml:4:5: pipelines[0]: {expected}"]
    assert mistakes(f"{text}    schedule: on-change\n", tmp_path) == [
        f"ingestd.yaml:8:15: pipelines[0].schedule: {expected}"
    ]
    assert load(f"{text}    schedule: {{every: 1h}}\n", tmp_path).pipelines[0].schedule == Every(seconds=3600)


def test_a_subscription_refuses_a_schedule_with_times(tmp_path: Path) -> None:
    text = with_source("{connector: subscribe}")
    refusal = "The messages between two runs would be lost. Remove the setting schedule."
    for schedule in ("{every: 15m}", '{cron: "0 2 * * *"}'):
        (found,) = mistakes(f"{text}    schedule: {schedule}\n", tmp_path)
        assert found.startswith("ingestd.yaml:8:15: pipelines[0].schedule")
        assert found.endswith(refusal)
    polled = with_source("{connector: subscribe, depth: 2}")
    for valid in (text, f"{text}    schedule: on-change\n", f"{polled}    schedule: {{every: 15m}}\n"):
        load(valid, tmp_path)


def test_a_pipeline_without_a_source_does_not_require_a_schedule(tmp_path: Path) -> None:
    second = "  - {name: two, entries: {key: a, value: b}, sink: {workspace: w, label: l}}\n"
    found = mistakes(f"{with_source('{connector: poll}')}    schedule: {{every: 1h}}\n{second}", tmp_path)
    assert found == [
        "ingestd.yaml:9:5: pipelines[1].source: The key 'source' is missing: The connector to read with, and its options."
    ]


def test_a_misspelled_connector_is_reported_at_the_key(tmp_path: Path) -> None:
    [line] = mistakes(with_source("{path: drop, conector: poll}"), tmp_path)
    assert line.startswith("ingestd.yaml:5:26: pipelines[0].source.connector: The key 'connector' is missing: ")
    assert line.endswith(" There is 'conector'. Did you mean 'connector'?")


def test_options_that_permit_unknown_keys_are_validated_nevertheless(tmp_path: Path) -> None:
    assert mistakes(with_source("{connector: lax, dept: 3}"), tmp_path) == [
        "ingestd.yaml:5:30: pipelines[0].source.dept: There is no key 'dept' here. Did you mean 'depth'?"
    ]


def test_a_connector_with_a_failing_validator_is_reported_without_a_crash(tmp_path: Path) -> None:
    [line] = mistakes(with_source("{connector: faulty, depth: 3}"), tmp_path)
    assert "The connector 'faulty' failed while it validated its options (KeyError)." in line


def test_a_mistake_in_a_template_is_reported_with_its_column(tmp_path: Path) -> None:
    text = GOOD.replace('key: "{part}.mass"', "key: 'it''s {part'")
    [line] = mistakes(text, tmp_path)
    column = text.splitlines()[5].index("{part'") + 1
    assert line.startswith(f"ingestd.yaml:6:{column}: pipelines[0].entries.key: '{{' has no '}}'")


def test_an_empty_secret_is_reported_as_empty(tmp_path: Path) -> None:
    # A command that failed, such as `workspaced keys create … > key`, leaves an empty file.
    (tmp_path / "key").write_text("\n")
    [line] = mistakes(GOOD.replace("${env:KEY}", "${file:key}"), tmp_path)
    assert "service.api_key: The value of ${file:key} is empty. Expected: The API key that the service issued" in line


def test_a_text_in_the_place_of_text_or_mapping_is_reported_once(tmp_path: Path) -> None:
    [line] = mistakes(re.sub(r'value: "[^"]*"', 'value: "{mass"', GOOD, count=1), tmp_path)
    assert line.endswith("entries.value: '{' has no '}'; write '{{' for the character itself.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1: Expected a mapping of keys to values, found nothing."),
        ("state: a\n", "service: The key 'service' is missing: The workspace service, and how the daemon reaches it."),
        (
            GOOD.partition("pipelines:")[0],
            "pipelines: The key 'pipelines' is missing: What is read, how records become entries, and the sinks that get them.",
        ),
        ("- a\n", "1:1: Expected a mapping of keys to values, found a list."),
        ("just text\n", "1:1: Expected a mapping of keys to values, found 'just text'."),
        (GOOD.replace("pipelines:", "pipelines: []\nx:"), "3:12: pipelines: Expected a list of 1 item or more"),
        (
            GOOD.replace('"${env:KEY}"', "k, connect_timeout_seconds: .inf"),
            "Expected a finite number, found the number",
        ),
        (
            GOOD.replace("label: Bench", "label: 00417"),
            'Expected text, found the number 00417. Put it in quotes: "00417".',
        ),
        (GOOD.replace("http://127.0.0.1", "http://me:pw@127.0.0.1"), "The address contains a user name or a password"),
        (GOOD.replace("http://127.0.0.1:8400", "localhost:8400"), "Expected the service's address"),
        (GOOD.replace("http://127.0.0.1:8400", "http://h:99999"), "Expected the service's address"),
        *(
            (
                GOOD.replace("http://127.0.0.1:8400", f"https://ui.example/api/{path}"),
                "is a path of the service itself. Write its address: https://ui.example/api",
            )
            for path in ("ui", "ui/", "ui/workspaces/1", "openapi.json")
        ),
        (
            GOOD.replace("http://127.0.0.1:8400", "https://h/ui-proxy/ui"),
            "'/ui' is a path of the service itself. Write its address: https://h/ui-proxy",
        ),
        (GOOD.replace("http://127.0.0.1:8400", r"https://h/\tui"), "Expected the service's address"),
        (GOOD.replace("http://127.0.0.1:8400", r"https://h/u\ti"), "Expected the service's address"),
        (GOOD.replace("name: bench", "name: Bench 3"), "Expected lower-case letters and digits"),
        (GOOD.replace('value: "{mass}"', "value: x, type: 3d"), "Expected a data type such as scalar"),
        (GOOD.replace('value: "{mass}"', "columns: [a, a]"), "With 'columns' the key must contain {column}"),
        (
            GOOD.replace('{part}.mass", value: "{mass}"', '{column}", columns: [a, a]'),
            "The column 'a' is listed twice.",
        ),
        (GOOD.replace("{key", "[] # {key"), "Expected at least one entry, found an empty list."),
        (GOOD + "    schedule: {}\n", "Expected on-change, {every: 15m} or"),
        (
            GOOD + "    schedule: {every: 15}\n",
            "Expected a duration with its unit, such as 15m or 90s; found the number 15.",
        ),
        (GOOD + "    schedule: {every: 0s}\n", "Expected a duration from 1s to 366d, found '0s'."),
        (GOOD + "    schedule: {every: 15 min}\n", "Expected a duration such as 15m, 90s or 1h30m"),
        (GOOD + "    schedule: {cron: 0 2 * *}\n", "Expected five fields"),
        (GOOD + '    schedule: {cron: "0 2 * * *", timezone: ../../etc/passwd}\n', "There is no time zone"),
    ],
)
def test_a_mistake_says_what_was_expected(text: str, expected: str, tmp_path: Path) -> None:
    assert any(expected in line for line in mistakes(text, tmp_path)), mistakes(text, tmp_path)


def test_an_unreadable_file_is_reported_in_one_sentence(tmp_path: Path) -> None:
    def sentence(path: Path) -> str:
        with pytest.raises(ConfigurationError) as caught:
            load_settings(path, options_of=options_of, environment={})
        return str(caught.value)

    assert sentence(tmp_path / "none.yaml") == f"{tmp_path}/none.yaml: There is no such file."
    assert sentence(tmp_path) == f"{tmp_path}: The file can't be read: is a directory."
    (tmp_path / "large.yaml").write_text("#" * (MAX_FILE_BYTES + 1))
    assert sentence(tmp_path / "large.yaml").endswith(f"it is larger than {MAX_FILE_BYTES} bytes.")


def test_invalid_utf8_is_reported_with_its_location(tmp_path: Path) -> None:
    assert mistakes(b"state: a\n# \xc2\xb5 caf\xe9\n", tmp_path) == [
        "ingestd.yaml:2:8: The file is not UTF-8 text. Save it as UTF-8."
    ]


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    assert load(b"\xef\xbb\xbf" + GOOD.encode(), tmp_path).pipelines[0].name == "bench"


def test_the_configuration_file_is_searched_in_the_documented_order(tmp_path: Path) -> None:
    system = tmp_path / "system.yaml"
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    with pytest.raises(ConfigurationError) as caught:
        find_configuration(None, {}, cwd, system=system)
    assert "--config" in str(caught.value)
    assert "INGESTD_CONFIG" in str(caught.value)
    assert str(cwd / "ingestd.yaml") in str(caught.value)
    assert str(system) in str(caught.value)
    system.touch()
    assert find_configuration(None, {}, cwd, system=system) == system
    (cwd / "ingestd.yaml").touch()
    assert find_configuration(None, {}, cwd, system=system) == cwd / "ingestd.yaml"
    named = {"INGESTD_CONFIG": "other.yaml"}
    assert find_configuration(None, named, cwd, system=system) == cwd / "other.yaml"
    assert find_configuration(Path("mine.yaml"), named, cwd, system=system) == Path("mine.yaml")


def test_a_host_name_becomes_a_valid_client_id() -> None:
    assert client_id_of("bench-3.lab") == "bench-3.lab"
    assert client_id_of("prüf platz") == "pr-f-platz"
    assert client_id_of("") == "ingestd"
    assert len(client_id_of("x" * 200)) == 128


def test_settings_can_be_created_without_a_file() -> None:
    pipeline = PipelineSettings(
        name="a",
        source=SourceSettings(connector="rig", options=RigOptions(path=Path("drop"))),
        entries=(EntrySpec(key="{a}", value="{b}"),),
        sink=SinkAddress(workspace="w", by="label", name="l"),
    )
    service = ServiceSettings.model_validate({"url": "http://h", "api_key": "k"})
    settings = Settings(service=service, state=Path("s"), pipelines=(pipeline,))
    assert settings.pipelines[0].source.options == RigOptions(path=Path("drop"))
    with pytest.raises(ValueError, match="Two pipelines have the same name"):
        Settings(service=service, state=Path("s"), pipelines=(pipeline, pipeline))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("state: var/ingestd.db\nunknown: {", None),
        ("state: var/ingestd.db\nunknown: 1", "var/ingestd.db"),
        ("state: ${env:FOLDER}/a.db", "/srv/a.db"),
        ("state: ${env:MISSING}/a.db", None),
        ("state: [a.db]", None),
        ("state: 7", None),
        ("service: {}", None),
        ("- state", None),
    ],
)
def test_the_path_of_the_state_file_is_read_without_the_other_settings(
    text: str, expected: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "ingestd.yaml"
    path.write_text(text)
    if text.endswith("{"):
        with pytest.raises(ConfigurationError, match=r"ingestd\.yaml"):
            read_state_path(path, {})
    else:
        assert read_state_path(path, {"FOLDER": "/srv"}) == (None if expected is None else tmp_path / expected)
