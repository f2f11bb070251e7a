"""``workspaced workspaces``, as a person uses it."""

from __future__ import annotations

import uuid
from pathlib import Path

from tests.support.workspaced_process import WorkspaceService, new_key, workspaced


def test_a_deleted_workspace_is_listed_and_restored_while_the_service_runs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = new_key(data)
    with WorkspaceService(data) as service, service.client(key) as http:
        kept = http.post("/v1/workspace", json={"label": "Kept"}).json()["id"]
        gone = http.post("/v1/workspace", json={"label": "Gone"}).json()["id"]
        assert http.delete(f"/v1/workspace/{gone}").status_code == 200
        everything = workspaced("workspaces", "list", "--data", str(data)).stdout.splitlines()
        assert [line.split("\t")[:2] for line in everything] == [[kept, "Kept"], [gone, "Gone"]]
        assert [line.split("\t")[3].split(" ")[0] for line in everything] == ["active", "deleted"]
        deleted = workspaced("workspaces", "list", "--deleted", "--data", str(data)).stdout.splitlines()
        assert deleted == everything[1:]
        restored = workspaced("workspaces", "restore", gone.upper(), "--data", str(data))
        assert (restored.returncode, restored.stdout) == (0, f"{gone} is restored.\n")
        assert http.get(f"/v1/workspace/{gone}").json()["label"] == "Gone"
        newest = http.get("/v1/audit-log?take=1").json()[0]
        assert (newest["action"], newest["principal"], newest["resourceId"]) == ("workspace.restored", "system", gone)


def test_what_can_not_be_restored_is_a_sentence(tmp_path: Path) -> None:
    unknown = str(uuid.uuid4())
    refused = workspaced("workspaces", "restore", unknown, "--data", str(tmp_path))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"workspaced: There is no workspace {unknown}, deleted or not. `workspaced")
    wrong = workspaced("workspaces", "restore", "SNK-1", "--data", str(tmp_path))
    assert (wrong.returncode, wrong.stderr) == (2, "workspaced: 'SNK-1' is no workspace's id: it must be a UUID.\n")
