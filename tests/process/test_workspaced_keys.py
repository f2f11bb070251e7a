"""The command ``workspaced keys``."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.support.workspaced_process import WorkspaceService, new_key, workspaced

HEADER = ["ID", "NAME", "ROLES", "KEY", "CREATED", "EXPIRES", "LAST_USED", "STATE"]


def test_create_prints_only_the_key_and_stores_it_nowhere(tmp_path: Path) -> None:
    # contract A2
    made = workspaced("keys", "create", "svc:ingest", "--role", "pusher", "--data", str(tmp_path))
    assert (made.returncode, made.stderr) == (0, "")
    assert re.fullmatch(r"edw_[0-9A-Za-z]{8}_[0-9A-Za-z]{49}\n", made.stdout)
    secret = made.stdout.strip()[13:].encode()
    for file in tmp_path.iterdir():
        assert secret not in file.read_bytes()
    listed = workspaced("keys", "list", "--data", str(tmp_path))
    assert "svc:ingest" in listed.stdout
    assert f"…{made.stdout.strip()[-4:]}" in listed.stdout
    assert secret.decode() not in listed.stdout


def test_keys_are_listed_in_columns_with_their_roles_and_as_json(tmp_path: Path) -> None:
    where = ("--data", str(tmp_path))
    workspace = "0b5d5e3e-6c57-4b3f-9d67-0a3c0d2b8a11"
    assert workspaced("migrate", *where).returncode == 0
    assert workspaced("keys", "list", *where).stdout.split() == HEADER, "a list of nothing has a header, too"
    workspaced("keys", "create", "svc:ingest", "--role", "pusher", "--workspace", workspace, *where)
    workspaced("keys", "create", "the owner of all", "--role", "owner", "--never-expires", "--guest", *where)
    header, pusher, owner = workspaced("keys", "list", *where).stdout.splitlines()
    assert header.split() == HEADER
    assert pusher.split()[1:5] == ["svc:ingest", "pusher", "in", workspace]
    assert pusher.split()[-2:] == ["never", "valid"]
    for column in ("NAME", "ROLES", "STATE"):
        at = header.index(column)
        assert all(line[at - 1] == " " and line[at] != " " for line in (pusher, owner)), "the columns are aligned"
    first, second = map(json.loads, workspaced("keys", "list", "--json", *where).stdout.splitlines())
    assert list(first) == [name.lower() for name in HEADER]
    assert (first["roles"], second["roles"]) == ([f"pusher in {workspace}"], ["owner", "as a guest"])
    assert (second["name"], second["expires"], second["state"]) == ("the owner of all", None, "valid")


def test_a_key_that_is_valid_in_other_workspaces_than_requested_is_reported(tmp_path: Path) -> None:
    where = ("--role", "pusher", "--data", str(tmp_path))
    one, two = "0b5d5e3e-6c57-4b3f-9d67-0a3c0d2b8a11", "1b5d5e3e-6c57-4b3f-9d67-0a3c0d2b8a11"
    for _ in range(2):
        assert workspaced("keys", "create", "bench", "--workspace", one, *where).stderr == ""
    other = workspaced("keys", "create", "bench", "--workspace", two, *where)
    assert other.stdout.startswith("edw_")
    assert f"All keys of this name are now valid in: {one}, {two}. " in other.stderr
    assert workspaced("keys", "create", "separate", "--workspace", two, *where).stderr == ""
    assert workspaced("keys", "create", "me", *where).stderr == ""
    wide = workspaced("keys", "create", "me", "--workspace", one, *where)
    assert f"are now valid in: {one}, all workspaces. " in wide.stderr


def test_a_key_works_until_it_is_revoked(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = new_key(data, name="bench")
    with WorkspaceService(data) as service:
        with service.client(key) as http:
            assert http.get("/v1/workspace").status_code == 200
        revoked = workspaced("keys", "revoke", "bench", "--data", str(data))
        assert (revoked.returncode, revoked.stdout) == (0, f"{key[4:12]} is revoked.\n")
        assert key not in service.log
    with WorkspaceService(data) as service, service.client(key) as http:
        assert http.get("/v1/workspace").status_code == 401
        service.wait_for_event(reason="revoked")
        assert key not in service.log
    assert "revoked" in workspaced("keys", "list", "--data", str(data)).stdout


def test_rotate_prints_a_new_key_under_the_old_id(tmp_path: Path) -> None:
    data = tmp_path / "data"
    old = new_key(data, name="bench")
    rotated = workspaced("keys", "rotate", old[4:12], "--overlap-hours", "0", "--data", str(data))
    new = rotated.stdout.strip()
    assert (new[:13], new == old) == (old[:13], False)
    with WorkspaceService(data) as service:
        for key, status in ((old, 401), (new, 200)):
            with service.client(key) as http:
                assert http.get("/v1/workspace").status_code == status


def test_mistakes_are_reported_as_sentences(tmp_path: Path) -> None:
    assert workspaced("migrate", "--data", str(tmp_path)).returncode == 0
    unknown = workspaced("keys", "revoke", "unknown", "--data", str(tmp_path))
    assert unknown.returncode == 1
    assert unknown.stderr.startswith("workspaced: There is no key 'unknown'")
    for _ in range(2):
        new_key(tmp_path, name="twin")
    twins = workspaced("keys", "rotate", "twin", "--data", str(tmp_path))
    assert (twins.returncode, twins.stdout) == (1, "")
    assert "Several keys are named 'twin'" in twins.stderr
    wrong = workspaced("keys", "create", "x", "--role", "owner", "--workspace", "W", "--data", str(tmp_path))
    assert wrong.stderr == (
        "workspaced: 'W' is not the id of a workspace: it must be a UUID. `workspaced workspaces list` shows the ids.\n"
    )
    assert workspaced("keys", "create", "x", "--role", "king", "--data", str(tmp_path)).returncode == 2
    long = workspaced("keys", "create", "x", "--role", "owner", "--days", "3000000", "--data", str(tmp_path))
    assert long.returncode == 2
    assert "36500" in long.stderr


def test_a_command_with_a_wrong_data_folder_creates_no_empty_database(tmp_path: Path) -> None:
    some_id = "0b5d5e3e-6c57-4b3f-9d67-0a3c0d2b8a11"
    wrong = tmp_path / "wrong"
    for command in (
        "keys list", "keys revoke bench", "keys rotate bench", "workspaces list", f"workspaces restore {some_id}", "files list",
        f"files restore {some_id}", f"blobs copy {tmp_path / 'bytes'}",
    ):  # fmt: skip
        refused = workspaced(*command.split(), "--data", str(wrong))
        assert (refused.returncode, refused.stdout) == (78, ""), command
        sentence = f"There is no database {wrong / 'workspaced.db'}. Give the data folder of a service that has run."
        assert refused.stderr == f"workspaced: {sentence}\n"
    assert [*tmp_path.iterdir()] == []


def test_it_prints_its_version() -> None:
    assert re.fullmatch(r"workspaced, version \d+\.\d+\.\d+\n", workspaced("--version").stdout)
