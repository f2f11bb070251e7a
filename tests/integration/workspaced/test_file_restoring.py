"""Only the operator of the service restores deleted files (contract G25)."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.cloud_files import FILES, CloudFiles
from tests.support.workspaced_process import WorkspaceService, new_key, workspaced
from workspaced.core.problems import ConflictProblem, NotFoundProblem
from workspaced.resources.cloud_storage.retention import every_file, restore
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.factory import transact


@pytest.fixture
def files(http: httpx.AsyncClient, workspace: dict[str, Any]) -> CloudFiles:
    return CloudFiles(http=http, workspace=workspace["id"])


def _restore(settings: WorkspacedSettings, file: str) -> None:
    transact(settings.database, lambda tx: restore(tx, file, now=time.time_ns() // 1_000_000))


async def _delete(files: CloudFiles, file: str) -> None:
    response = await files.http.delete(f"{FILES}/{file}", params={"workspaceId": files.workspace})
    assert response.status_code == 200


@pytest.mark.both_databases
async def test_a_restored_file_has_its_versions_and_conversion_and_its_workspace_shows_it(
    files: CloudFiles, settings: WorkspacedSettings
) -> None:
    first = await files.upload("masses.csv", b"a,b\n1,2\n")
    second = await files.upload("masses.csv", b"a,b\n1,3\n", id=first["id"])
    await files.conversion(first["id"], "succeeded")
    path = f"/v1/workspace/{files.workspace}"
    whole = (await files.http.get(path)).json()
    await _delete(files, first["id"])
    without = await files.http.get(path)
    _restore(settings, first["id"])
    again = await files.http.get(path)
    assert {**again.json(), "updatedAt": ""} == {**whole, "updatedAt": ""}
    assert again.headers["ETag"] != without.headers["ETag"]
    assert await files.content(first["id"]) == b"a,b\n1,3\n"
    assert await files.content(first["id"], versionId=first["versionId"]) == b"a,b\n1,2\n"
    record = await files.record(first["id"])
    assert (record["versionId"], record["conversion"]["state"]) == (second["versionId"], "succeeded")
    newest = (await files.http.get("/v1/audit-log?take=1")).json()[0]
    assert (newest["action"], newest["principal"]) == ("cloud_storage.file.restored", "system")


async def test_a_conversion_that_the_deletion_stopped_continues(
    files: CloudFiles, settings: WorkspacedSettings
) -> None:
    file = await files.upload("masses.csv", b"a,b\n1,2\n")
    await _delete(files, file["id"])
    _restore(settings, file["id"])
    assert (await files.conversion(file["id"]))["state"] == "succeeded"


async def test_an_unrestorable_file_is_reported_with_the_reason(
    files: CloudFiles, settings: WorkspacedSettings
) -> None:
    there, gone = await files.upload("a.bin"), await files.upload("b.bin")
    await _delete(files, gone["id"])
    with pytest.raises(NotFoundProblem, match="There is no file"):
        _restore(settings, str(uuid.uuid4()))
    with pytest.raises(ConflictProblem, match="is not deleted"):
        _restore(settings, there["id"])
    assert (await files.http.delete(f"/v1/workspace/{files.workspace}")).status_code == 200
    with pytest.raises(ConflictProblem, match="Restore that first: `workspaced workspaces restore"):
        _restore(settings, gone["id"])


@pytest.mark.both_databases
async def test_all_files_are_listed_with_their_state_also_by_workspace(
    files: CloudFiles, settings: WorkspacedSettings
) -> None:
    there, announced = await files.upload("a.bin", b"12345"), await files.link("later.bin")
    known = transact(settings.database, every_file)
    assert {(file.id, file.size, file.versions) for file in known} == {(there["id"], 5, 1), (announced["id"], 0, 0)}
    assert transact(settings.database, lambda tx: every_file(tx, workspace_id=str(uuid.uuid4()))) == []
    assert transact(settings.database, lambda tx: every_file(tx, workspace_id=files.workspace)) == known


def test_the_commands_list_and_restore_while_the_service_runs(tmp_path: Path) -> None:
    # contract G25
    data = tmp_path / "data"
    key = new_key(data)
    where = ("--data", str(data))
    with WorkspaceService(data) as service, service.client(key) as http:
        workspace = http.post("/v1/workspace", json={"label": "Rocket"}).json()["id"]
        params = {"workspaceId": workspace, "fileName": "a.bin"}
        file = http.post(FILES, params=params, content=b"12345").json()["id"]
        (header,) = workspaced("files", "list", "--deleted", *where).stdout.splitlines()
        assert header.split() == ["ID", "WORKSPACE", "NAME", "BYTES", "CREATED", "DELETED", "STATE"]
        assert workspaced("files", "list", "--deleted", "--json", *where).stdout == ""
        http.delete(f"{FILES}/{file}", params={"workspaceId": workspace})
        _, line = workspaced("files", "list", "--deleted", "--workspace", workspace, *where).stdout.splitlines()
        assert line.split()[:4] == [file, workspace, "a.bin", "5"]
        assert line.endswith("  deleted")
        (listed,) = map(json.loads, workspaced("files", "list", "--json", *where).stdout.splitlines())
        assert (listed["bytes"], listed["state"]) == (5, "deleted")
        restored = workspaced("files", "restore", file.upper(), *where)
        assert (restored.returncode, restored.stdout) == (0, f"{file} is restored.\n")
        assert http.get(f"{FILES}/download/{file}").content == b"12345"
        refused = workspaced("files", "restore", file, *where)
        assert refused.returncode == 1
        assert refused.stderr.startswith(f"workspaced: File {file} is not deleted. `workspaced files list --deleted`")
    wrong = workspaced("files", "restore", "a.bin", *where)
    assert wrong.returncode == 2
    assert wrong.stderr.endswith(
        " is not the id of a file: it must be a UUID. `workspaced files list` shows the ids.\n"
    )
