"""A backup during operation, and a service that uses the restored data."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import httpx

from tests.support.postgres_databases import Databases
from tests.support.workspaced_process import WorkspaceService, new_key, workspaced

_BYTES = b"mass,kg\n" * 1_000


def _filled(http: httpx.Client) -> tuple[str, str]:
    """Create a sink with entries, and a file; return the paths of the sink and of the file's bytes."""
    workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]
    sink = str(http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"}).headers["Location"])
    items = [{"key": f"k{number}", "value": str(number)} for number in range(500)]
    assert http.post(f"{sink}/mass", json=items).status_code == 200
    made = http.post(
        "/v1/cloud-storage",
        params={"workspaceId": workspace, "fileName": "budget.bin"},
        content=_BYTES,
        headers={"Content-Type": "application/octet-stream"},
    )
    assert made.status_code == 201, made.text
    return sink, f"/v1/cloud-storage/download/{made.json()['id']}"


def _keys(http: httpx.Client, sink: str) -> set[str]:
    return {entry["key"] for entry in http.get(sink).json()["entries"]}


def test_a_restore_has_exactly_the_state_of_the_backup(tmp_path: Path) -> None:
    # contract P7
    data, copy = tmp_path / "data", tmp_path / "backups" / "monday"
    key = new_key(data)
    with WorkspaceService(data) as service, service.client(key) as http:
        sink, download = _filled(http)
        made = workspaced("backup", str(copy), "--data", str(data))
        assert (made.returncode, made.stderr) == (0, "")
        assert http.post(f"{sink}/mass", json={"key": "later", "value": "1"}).status_code == 200
    assert copy.stat().st_mode & 0o077 == 0
    assert [path.name for path in copy.iterdir() if path.is_file()] == ["workspaced.db"]
    assert list(copy.parent.iterdir()) == [copy]
    restored = tmp_path / "restored"
    shutil.copytree(copy, restored)
    with WorkspaceService(restored) as service, service.client(key) as http:
        assert _keys(http, sink) == {f"k{number}" for number in range(500)}
        assert http.get(download, follow_redirects=True).content == _BYTES


def test_a_backup_is_not_mixed_with_the_log_that_a_killed_service_left(tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    key = new_key(data)
    with WorkspaceService(data) as service, service.client(key) as http:
        sink, _ = _filled(http)
        assert workspaced("backup", str(copy), "--data", str(data)).returncode == 0
        assert http.post(f"{sink}/mass", json={"key": "later", "value": "1"}).status_code == 200
        service.kill()
    shutil.copytree(copy, data, dirs_exist_ok=True)
    for command in (("migrate",), ("keys", "list"), ("serve",), ("backup", str(tmp_path / "second"))):
        refused = workspaced(*command, "--data", str(data))
        assert refused.returncode == 78, refused
        assert "is a restored backup, but" in refused.stderr
    (data / "workspaced.db-wal").unlink()
    (data / "workspaced.db-shm").unlink()
    with WorkspaceService(data) as service, service.client(key) as http:
        assert _keys(http, sink) == {f"k{number}" for number in range(500)}


def test_a_backup_of_postgres_is_restored_by_pg_restore(tmp_path: Path, postgres_databases: Databases) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    with postgres_databases.migrated() as url, postgres_databases.empty() as new:
        there = {"WORKSPACED_DATABASE_URL": url}
        key = workspaced("keys", "create", "k", "--role", "owner", environment=there).stdout.strip()
        with WorkspaceService(data, environment=there) as service, service.client(key) as http:
            sink, download = _filled(http)
            made = workspaced("backup", str(copy), "--data", str(data), "--database", url)
            assert (made.returncode, made.stderr) == (0, "")
        restoring = ["pg_restore", "--exit-on-error", "--no-owner", "--dbname", new, str(copy / "workspaced.dump")]
        subprocess.run(restoring, check=True, capture_output=True)
        restored = tmp_path / "restored"
        restored.mkdir()
        shutil.copytree(copy / "blobs", restored / "blobs")
        with (
            WorkspaceService(restored, environment={"WORKSPACED_DATABASE_URL": new}) as service,
            service.client(key) as http,
        ):
            assert len(_keys(http, sink)) == 500
            assert http.get(download, follow_redirects=True).content == _BYTES
            assert http.post(f"{sink}/mass", json={"key": "later", "value": "1"}).status_code == 200


def test_the_bytes_of_files_are_copied_under_their_names(tmp_path: Path) -> None:
    # contract P7
    data = tmp_path / "data"
    key = new_key(data)
    with WorkspaceService(data) as service, service.client(key) as http:
        _filled(http)
        assert workspaced("backup", str(tmp_path / "copy"), "--data", str(data)).returncode == 0
    digest = hashlib.sha256(_BYTES).hexdigest()
    (copied,) = (tmp_path / "copy" / "blobs" / digest[:2]).glob(f"{digest[2:]}.*")
    assert copied.read_bytes() == _BYTES


def test_a_failed_backup_reports_the_reason_and_leaves_nothing(tmp_path: Path, postgres_databases: Databases) -> None:
    data, there = tmp_path / "data", tmp_path / "there"
    new_key(data)
    there.mkdir()
    taken = workspaced("backup", str(there), "--data", str(data))
    assert (taken.returncode, "exists already" in taken.stderr) == (78, True)
    absent = workspaced("backup", str(tmp_path / "copy"), "--data", str(tmp_path / "nowhere"))
    assert (absent.returncode, "There is no database" in absent.stderr) == (78, True)
    with postgres_databases.migrated() as url:
        empty_path = {"PATH": os.fspath(there)}
        without = workspaced(
            "backup", str(tmp_path / "copy"), "--data", str(data), "--database", url, environment=empty_path
        )
    assert (without.returncode, "needs pg_dump" in without.stderr) == (78, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "there"]
