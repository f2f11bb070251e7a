"""The command ``workspaced workspaces``."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

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


def test_a_workspace_is_created_while_the_service_runs_with_its_audit_rows_and_events(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = new_key(data)
    with WorkspaceService(data, "--dev") as service, service.client(key) as http:
        hook = http.post("/v1/webhooks", json={"url": "http://127.0.0.1:9999/", "dataEvents": ["workspace.created"]})
        assert hook.status_code == 201, hook.text
        header, line = workspaced("workspaces", "create", " Rover ", "--data", str(data)).stdout.splitlines()
        assert header.split() == ["ID", "LABEL"]
        workspace, label = line.split()
        record = http.get(f"/v1/workspace/{workspace}").json()
        assert (label, record["label"], record["createdBy"]) == ("Rover", "Rover", "system")
        assert http.get(f"/v1/workspace/{workspace}/blocks").json()[0]["id"] == record["rootBlock"]
        log = http.get(f"/v1/audit-log?workspaceId={workspace}&sortOrder=ASC").json()
        assert [(row["action"], row["principal"]) for row in log] == [
            ("workspace.created", "system"),
            ("block.created", "system"),
        ]
        (sent,) = http.get(f"{hook.headers['location']}/deliveries").json()
        assert (sent["type"], sent["workspaceId"]) == ("workspace.created", workspace)


@pytest.mark.parametrize(
    ("label", "code", "sentence"),
    [
        (" Ro\u0301ver", 1, "A workspace has the label 'Róver' already: "),
        (" ", 2, "The label can't be blank."),
        ("a\nb", 2, "The label may not hold control characters."),
        ("x" * 256, 2, "The label may have 255 characters at the most."),
    ],
)
def test_a_label_that_is_in_use_or_that_the_interface_refuses_creates_no_workspace(
    tmp_path: Path, label: str, code: int, sentence: str
) -> None:
    made = workspaced("workspaces", "create", "Róver", "--json", "--data", str(tmp_path))
    workspace = json.loads(made.stdout)
    assert workspace == {"id": workspace["id"], "label": "Róver"}
    refused = workspaced("workspaces", "create", label, "--data", str(tmp_path))
    assert (refused.returncode, refused.stdout) == (code, "")
    assert refused.stderr.startswith(f"workspaced: {sentence}")
    assert (workspace["id"] in refused.stderr) == (code == 1)
    assert len(workspaced("workspaces", "list", "--json", "--data", str(tmp_path)).stdout.splitlines()) == 1


def test_a_new_workspace_and_a_new_key_obey_the_configured_limits(tmp_path: Path) -> None:
    short, wrong = {"WORKSPACED_LABEL_LENGTH": "8"}, {"WORKSPACED_LABEL_LENGTH": "many"}
    create = "workspaces", "create", "Rover mission", "--data", str(tmp_path)
    refused = workspaced(*create, environment=short)
    assert (refused.returncode, refused.stderr) == (2, "workspaced: The label may have 8 characters at the most.\n")
    create_key = "keys", "create", "svc:mission", "--role", "owner", "--data", str(tmp_path)
    refused = workspaced(*create_key, environment=short)
    assert (refused.returncode, "1 to 8 characters" in refused.stderr) == (2, True)
    for command in (create, create_key):
        refused = workspaced(*command, environment=wrong)
        assert (refused.returncode, "WORKSPACED_LABEL_LENGTH" in refused.stderr) == (78, True)
        assert workspaced(*command).returncode == 0


def test_a_workspace_that_cannot_be_restored_is_reported(tmp_path: Path) -> None:
    unknown = str(uuid.uuid4())
    assert workspaced("migrate", "--data", str(tmp_path)).returncode == 0
    refused = workspaced("workspaces", "restore", unknown, "--data", str(tmp_path))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"workspaced: There is no workspace {unknown}, deleted or not. `workspaced")
    wrong = workspaced("workspaces", "restore", "SNK-1", "--data", str(tmp_path))
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "workspaced: 'SNK-1' is not the id of a workspace: it must be a UUID. `workspaced workspaces list` shows the ids.\n",
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
