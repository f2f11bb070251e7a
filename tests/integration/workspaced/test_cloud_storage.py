"""Files as records (contract CS1, CS2, CS3, CS4), and uploads."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx
import pytest

from tests.integration.workspaced.conftest import MakeKey
from tests.support.cloud_files import FILES, CloudFiles
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.factory import transact

ABSENT = "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def files(http: httpx.AsyncClient, workspace: dict[str, Any]) -> CloudFiles:
    return CloudFiles(http=http, workspace=workspace["id"])


async def test_a_file_is_uploaded_in_one_request(files: CloudFiles) -> None:
    # contract C10, CS6
    response = await files.http.post(
        FILES, params={"workspaceId": files.workspace, "fileName": "Größe.bin"}, content=b"abc"
    )
    assert response.status_code == 201
    record = response.json()
    assert response.headers["Location"] == f"{FILES}/{record['id']}"
    assert {name: record[name] for name in ("workspaceId", "fileName", "contentType", "size", "version", "status")} == {
        "workspaceId": files.workspace,
        "fileName": "Größe.bin",
        "contentType": "application/octet-stream",
        "size": 3,
        "version": 1,
        "status": "available",
    }
    assert record["sha256"] == hashlib.sha256(b"abc").hexdigest()
    assert record["createdBy"] == record["updatedBy"] == "svc:test"
    assert record["conversion"]["state"] == "not_required"
    assert await files.record(record["id"]) == record


async def test_a_file_is_uploaded_by_a_link_in_three_steps(files: CloudFiles) -> None:
    # contract C1, C2, CS7, CS8, CS9, CS11
    link = await files.link("x.bin", size=3, sha256=hashlib.sha256(b"abc").hexdigest().upper())
    assert link["method"] == "PUT"
    assert link["maxSize"] == 3
    assert link["uploadUrl"].startswith("http://service/v1/cloud-storage/upload/")
    assert (await files.record(link["id"]))["status"] == "uploading"
    sent = await files.http.put(link["uploadUrl"], content=b"abc", headers={"x-api-key": "", "Content-Type": "a/b"})
    assert sent.status_code == 200
    assert sent.json() == {
        "id": link["id"],
        "uploadId": link["uploadId"],
        "size": 3,
        "sha256": hashlib.sha256(b"abc").hexdigest(),
    }
    assert (await files.record(link["id"]))["status"] == "uploading"
    done = await files.http.post(f"{FILES}/upload-complete/{link['id']}", json={"sha256": sent.json()["sha256"]})
    assert done.status_code == 200
    assert done.json()["status"] == "available"
    assert await files.content(link["id"]) == b"abc"
    again = await files.http.post(f"{FILES}/upload-complete/{link['id']}")
    assert again.status_code == 200
    assert again.json()["version"] == 1, "a repeated request is harmless"


async def test_uploaded_bytes_must_match_their_announcement(files: CloudFiles) -> None:
    # contract C1
    link = await files.link(size=4)
    assert (await files.http.put(link["uploadUrl"], content=b"abc")).status_code == 200
    done = await files.http.post(f"{FILES}/upload-complete/{link['id']}")
    assert (done.status_code, done.json()["code"]) == (422, "size_mismatch")
    link = await files.link(sha256="0" * 64)
    assert (await files.http.put(link["uploadUrl"], content=b"abc")).status_code == 200
    done = await files.http.post(f"{FILES}/upload-complete/{link['id']}")
    assert (done.status_code, done.json()["code"]) == (422, "sha256_mismatch")
    link = await files.link()
    assert (await files.http.put(link["uploadUrl"], content=b"abc")).status_code == 200
    done = await files.http.post(f"{FILES}/upload-complete/{link['id']}", json={"sha256": "0" * 64})
    assert (done.status_code, done.json()["code"]) == (422, "sha256_mismatch")
    done = await files.http.post(f"{FILES}/upload-complete/{link['id']}")
    assert done.status_code == 200, "the caller's mistake does not affect the upload"
    params = {"workspaceId": files.workspace, "fileName": "a.bin", "sha256": "0" * 64}
    assert (await files.http.post(FILES, params=params, content=b"abc")).status_code == 422


async def test_an_upload_without_bytes_cannot_be_completed(files: CloudFiles) -> None:
    # contract C1
    link = await files.link()
    done = await files.http.post(f"{FILES}/upload-complete/{link['id']}")
    assert (done.status_code, done.json()["code"]) == (409, "not_uploaded")
    assert (await files.http.post(f"{FILES}/upload-complete/{ABSENT}")).status_code == 403


async def test_a_link_accepts_bytes_once_and_no_more_than_announced(files: CloudFiles) -> None:
    # contract C1
    link = await files.link(size=3)
    too_much = await files.http.put(link["uploadUrl"], content=b"abcd")
    assert too_much.status_code == 413
    assert (await files.http.put(link["uploadUrl"], content=b"abc")).status_code == 200, (
        "an attempt is not a use of the link"
    )
    second = await files.http.put(link["uploadUrl"], content=b"xyz")
    assert (second.status_code, second.json()["code"]) == (409, "upload_link_used")
    forged = link["uploadUrl"].replace(link["uploadId"], ABSENT)
    refused = await files.http.put(forged, content=b"abc")
    assert (refused.status_code, refused.json()["code"]) == (403, "bad_upload_link")
    bare = link["uploadUrl"].partition("?")[0]
    assert (await files.http.put(bare, content=b"abc")).status_code == 403


@pytest.mark.both_databases
async def test_an_upload_to_an_existing_id_is_another_version(files: CloudFiles) -> None:
    # contract C10, C11, CS12
    first = await files.upload("a.bin", b"one")
    second = await files.upload("b.bin", b"two!", id=first["id"])
    assert (second["id"], second["version"], second["fileName"], second["size"]) == (first["id"], 2, "b.bin", 4)
    link = await files.link("c.bin", id=first["id"])
    assert (await files.record(first["id"]))["status"] == "available", (
        "the old version exists until the new one is complete"
    )
    await files.http.put(link["uploadUrl"], content=b"three")
    await files.http.post(f"{FILES}/upload-complete/{first['id']}")
    listed = await files.http.get(f"{FILES}/version-list/{first['id']}")
    assert [(one["version"], one["current"], one["fileName"]) for one in listed.json()] == [
        (3, True, "c.bin"),
        (2, False, "b.bin"),
        (1, False, "a.bin"),
    ]
    paged = await files.http.get(f"{FILES}/version-list/{first['id']}?take=1&skip=1&sortedBy=size&sortOrder=DESC")
    assert [one["version"] for one in paged.json()] == [2]
    assert paged.headers["X-Total-Count"] == "3"


@pytest.mark.both_databases
async def test_an_id_of_another_record_is_rejected_without_a_hint(files: CloudFiles) -> None:
    # contract C10, G2
    supplied = "33333333-3333-4333-8333-333333333333"
    assert (await files.upload(id=supplied.upper()))["id"] == supplied
    other = (await files.http.post("/v1/workspace", json={"label": "other"})).json()["id"]
    body = {"workspaceId": other, "fileName": "a.bin", "id": supplied}
    assert (await files.http.post(f"{FILES}/upload-link", json=body)).json()["code"] == "id_in_use"
    await files.http.delete(f"{FILES}/{supplied}", params={"workspaceId": files.workspace})
    body["workspaceId"] = files.workspace
    response = await files.http.post(f"{FILES}/upload-link", json=body)
    assert (response.status_code, response.json()["code"]) == (409, "id_in_use")


async def test_cs1_deletes_softly_and_a_second_time_is_404(files: CloudFiles) -> None:
    # contract G25
    file = (await files.upload())["id"]
    gone = await files.http.delete(f"{FILES}/{file}", params={"workspaceId": files.workspace})
    assert (gone.status_code, gone.content) == (200, b"")
    assert "Content-Type" not in gone.headers
    for method, path in (
        ("DELETE", f"{file}?workspaceId={files.workspace}"),
        ("GET", file),
        ("PATCH", file),
        ("GET", f"metadata/{file}"),
        ("PUT", f"metadata/{file}"),
        ("POST", f"retry-conversion/{file}"),
        ("GET", f"download/{file}"),
        ("GET", f"version-list/{file}"),
    ):
        assert (await files.http.request(method, f"{FILES}/{path}")).status_code == 403, (method, path)


async def test_cs1_requires_the_workspace_of_the_file(files: CloudFiles) -> None:
    # contract C5
    file = await files.upload()
    other = (await files.http.post("/v1/workspace", json={"label": "other"})).json()["id"]
    for query, status in (("", 400), ("?workspaceId=x", 400), (f"?workspaceId={other}", 403)):
        assert (await files.http.delete(f"{FILES}/{file['id']}{query}")).status_code == status
    stale = {"If-Match": '"99"'}
    refused = await files.http.delete(f"{FILES}/{file['id']}?workspaceId={files.workspace}", headers=stale)
    assert refused.status_code == 412
    assert (await files.record(file["id"]))["status"] == "available"


async def test_cs2_changes_only_the_given_members(files: CloudFiles) -> None:
    # contract C3
    file = (await files.upload("a.bin"))["id"]
    body = {"fileName": "b.csv", "contentType": None, "description": "d", "tags": "x,y", "size": 9}
    changed = await files.http.patch(f"{FILES}/{file}", json=body)
    assert (changed.status_code, changed.content) == (200, b"")
    assert changed.headers["X-Ignored-Fields"] == "size"
    record = await files.record(file)
    assert [record[name] for name in ("fileName", "contentType", "description", "tags", "size")] == [
        "b.csv",
        "text/csv",
        "d",
        "x,y",
        5,
    ]
    before = record["updatedAt"]
    for content in (b"", b"{}"):
        assert (await files.http.patch(f"{FILES}/{file}", content=content)).status_code == 200
    assert (await files.record(file))["updatedAt"] == before
    await files.http.patch(f"{FILES}/{file}", json={"description": None})
    assert (await files.record(file))["description"] is None


async def test_cs2_rejects_invalid_members(files: CloudFiles) -> None:
    # contract C3
    path = f"{FILES}/{(await files.upload())['id']}"
    wrong: tuple[object, ...] = (
        {"fileName": "../x"},
        {"fileName": None},
        {"fileName": ""},
        {"contentType": "x"},
        {"tags": 1},
        [],
    )
    for body in wrong:
        assert (await files.http.patch(path, json=body)).status_code == 400, body
    typed = await files.http.patch(path, content=b"<a/>", headers={"Content-Type": "text/xml"})
    assert typed.status_code == 415
    assert (await files.http.patch(path, content=b"{" + b" " * 1_048_576 + b"}")).status_code == 413
    assert (await files.http.patch(path, json={}, headers={"If-Match": '"0"'})).status_code == 412


async def test_cs3_and_cs4_store_any_object(files: CloudFiles) -> None:
    # contract C4, G17
    path = f"{FILES}/metadata/{(await files.upload())['id']}"
    empty = await files.http.get(path)
    assert (empty.status_code, empty.json()) == (200, {})
    put = await files.http.put(path, content=b'{"mass": 1.10, "a": {"b": [null, "\xc3\xa9"]}}')
    assert (put.status_code, put.content) == (200, b"")
    kept = await files.http.get(path)
    assert kept.content == '{"a":{"b":[null,"é"]},"mass":1.10}'.encode()
    assert (await files.http.get(path, headers={"If-None-Match": kept.headers["ETag"]})).status_code == 304
    assert (await files.http.put(path)).status_code == 200
    assert (await files.http.get(path)).content == kept.content, "it sends no body"
    for bad, status in ((b"[]", 400), (b"{", 400), (b'{"a":"' + b"x" * 70_000 + b'"}', 400)):
        assert (await files.http.put(path, content=bad)).status_code == status
    assert (await files.http.put(path, json={}, headers={"If-Match": '"0"'})).status_code == 412
    assert (await files.http.put(path, json={})).status_code == 200
    assert (await files.http.get(path)).json() == {}


async def test_a_file_without_bytes_is_404(files: CloudFiles) -> None:
    # contract C2
    link = await files.link()
    for method, path in (
        ("DELETE", f"{link['id']}?workspaceId={files.workspace}"),
        ("PATCH", link["id"]),
        ("GET", f"metadata/{link['id']}"),
        ("PUT", f"metadata/{link['id']}"),
        ("POST", f"retry-conversion/{link['id']}"),
        ("GET", f"download/{link['id']}"),
        ("GET", f"version-list/{link['id']}"),
    ):
        assert (await files.http.request(method, f"{FILES}/{path}")).status_code == 403, (method, path)
    assert (await files.http.get(FILES, params={"workspaceId": files.workspace})).json() == []


async def test_missing_foreign_and_forbidden_files_are_rejected_with_the_same_message(
    files: CloudFiles, make_key: MakeKey
) -> None:
    # contract C9
    file = (await files.upload())["id"]
    other = (await files.http.post("/v1/workspace", json={"label": "other"})).json()["id"]
    other_caller = {"x-api-key": make_key(name="svc:other", role="editor", workspace_id=other)}
    reader = {"x-api-key": make_key(name="svc:reader", role="reader", workspace_id=files.workspace)}
    rows = [
        ("GET", "{}", None),
        ("PATCH", "{}", {"fileName": "x"}),
        ("DELETE", f"{{}}?workspaceId={files.workspace}", None),
        ("GET", "metadata/{}", None),
        ("PUT", "metadata/{}", {}),
        ("POST", "retry-conversion/{}", None),
        ("POST", "upload-complete/{}", None),
        ("GET", "download/{}", None),
        ("GET", "version-list/{}", None),
    ]
    for method, path, body in rows:
        bodies = set()
        for headers, name in ((other_caller, file), (other_caller, ABSENT), ({}, ABSENT), ({}, "no-uuid")):
            response = await files.http.request(method, f"{FILES}/{path.format(name)}", json=body, headers=headers)
            assert response.status_code == 403, (method, path)
            problem = response.json()
            bodies.add((problem["code"], problem["detail"], problem["error"]))
        assert len(bodies) == 1
        wanted = 403 if method != "GET" else 200
        response = await files.http.request(method, f"{FILES}/{path.format(file)}", json=body, headers=reader)
        assert response.status_code == wanted, (method, path)
    for response in (
        await files.http.post(
            FILES, params={"workspaceId": files.workspace, "fileName": "x"}, content=b"x", headers=other_caller
        ),
        await files.http.post(
            f"{FILES}/upload-link", json={"workspaceId": files.workspace, "fileName": "x"}, headers=other_caller
        ),
        await files.http.get(FILES, params={"workspaceId": files.workspace}, headers=other_caller),
        await files.http.get(FILES, params={"workspaceId": ABSENT}),
    ):
        assert response.status_code == 403
    assert (await files.record(file))["version"] == 1


@pytest.mark.parametrize(("has_key", "refused"), [(False, 401), (True, 403)])
async def test_without_the_permission_only_public_files_are_read(
    files: CloudFiles, make_key: MakeKey, *, has_key: bool, refused: int
) -> None:
    # contract A6, C9
    file = (await files.upload("a.txt", b"text"))["id"]
    reads = [
        f"{FILES}/{file}",
        f"{FILES}?workspaceId={files.workspace}",
        f"{FILES}/metadata/{file}",
        f"{FILES}/version-list/{file}",
        f"{FILES}/download/{file}",
    ]
    keyed = {"x-api-key": files.http.headers.pop("x-api-key")}
    if has_key:
        files.http.headers["x-api-key"] = make_key(name="svc:other", role="pusher")
    unreadable = (f"{FILES}/{ABSENT}", FILES, f"{FILES}?workspaceId=x")
    for path in (*reads, *unreadable):
        response = await files.http.get(path)
        assert response.status_code == refused, path
        assert ("WWW-Authenticate" in response.headers) is (not has_key)
    flags = {"publicCanReadEnabled": True}
    opened = await files.http.patch(f"/v1/workspace/{files.workspace}", json=flags, headers=keyed)
    assert opened.status_code == 200
    assert [(await files.http.get(path)).status_code for path in (*reads, *unreadable)] == [200] * 5 + [refused] * 3


async def test_a_public_workspace_lists_its_files_without_downloads_if_exports_are_disabled(
    files: CloudFiles, make_key: MakeKey
) -> None:
    # contract A7
    file = (await files.upload("a.txt", b"text"))["id"]
    key = make_key(name="svc:flags")
    flags = {"publicCanReadEnabled": True}
    response = await files.http.patch(f"/v1/workspace/{files.workspace}", json=flags, headers={"x-api-key": key})
    assert response.status_code == 200
    owned = files.http.headers.pop("x-api-key")
    for path in (f"{FILES}/{file}", f"{FILES}?workspaceId={files.workspace}", f"{FILES}/metadata/{file}"):
        assert (await files.http.get(path)).status_code == 200
    assert await files.content(file) == b"text"
    for method, path in (("PATCH", file), ("PUT", f"metadata/{file}"), ("POST", f"retry-conversion/{file}")):
        assert (await files.http.request(method, f"{FILES}/{path}", json={})).status_code == 401
    keyed = {"x-api-key": owned}
    off = await files.http.patch(f"/v1/workspace/{files.workspace}", json={"exportsEnabled": False}, headers=keyed)
    assert off.status_code == 200
    for headers in ({}, keyed):
        refused = await files.http.get(f"{FILES}/download/{file}", headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "exports_disabled")
    assert (await files.http.get(f"{FILES}/{file}")).status_code == 200


@pytest.mark.both_databases
async def test_the_list_has_one_workspace_in_the_requested_order(files: CloudFiles) -> None:
    # contract C11, CS10
    for name, content in (("b.bin", b"1"), ("a.bin", b"333"), ("c.bin", b"22")):
        await files.upload(name, content)

    async def names(query: str) -> list[str]:
        response = await files.http.get(f"{FILES}?workspaceId={files.workspace}{query}")
        assert response.status_code == 200, response.text
        assert response.headers["X-Total-Count"] == "3"
        return [one["fileName"] for one in response.json()]

    assert await names("") == ["b.bin", "a.bin", "c.bin"]
    assert await names("&sortedBy=fileName") == ["a.bin", "b.bin", "c.bin"]
    assert await names("&sortedBy=size&sortOrder=DESC&take=2") == ["a.bin", "c.bin"]
    response = await files.http.get(f"{FILES}?workspaceId={files.workspace}&take=1&skip=1")
    assert 'rel="next"' in response.headers["Link"]
    assert 'rel="prev"' in response.headers["Link"]
    for bad in ("", "?workspaceId=x", f"?workspaceId={files.workspace}&take=0", "?workspaceId=&sortedBy=fileName"):
        assert (await files.http.get(f"{FILES}{bad}")).status_code == 400


async def test_a_workspace_lists_its_available_files_as_attachments(files: CloudFiles) -> None:
    # contract W4
    path = f"/v1/workspace/{files.workspace}"
    before = await files.http.get(path)
    await files.link()
    file = (await files.upload())["id"]
    after = await files.http.get(path)
    assert after.json()["attachments"] == [file]
    assert after.headers["ETag"] != before.headers["ETag"]
    await files.http.delete(f"{FILES}/{file}", params={"workspaceId": files.workspace})
    assert (await files.http.get(path)).json()["attachments"] == []


async def test_files_of_a_deleted_workspace_are_404(files: CloudFiles) -> None:
    file = (await files.upload())["id"]
    link = await files.link()
    assert (await files.http.delete(f"/v1/workspace/{files.workspace}")).status_code == 200
    assert (await files.http.get(f"{FILES}/{file}")).status_code == 403
    assert (await files.http.put(link["uploadUrl"], content=b"x")).status_code == 403
    params = {"workspaceId": files.workspace, "fileName": "x"}
    assert (await files.http.post(FILES, params=params, content=b"x")).status_code == 403


async def test_a_repeated_post_gets_the_first_response_and_creates_no_second_file(files: CloudFiles) -> None:
    params = {"workspaceId": files.workspace, "fileName": "a.bin"}
    headers = {"Idempotency-Key": "one"}
    first = await files.http.post(FILES, params=params, content=b"abc", headers=headers)
    again = await files.http.post(FILES, params=params, content=b"abc", headers=headers)
    assert (again.status_code, again.json()) == (201, first.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    other = await files.http.post(FILES, params=params, content=b"abd", headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert len((await files.http.get(FILES, params={"workspaceId": files.workspace})).json()) == 1
    link = {"workspaceId": files.workspace, "fileName": "b.bin"}
    headers = {"Idempotency-Key": "two"}
    first = await files.http.post(f"{FILES}/upload-link", json=link, headers=headers)
    again = await files.http.post(f"{FILES}/upload-link", json=link, headers=headers)
    assert again.json() == first.json()


@pytest.mark.both_databases
async def test_the_signature_of_an_upload_link_is_not_in_the_database(
    files: CloudFiles, settings: WorkspacedSettings
) -> None:
    wanted = {"workspaceId": files.workspace, "fileName": "b.bin"}
    headers = {"Idempotency-Key": "signed", "Host": "h/v1/cloud-storage/upload/x?expires=1&signature=y"}
    first = await files.http.post(f"{FILES}/upload-link", json=wanted, headers=headers)
    signature = first.json()["uploadUrl"].rpartition("signature=")[2]
    assert len(signature) == 43
    if settings.postgres is None:
        kept = b"".join(path.read_bytes() for path in sorted(settings.data.glob("workspaced.db*")))
        assert first.json()["uploadId"].encode() in kept
    else:
        rows = transact(settings.database, lambda tx: tx.all("SELECT body FROM idempotent_response"))
        kept = b"".join(bytes(row[0]) for row in rows)
        assert first.json()["uploadId"].encode() in kept
    assert signature.encode() not in kept
    again = await files.http.post(f"{FILES}/upload-link", json=wanted, headers=headers)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.content == first.content
    refused = {**wanted, "fileName": ""}
    headers["Idempotency-Key"] = "refused"
    responses = [await files.http.post(f"{FILES}/upload-link", json=refused, headers=headers) for _ in range(2)]
    assert [response.status_code for response in responses] == [400, 400]
    assert responses[0].json()["errors"] == responses[1].json()["errors"]


async def test_every_change_is_in_the_audit_log(files: CloudFiles) -> None:
    file = (await files.upload("a.bin"))["id"]
    await files.upload("b.bin", b"other", id=file)
    await files.http.put(f"{FILES}/metadata/{file}", json={"secret": "value"})
    await files.http.post(f"{FILES}/retry-conversion/{file}")
    await files.http.delete(f"{FILES}/{file}", params={"workspaceId": files.workspace})
    log = await files.http.get(f"/v1/audit-log?workspaceId={files.workspace}&action=cloud_storage.*&sortOrder=ASC")
    assert [row["action"] for row in log.json()] == [
        "cloud_storage.file.created",
        "cloud_storage.file.updated",
        "cloud_storage.metadata.updated",
        "cloud_storage.conversion.retried",
        "cloud_storage.file.deleted",
    ]
    assert {row["resourceId"] for row in log.json()} == {file}
    assert "value" not in log.text
