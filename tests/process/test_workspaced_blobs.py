"""The service with a bucket: the exit codes of hosts that differ from other hosts, and a copy that is killed."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.support.bucket_gate import bucket_gate
from tests.support.object_server import SECRET, ObjectServer, blob_environment
from tests.support.workspaced_process import DEADLINE_SECONDS, WorkspaceService, new_key, workspaced
from workspaced.storage.blobs.port import IDENTITY

_FILES = "/v1/cloud-storage"
_BLOBS = "s3://bench/files"


def test_a_host_with_another_store_or_key_ends_with_78_and_says_which(
    tmp_path: Path, object_server: ObjectServer
) -> None:
    # contract P8
    data = tmp_path / "data"
    key = {"WORKSPACED_ENCRYPTION_KEY": base64.b64encode(os.urandom(32)).decode()}
    right = blob_environment(object_server.endpoint, tmp_path, _BLOBS) | key
    with WorkspaceService(data, environment=right) as service:
        assert service.stop() == 0
    other = {"WORKSPACED_ENCRYPTION_KEY": base64.b64encode(os.urandom(32)).decode()}
    for changed, words in (
        ({"WORKSPACED_BLOBS": "s3://bench/other"}, "s3://bench/other is not the store of this database's files"),
        ({"WORKSPACED_BLOBS": ""}, f"{data}/blobs is not the store of this database's files"),
        ({"WORKSPACED_BLOBS": "s3://absent/files"}, "s3://absent/files: The bucket that holds files does not exist"),
        ({"WORKSPACED_BLOBS": "s3:files"}, "must be like s3://bucket"),
        (other, "WORKSPACED_ENCRYPTION_KEY has the fingerprint"),
        ({"WORKSPACED_ENCRYPTION_KEY": ""}, "WORKSPACED_ENCRYPTION_KEY is not set"),
    ):
        refused = workspaced("serve", "--data", str(data), "--port", "0", environment=right | changed)
        last = refused.stderr.splitlines()[-1]
        assert (refused.returncode, words in last) == (78, True), refused.stderr
        for secret in (SECRET, *key.values(), *other.values()):
            assert secret not in refused.stderr
    with WorkspaceService(data, environment=right) as service:
        assert service.stop() == 0


def test_a_host_that_had_to_wait_for_the_wrong_bucket_ends_with_78(tmp_path: Path, object_server: ObjectServer) -> None:
    object_server.put(f"files/{IDENTITY}", b"another")
    new_key(tmp_path / "data")
    with bucket_gate(object_server.endpoint) as gate:
        gate.before = lambda _method, _path: (500, b"")
        with WorkspaceService(
            tmp_path / "data", environment=blob_environment(gate.endpoint, tmp_path, _BLOBS)
        ) as service:
            waits = service.wait_for_event(event="service_waits")
            assert waits["code"] == "storage_failed"
            gate.before = lambda _method, _path: None
            assert service.process.wait(DEADLINE_SECONDS) == 78
            assert "has the files of another database" in service.log.splitlines()[-1]


def test_a_copy_that_is_killed_is_continued(tmp_path: Path, object_server: ObjectServer) -> None:
    data = tmp_path / "data"
    key = new_key(data)
    contents: dict[str, bytes] = {}
    with WorkspaceService(data) as service, service.client(key) as http:
        workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]
        params = {"workspaceId": workspace, "fileName": "a.bin"}
        for number in range(20):
            content = f"content {number}".encode()
            contents[http.post(_FILES, params=params, content=content).json()["id"]] = content
    environment = blob_environment(object_server.endpoint, tmp_path)
    words = ["blobs", "copy", _BLOBS, "--data", str(data), "--switch"]
    command = [sys.executable, "-m", "workspaced", *words]
    with subprocess.Popen(command, env={**os.environ, **environment}, stderr=subprocess.DEVNULL) as copying:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not (begun := len(object_server.paths("files"))):
            assert time.monotonic() < deadline
            time.sleep(0.005)  # a bucket sends no signal
        copying.kill()
    assert begun < len(contents)
    done = workspaced(*words, environment=environment)
    assert done.returncode == 0, done.stderr
    assert "s3://bench/files has all bytes" in done.stdout
    with (
        WorkspaceService(data, environment=blob_environment(object_server.endpoint, tmp_path, _BLOBS)) as service,
        service.client(key) as http,
    ):
        for file, content in contents.items():
            assert http.get(f"{_FILES}/download/{file}").content == content


def test_a_backup_says_that_the_bytes_stay_in_the_bucket_and_a_copy_restores_them(
    tmp_path: Path, object_server: ObjectServer
) -> None:
    # contract P7
    data, environment = tmp_path / "data", blob_environment(object_server.endpoint, tmp_path, _BLOBS)
    key = new_key(data)
    with WorkspaceService(data, environment=environment) as service, service.client(key) as http:
        workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]
        params = {"workspaceId": workspace, "fileName": "a.bin"}
        file = http.post(_FILES, params=params, content=b"bytes").json()["id"]
    made = workspaced("backup", str(tmp_path / "copy"), "--data", str(data), environment=environment)
    assert made.returncode == 0, made.stderr
    assert "no bytes: they stay in s3://bench/files" in made.stdout
    assert not (tmp_path / "copy" / "blobs").exists()
    words = ["blobs", "copy", str(tmp_path / "copy" / "blobs"), "--data", str(tmp_path / "copy"), "--switch"]
    done = workspaced(*words, environment=environment)
    assert done.returncode == 0, done.stderr
    with WorkspaceService(tmp_path / "copy") as service, service.client(key) as http:
        assert http.get(f"{_FILES}/download/{file}").content == b"bytes"
    with WorkspaceService(data, environment=environment) as service, service.client(key) as http:
        assert http.get(f"{_FILES}/download/{file}").content == b"bytes", "the service itself goes on"
