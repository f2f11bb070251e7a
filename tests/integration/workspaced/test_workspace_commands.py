"""The command ``workspaced workspaces``."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from tests.support.workspaced_process import WorkspaceService, new_key, workspaced


def test_a_deleted_workspace_is_listed_and_restored_while_the_service_runs(tmp_path: Path) -> None:
    # contract G25
    data = tmp_path / "data"
    key = new_key(data)
    with WorkspaceService(data) as service, service.client(key) as http:
        kept = http.post("/v1/workspace", json={"label": "Kept"}).json()["id"]
        gone = http.post("/v1/workspace", json={"label": "Gone"}).json()["id"]
        assert http.delete(f"/v1/workspace/{gone}").status_code == 200
        header, *everything = workspaced("workspaces", "list", "--data", str(data)).stdout.splitlines()
        assert header.split() == ["ID", "LABEL", "CREATED", "DELETED", "STATE"]
        assert [line.split()[:2] for line in everything] == [[kept, "Kept"], [gone, "Gone"]]
        assert [line.split()[-2:][0] == "never" for line in everything] == [True, False]
        assert [line.split()[-1] for line in everything] == ["active", "deleted"]
        deleted = workspaced("workspaces", "list", "--deleted", "--json", "--data", str(data)).stdout
        assert (json.loads(deleted)["id"], json.loads(deleted)["state"]) == (gone, "deleted")
        restored = workspaced("workspaces", "restore", gone.upper(), "--data", str(data))
        assert (restored.returncode, restored.stdout) == (0, f"{gone} is restored.\n")
        assert http.get(f"/v1/workspace/{gone}").json()["label"] == "Gone"
        newest = http.get("/v1/audit-log?take=1").json()[0]
        assert (newest["action"], newest["principal"], newest["resourceId"]) == ("workspace.restored", "system", gone)


def test_a_workspace_that_cannot_be_restored_is_reported(tmp_path: Path) -> None:
    unknown = str(uuid.uuid4())
    refused = workspaced("workspaces", "restore", unknown, "--data", str(tmp_path))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"workspaced: There is no workspace {unknown}, deleted or not. `workspaced")
    wrong = workspaced("workspaces", "restore", "SNK-1", "--data", str(tmp_path))
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "workspaced: 'SNK-1' is not the id of a workspace: it must be a UUID.\n",
    )


def test_a_key_for_a_guest_is_created_by_command_and_commands_are_in_the_audit_log(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = new_key(data)
    made = workspaced("keys", "create", "visitor", "--role", "reader", "--guest", "--data", str(data))
    guest = made.stdout.strip()
    rotated = workspaced("keys", "rotate", "visitor", "--data", str(data)).stdout.strip()
    with WorkspaceService(data) as service, service.client(key) as http, service.client(rotated) as visitor:
        workspace = http.post("/v1/workspace", json={"label": "Closed"}).json()["id"]
        assert visitor.get(f"/v1/workspace/{workspace}").status_code == 403
        assert http.get(f"/v1/api-keys/{guest[4:12]}").json()["guest"] is True
        log = http.get("/v1/audit-log?action=api_key.*&sortOrder=ASC").json()
    assert [(row["action"], row["resourceId"], row["principal"]) for row in log] == [
        ("api_key.created", key[4:12], "system"),
        ("api_key.created", guest[4:12], "system"),
        ("api_key.rotated", guest[4:12], "system"),
    ]


def test_an_invalid_setting_or_one_that_differs_from_the_first_start_is_reported(tmp_path: Path) -> None:
    words = ("serve", "--data", str(tmp_path / "data"), "--port", "0")
    for name, value in (("VISIBLE_ID_PREFIX", "S-1"), ("TRUSTED_PROXIES", "nowhere"), ("REQUESTS_PER_MINUTE", "-1")):
        refused = workspaced(*words, environment={f"WORKSPACED_{name}": value})
        assert refused.returncode == 78
        assert f"WORKSPACED_{name}" in refused.stderr
    with WorkspaceService(tmp_path / "data", environment={"WORKSPACED_VISIBLE_ID_PREFIX": "BUD"}):
        pass
    refused = workspaced(*words, environment={"WORKSPACED_VISIBLE_ID_PREFIX": "SNK"})
    assert refused.returncode == 78
    assert "this data was created with 'BUD'" in refused.stderr
