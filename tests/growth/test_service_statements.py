"""SQLite's plan of every statement of the service: no scan, no sorting and no loose search of growing tables."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

import workspaced
from workspaced.storage.sqlite_store import open_database
from workspaced.storage.statements import load_statements

_ROOT = Path(workspaced.__file__).parent
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
_BOUNDED_SCAN = re.compile(
    r"SCAN (CONSTANT ROW|staged_change|requested|walked|up|down"
    r"|(count|size) VIRTUAL TABLE INDEX 0:|numbers VIRTUAL TABLE INDEX 1:)$"
)
# A search by owner only, or by time only, finds all rows of the owner or all older rows. A webhook has at most five secrets.
_LOOSE = re.compile(
    r"USING (?:COVERING )?INDEX (?!webhook_secret)\w+ \((?:(?:sink|<expr>|webhook|workspace|workspace_id|principal)=\?"
    r"|(?:(?:workspace_id)=\? AND )?(?:at|created_at|deleted_at|expires_at|due_at)[<>]\?(?: AND at<\?)?)\)"
)

_OF_POSTGRES: Final = {"rate_buckets.sql"}
"""Statements for tables that SQLite does not have."""
_OWN_SIZE: Final = "it returns all that it finds, as its operation is documented to"
_OF_WEBHOOKS: Final = "one row for each enabled webhook. An owner has at most 50; nothing of their deliveries"
_OF_TREE: Final = "the blocks of one workspace, which a quota bounds, are what its operation is about"
_WALK: Final = "it sorts what a page passed over, which a limit bounds"
_CHECK: Final = "it is the check of a reference: the first row ends it, and there is none"
_OPERATOR: Final = "an operator's command or the start asks it, no request"
_STAGED: Final = "it passes over the items of one request"
_SMALL_SINKS: Final = "it is executed for sinks of bounded size only (`entry_pages.read_entries`)"
_STEP: Final = "a step of a job examines a thousand changes and the kept ones of their keys"
_WALK_STEP: Final = "a step of a job reads ten thousand rows by their numbers, and groups these"
_FIRST: Final = "LIMIT 1 ends it at the first row"
_PARTIAL: Final = "the index is partial and has only waiting rows"

ALLOWED: Final[Mapping[str, str]] = {
    "resources/webhooks/queries.sql:disabled_for": "once at a start; webhooks are few",
    "security/key_store.sql:grants_of_guest": "a guest's grant on all workspaces is one on each of them",
    "security/key_store.sql:keys_named": _OPERATOR,
    "security/key_store.sql:list_keys": _OWN_SIZE,
    "security/key_store.sql:purge_grants": "a job asks it once for each workspace that is purged",
    "security/audit_log.sql:newest_first": _WALK,
    "security/audit_log.sql:newest_first_of_workspace": _WALK,
    "security/audit_log.sql:oldest_first": _WALK,
    "security/audit_log.sql:oldest_first_of_workspace": _WALK,
    "resources/blocks/queries.sql:path": _OF_TREE,
    "resources/blocks/queries.sql:places": _OF_TREE,
    "resources/blocks/queries.sql:subtree": _OF_TREE,
    "resources/cloud_storage/conversions.sql:limit_wait": _PARTIAL,
    "resources/cloud_storage/conversions.sql:next_due": _PARTIAL,
    "resources/cloud_storage/queries.sql:count_files": "the files of one workspace, which a quota bounds",
    "resources/cloud_storage/queries.sql:dropped": "the table has only the names of bytes that are being deleted",
    "resources/cloud_storage/queries.sql:list_files": _OWN_SIZE,
    "resources/cloud_storage/queries.sql:sum_bytes": "the files of one workspace, which a quota bounds",
    "resources/cloud_storage/queries.sql:all_files": _OPERATOR,
    "resources/data_sinks/entry_pages.sql:count": _SMALL_SINKS,
    "resources/data_sinks/entry_pages.sql:created_asc_filter": _WALK,
    "resources/data_sinks/entry_pages.sql:created_desc_filter": _WALK,
    "resources/data_sinks/entry_pages.sql:key_asc_filter": _WALK,
    "resources/data_sinks/entry_pages.sql:key_desc_filter": _WALK,
    "resources/data_sinks/entry_pages.sql:created_asc_search": _WALK,
    "resources/data_sinks/entry_pages.sql:created_desc_search": _WALK,
    "resources/data_sinks/entry_pages.sql:key_asc_search": _WALK,
    "resources/data_sinks/entry_pages.sql:key_desc_search": _WALK,
    "resources/data_sinks/entry_pages.sql:author_asc": _SMALL_SINKS,
    "resources/data_sinks/entry_pages.sql:author_desc": _SMALL_SINKS,
    "resources/data_sinks/entry_pages.sql:natural_asc": _SMALL_SINKS,
    "resources/data_sinks/entry_pages.sql:natural_desc": _SMALL_SINKS,
    "resources/data_sinks/entry_pages.sql:type_asc": _SMALL_SINKS,
    "resources/data_sinks/entry_pages.sql:type_desc": _SMALL_SINKS,
    "resources/data_sinks/entry_pages.sql:value_asc": _SMALL_SINKS,
    "resources/data_sinks/entry_pages.sql:value_desc": _SMALL_SINKS,
    "resources/data_sinks/entry_pages.sql:updated_asc": _SMALL_SINKS,
    "resources/data_sinks/entry_pages.sql:updated_desc": _SMALL_SINKS,
    "resources/data_sinks/history.sql:changed_sinks": _STEP,
    "resources/data_sinks/history.sql:differences": _WALK,
    "resources/data_sinks/history.sql:drop_excess": _STEP,
    "resources/data_sinks/origins.sql:walk_changes": _WALK_STEP,
    "resources/data_sinks/origins.sql:walk_entries": _WALK_STEP,
    "resources/data_sinks/queries.sql:any_deleted_sink": _FIRST,
    "resources/data_sinks/queries.sql:compare_stage": _STAGED,
    "resources/data_sinks/queries.sql:delete_stage": _STAGED,
    "resources/data_sinks/queries.sql:deleted_sink": _FIRST,
    "resources/data_sinks/queries.sql:entries_of_stage": _STAGED,
    "resources/data_sinks/queries.sql:list_entries": _OWN_SIZE,
    "resources/data_sinks/queries.sql:list_sinks": "the sinks of one workspace, which a quota bounds",
    "resources/data_sinks/queries.sql:record_stage": _STAGED,
    "resources/data_sinks/queries.sql:remove_sink": _CHECK,
    "resources/data_sinks/queries.sql:upsert_stage": _STAGED,
    "resources/data_sinks/queries.sql:upsert_stage_returning": _STAGED,
    "events/queries.sql:any_enabled_webhook": _FIRST,
    "events/queries.sql:any_fan_out": _FIRST,
    "events/queries.sql:enabled_webhooks": _OF_WEBHOOKS,
    "events/queries.sql:first_fan_out": _FIRST,
    "events/queries.sql:scopes_of_live_keys": "the keys of one principal are what it asks for",
    "events/queries.sql:waiting_webhooks": _OF_WEBHOOKS,
    "ui/sessions.sql:drop_ended": "a job drops the sessions that have ended, which last for hours",
    "storage/idempotency.sql:drop_expired": "LIMIT 2 ends it",
    "storage/schema.sql:has_steps": "it reads the names of the tables",
    "telemetry/levels.sql:open_conversions": _PARTIAL,
    "telemetry/levels.sql:waiting_deliveries": _PARTIAL,
    "telemetry/levels.sql:waiting_events": "the table has only waiting rows",
    "telemetry/levels.sql:webhooks": "it counts webhooks. An owner has at most 50",
    "resources/webhooks/deliveries.sql:limit_first_attempts": _PARTIAL,
    "resources/webhooks/deliveries.sql:next_due": _OF_WEBHOOKS,
    "resources/webhooks/deliveries.sql:webhooks_due_again": _OF_WEBHOOKS,
    "resources/webhooks/deliveries.sql:webhooks_waiting": _OF_WEBHOOKS,
    "resources/webhooks/queries.sql:any_deleted_webhook": _FIRST,
    "resources/webhooks/queries.sql:deleted_webhook": _FIRST,
    "resources/webhooks/deliveries.sql:list_deliveries": _WALK,
    "resources/webhooks/queries.sql:drop_fan_outs": "the table has only waiting rows",
    "resources/webhooks/queries.sql:insert_webhook": _CHECK,
    "resources/webhooks/queries.sql:list_webhooks": "it returns the webhooks of an owner, at most 50; an admin gets all",
    "resources/webhooks/queries.sql:remove_webhook": _CHECK,
    "resources/webhooks/queries.sql:sealed_secrets": _OPERATOR,
    "resources/webhooks/queries.sql:sealed_texts": _OPERATOR,
    "resources/workspaces/queries.sql:all_workspaces": _OPERATOR,
    "resources/writer_leases/queries.sql:count": "a principal has at most 100 leases",
    "storage/writers.sql:raise_everywhere": "a take-over raises the epoch in all workspaces",
    "resources/workspaces/queries.sql:attachment_ids": _OWN_SIZE,
    "resources/workspaces/queries.sql:block_ids": _OWN_SIZE,
    "resources/workspaces/queries.sql:due": "a job reads the expired workspaces",
    "resources/workspaces/queries.sql:list_workspaces": _OWN_SIZE,
    "resources/workspaces/queries.sql:purge_workspace": _CHECK,
}
"""Statements that may read more than a few rows, with the reason."""


def statements() -> Iterator[tuple[str, str]]:
    """Return name and text of every statement that SQLite plans; an INSERT of given rows has no plan."""
    for file in sorted(_ROOT.rglob("*.sql")):
        if "migrations" in file.parts or file.name.endswith(".postgres.sql") or file.name in _OF_POSTGRES:
            continue
        place = file.relative_to(_ROOT)
        package = ".".join((_ROOT.name, *place.parent.parts))
        for name, statement in load_statements(package, file.name).items():
            if not (statement.rstrip().endswith("VALUES") or "CREATE TEMP TABLE" in statement):
                yield f"{place.as_posix()}:{name}", str(statement)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    with open_database(tmp_path_factory.mktemp("plans") / "workspaced.db") as connection:
        connection.execute(load_statements("workspaced.resources.data_sinks", "queries.sql")["make_stage"])
        yield connection


def growing_steps(database: sqlite3.Connection, statement: str) -> list[str]:
    """Return the steps of the plan with work that grows with the stored data."""
    values = dict.fromkeys(_PARAMETER.findall(statement))
    plan = [str(row[3]) for row in database.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
    loose_is_cut = "LIMIT" in statement
    return [
        step
        for step in plan
        if (step.startswith("SCAN ") and not _BOUNDED_SCAN.match(step))
        or step.startswith("USE TEMP B-TREE")
        or " AUTOMATIC " in step
        or (_LOOSE.search(step) and not loose_is_cut)
    ]


@pytest.mark.parametrize(("name", "statement"), [pytest.param(*one, id=one[0]) for one in statements()])
def test_no_statement_scans_growing_tables(database: sqlite3.Connection, name: str, statement: str) -> None:
    found = growing_steps(database, statement)
    assert not found or name in ALLOWED, found
    # Newer versions of SQLite see that what a page passed over is sorted already.
    assert found or ALLOWED.get(name) in {None, _WALK}, "It is allowed what it does not do."


def test_every_exception_is_an_existing_statement() -> None:
    assert ALLOWED.keys() <= {name for name, _ in statements()}


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM data_sink_entry",
        "SELECT number FROM data_sink_entry WHERE sink + 0 = :sink ORDER BY created_at LIMIT 1",
        "SELECT count(*) FROM delivery WHERE webhook = :webhook",
        "SELECT count(*) FROM audit_row WHERE at >= :from AND at < :to",
        "DELETE FROM event WHERE created_at < :before",
        "DELETE FROM data_sink_entry WHERE sink = :sink",
    ],
)
def test_a_full_scan_is_detected(database: sqlite3.Connection, statement: str) -> None:
    assert growing_steps(database, statement)
