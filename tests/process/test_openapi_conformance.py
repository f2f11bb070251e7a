"""schemathesis, with all its checks, against the running service and its own document (contract G23)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.postgres_databases import databases
from tests.support.sample_workspace import create_sample_workspace
from tests.support.workspaced_process import DEADLINE_SECONDS, WorkspaceService, workspaced

ROOT = Path(__file__).parents[2]
CONFIGURATION = ROOT / "tests" / "support" / "conformance" / "schemathesis.toml"
EXAMPLES = 6  # fewer follow no link of the document
TIMEOUT_SECONDS = 570


@pytest.fixture
def database() -> Iterator[dict[str, str]]:
    """Return the environment for PostgreSQL, which refuses more values than SQLite; all other tests of HTTP use SQLite."""
    with databases() as made, made.migrated() as url:
        yield {"WORKSPACED_DATABASE_URL": url}


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_SECONDS + 30)
def test_no_generated_request_gets_a_failure_or_an_undocumented_response(
    tmp_path: Path, database: dict[str, str]
) -> None:
    data = tmp_path / "data"
    environment = {**database, "WORKSPACED_FAILED_AUTHENTICATIONS_PER_MINUTE": "0"}
    made = workspaced("keys", "create", "svc:test", "--role", "owner", "--data", str(data), environment=environment)
    key = made.stdout.strip()
    with WorkspaceService(data, environment=environment) as service:
        sample = asyncio.run(_world(service.url, key))
        words = (
            "--config-file",
            str(CONFIGURATION),
            "run",
            f"{service.url}/openapi.json",
            "--max-examples",
            str(EXAMPLES),
        )
        ran = subprocess.run(
            [Path(sys.executable).with_name("schemathesis"), *words, "--no-color"],
            cwd=ROOT,
            env={**os.environ, "WORKSPACED_TEST_KEY": key, "WORKSPACED_TEST_WORLD": json.dumps(sample)},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        responded = [event for event in service.events if event["event"] == "request_handled"]
    shortened = re.sub(r"(%[0-9A-F]{2}){100,}", "%…", ran.stdout)
    assert ran.returncode == 0, shortened[-20_000:] + ran.stderr[-2_000:]
    assert not [event for event in responded if event["status"] >= 500]
    assert {event["status"] for event in responded} >= {400, 401, 403, 404, 405, 409, 415, 422}


async def _world(url: str, key: str) -> dict[str, str]:
    """Return one resource of each kind, as the hooks need it."""
    headers = {"x-api-key": key, "ClientId": "tests"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=DEADLINE_SECONDS) as http:
        made = await create_sample_workspace(http, tried=True)
    return {
        "/v1/workspace/{id}": made.workspace,
        "/v1/workspace/{workspaceId}/blocks/": made.block,
        "/v1/cloud-storage/": made.file,
        "/v1/webhooks/": made.webhook,
        "workspaceId": made.workspace,
        "dataSinkId": made.sink,
        "key": made.key,
        "deliveryId": made.delivery,
    }
