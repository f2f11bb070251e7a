"""The operations that upload files (contract C1, C10): by a signed link, or in one request."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Final, TypeAlias

from workspaced.core.json_schema import STRING, UUID
from workspaced.core.problems import ForbiddenProblem, UnprocessableProblem
from workspaced.core.text import as_uuid
from workspaced.core.timestamps import stamp
from workspaced.http.bodies import StreamedBody
from workspaced.http.description import Parameter, RequestBody, Success, links
from workspaced.http.idempotency import InFlight
from workspaced.http.operations import Call, Operation, RenewedCall, Work
from workspaced.http.responses import Response, etag, json_response
from workspaced.resources.cloud_storage import conversion_store, events, permission, store, upload_store
from workspaced.resources.cloud_storage.links import PATH as LINK_PATH
from workspaced.resources.cloud_storage.links import UnsignedLinks, UploadLinks
from workspaced.resources.cloud_storage.records import FileRecord, UploadLinkRecord, UploadRecord
from workspaced.resources.cloud_storage.rules import (
    FileName,
    MediaType,
    NewUpload,
    Sha256,
    UploadCompletion,
    read_direct_upload,
    typed,
)
from workspaced.resources.cloud_storage.values import FileContent, StoredFile, StoredUpload
from workspaced.resources.operation_rows import post
from workspaced.security.permissions import FILES_WRITE, Principal
from workspaced.settings.model import Limits
from workspaced.storage.blobs.blobs import Blobs
from workspaced.storage.blobs.received_bytes import Incoming
from workspaced.storage.port import ReadTransaction, Transaction

COLLECTION = "/v1/cloud-storage"
OF_WORKSPACE: Final = Parameter("workspaceId", "The workspace.", UUID, required=True)
_OF_FILE: Final = {"id": "$response.body#/id"}
_LINKS: Final = links(
    _OF_FILE,
    get="cloud_storage.get",
    getMetadata="cloud_storage.get_metadata",
    replaceMetadata="cloud_storage.replace_metadata",
    update="cloud_storage.update",
    listVersions="cloud_storage.list_versions",
    download="cloud_storage.download",
    retryConversion="cloud_storage.retry_conversion",
)
VerifyAgain: TypeAlias = Callable[[str, bytes], Awaitable[Principal | None]]
_NO_STORE = ("Cache-Control", "no-store")


class _Uploads:
    """The handlers of uploads. ``blobs`` stores the bytes, and ``signer`` makes and checks links.

    ``verify_again`` returns the present permissions of the key that requested a link.
    """

    def __init__(self, blobs: Blobs, signer: UploadLinks, verify_again: VerifyAgain) -> None:
        self._blobs = blobs
        self._signer = signer
        self._verify_again = verify_again
        self._receiving = InFlight("Another request sends bytes to this upload link. Wait until it has ended.")

    def offer_link(self, tx: Transaction, call: Call, new: NewUpload) -> Response:
        """Ask for an upload link.

        Announces a file, or another version of a file. The link can be used once, within some minutes.
        201: Where to send the bytes.
        409: `id_in_use`: the id is in use. `quota_exceeded`: the quota of the workspace or of the file is used up.
        """
        limits = call.settings.limits
        new = typed(new)
        principal = permission.require_writable(call, new.workspace_id)
        file_id, upload_id = new.id or str(uuid.uuid4()), str(uuid.uuid4())
        expires_at = call.now + limits.upload_link_minutes * 60_000
        base_url = call.settings.public_url or f"{call.scheme}://{call.headers.get('Host', 'localhost')}"
        file = _find_or_insert(tx, call, new, file_id=file_id, size=new.size or 0)
        upload_store.insert_upload(tx, file, new, upload_id=upload_id, expires_at=expires_at, by=principal)
        record = UploadLinkRecord(
            id=file.id,
            upload_id=upload_id,
            upload_url=self._signer.link(base_url, upload_id=upload_id, expires_at=expires_at),
            method="PUT",
            headers={},
            expires_at=stamp(expires_at),
            max_size=limits.file_bytes if new.size is None else new.size,
        )
        return json_response(record, status=201, headers=(("Location", f"{COLLECTION}/{file.id}"), _NO_STORE))

    @asynccontextmanager
    async def receive(self, call: Call, body: StreamedBody, renewed: RenewedCall) -> AsyncGenerator[Work, None]:
        """Send bytes to a link.

        The body is the file, of any type. If it is compressed with gzip, it is stored uncompressed. No key is needed,
        because the link is signed.
        200: The bytes that arrived.
        403: `bad_upload_link`, `upload_link_expired`, `upload_link_revoked`, or the file is deleted.
        409: `upload_link_used`: bytes were sent to this link before. `request_in_progress`: another request sends bytes to it.
        503: `storage_full`, `storage_failed`: the bytes can't be stored.
        """
        upload_id = as_uuid(call.names["upload"]) or ""
        self._signer.require_signed(call.query, upload_id=upload_id, now=call.now)
        with self._receiving.claim(upload_id):  # a link is used once, so concurrent requests must not fill the disk
            upload = await call.store.read(lambda reader: _find_upload(reader, upload_id))
            await self._require_live(upload)

            async with self._received(body, limit=upload.expected_size) as incoming:
                call = await renewed()
                await self._require_live(upload)  # again, because the upload may have taken hours
                kept = await self._blobs.keep(incoming)

                def act(tx: Transaction) -> Response:
                    _find_upload(tx, upload_id)
                    self._blobs.use(tx, kept)
                    upload_store.record_bytes(tx, upload, sha256=incoming.sha256, size=incoming.size, now=call.now)
                    record = UploadRecord(
                        id=upload.file_id, upload_id=upload.id, size=incoming.size, sha256=incoming.sha256
                    )
                    return json_response(record)

                yield Work(act=act)

    async def _require_live(self, upload: StoredUpload) -> None:
        """Raise ForbiddenProblem unless the key that requested the link is valid, and may still add files to the workspace."""
        principal = await self._verify_again(upload.key_id, bytes(upload.secret))
        if principal is None or not principal.may(FILES_WRITE, upload.workspace_id):
            detail = "The API key that requested this upload link may not upload any more."
            raise ForbiddenProblem(detail, code="upload_link_revoked")

    def complete(self, tx: Transaction, call: Call, named: UploadCompletion) -> Response:
        """Complete an upload.

        The bytes that were sent to a link become the current version of the file.
        200: The file.
        409: `quota_exceeded`: the quota of the workspace or of the file is used up. `not_uploaded`: nothing was sent yet.
        422: `sha256_mismatch`, `size_mismatch`: other bytes were sent.
        """
        limits = call.settings.limits
        file = permission.writable_file(tx, call, uploading=True)
        upload = upload_store.find_received(tx, file, upload_id=named.upload_id, sha256=named.sha256)
        if upload_store.complete(tx, upload, now=call.now):
            workspace = store.lock_workspace(tx, file.workspace_id)
            size = upload.size or 0
            store.require_room(tx, workspace, file, size=size, limits=limits)
            content = FileContent(
                file_name=upload.file_name, content_type=upload.content_type, sha256=upload.sha256 or "", size=size
            )
            file = _add_version(tx, call, file, content)
        return json_response(events.read_record(tx, file), headers=(etag(file.version),))

    @asynccontextmanager
    async def upload(self, call: Call, body: StreamedBody, renewed: RenewedCall) -> AsyncGenerator[Work, None]:
        """Upload a file.

        Uploads a file, or another version of a file, in one request. The body is the bytes of the file, of any type. Bytes that
        are compressed with gzip are stored uncompressed. Without `fileName`, another version keeps the name and the type of the
        file.
        201: The file.
        409: `id_in_use`: the id is in use. `quota_exceeded`: the quota of the workspace or of the file is used up.
        422: `sha256_mismatch`: other bytes were sent.
        503: `storage_full`, `storage_failed`: the bytes can't be stored.
        """
        limits = call.settings.limits
        new = read_direct_upload(call.query, body.content_type, limits)
        permission.require_writable(call, new.workspace_id)
        # Workspace and quotas are checked before the bytes are received, which may take minutes, and again afterwards.
        await call.store.read(lambda reader: _require_possible(reader, new, limits))

        async with self._received(body) as incoming:
            call = await renewed()
            permission.require_writable(call, new.workspace_id)
            if new.sha256 not in {None, incoming.sha256}:
                raise UnprocessableProblem(
                    "sha256_mismatch", f"The received bytes have the SHA-256 {incoming.sha256}, not {new.sha256}."
                )
            file_id = new.id or str(uuid.uuid4())
            kept = await self._blobs.keep(incoming)

            def act(tx: Transaction) -> Response:
                file = _find_or_insert(tx, call, new, file_id=file_id, size=incoming.size)
                self._blobs.use(tx, kept)
                content = FileContent(
                    file_name=new.file_name or file.file_name,
                    content_type=new.content_type or file.content_type,
                    sha256=incoming.sha256,
                    size=incoming.size,
                )
                file = _add_version(tx, call, file, content)
                headers = (("Location", f"{COLLECTION}/{file.id}"), etag(file.version))
                return json_response(events.read_record(tx, file), status=201, headers=headers)

            yield Work(act=act, digest=bytes.fromhex(incoming.sha256))

    @asynccontextmanager
    async def _received(self, body: StreamedBody, *, limit: int | None = None) -> AsyncGenerator[Incoming, None]:
        """Receive the bytes of a body, and yield them as temporary bytes of the store."""
        async with aclosing(body.parts(limit=limit)) as parts, self._blobs.receive(parts) as incoming:
            yield incoming


def _find_upload(reader: ReadTransaction, upload_id: str) -> StoredUpload:
    """Return the upload of a link. Raises ForbiddenProblem: the file was deleted; ConflictProblem: the link was used."""
    upload = upload_store.find(reader, upload_id)
    if upload is None:
        raise ForbiddenProblem
    upload_store.require_unused(upload)
    return upload


def _require_possible(reader: ReadTransaction, new: NewUpload, limits: Limits) -> None:
    workspace = store.find_workspace(reader, new.workspace_id)
    if workspace is None:
        raise ForbiddenProblem
    store.require_room(reader, workspace, store.find_target(reader, new), size=0, limits=limits)


def _find_or_insert(tx: Transaction, call: Call, new: NewUpload, *, file_id: str, size: int) -> StoredFile:
    """Check the quotas. Return the file that gets the version of an upload; a new file is inserted."""
    workspace = store.lock_workspace(tx, new.workspace_id)
    file = store.find_target(tx, new)
    store.require_room(tx, workspace, file, size=size, limits=call.settings.limits)
    return file or store.insert_file(tx, call, workspace, new, file_id=file_id)


def _add_version(tx: Transaction, call: Call, file: StoredFile, content: FileContent) -> StoredFile:
    """Add a version, queue its conversion, and record and emit the change. Return the file afterwards."""
    before = events.read_record(tx, file) if file.available else None
    after, version = store.add_version(tx, call, file, content)
    conversion_store.queue_conversion(
        tx, version, file_name=content.file_name, content_type=content.content_type, now=call.now
    )
    after = store.find_file(tx, file.id) or after
    events.emit_available(tx, call, before=before, after=after)
    return after


def operations(limits: Limits, blobs: Blobs, signer: UploadLinks, verify_again: VerifyAgain) -> tuple[Operation, ...]:
    """Return the operations that upload files."""
    uploads = _Uploads(blobs, signer, verify_again)
    small = limits.body_bytes
    announced = {"workspaceId": "0f8b3c0e-6f3c-4b57-9f3e-2a1f4d7f9f10", "fileName": "masses.csv"}
    raw = RequestBody({}, None, media="application/octet-stream")
    return (
        post(
            "cloud_storage.upload_link",
            f"{COLLECTION}/upload-link",
            FILES_WRITE,
            uploads.offer_link,
            anywhere=True,
            secret_box=UnsignedLinks(signer),
            body_bytes=small,
        ).described(
            body=RequestBody(NewUpload, announced),
            success=Success(
                UploadLinkRecord, ("Location", "Cache"), status=201, links=links(_OF_FILE, get="cloud_storage.get")
            ),
        ),
        Operation(
            name="cloud_storage.receive",
            method="PUT",
            path=f"{LINK_PATH}/{{upload}}",
            scope=None,
            take=uploads.receive,
            body_bytes=limits.file_bytes,
            body=raw,
            success=Success(UploadRecord),
            query=(
                Parameter("expires", "As in the link.", STRING, required=True),
                Parameter("signature", "As in the link.", STRING, required=True),
            ),
        ),
        post(
            "cloud_storage.upload_complete",
            f"{COLLECTION}/upload-complete/{{file}}",
            FILES_WRITE,
            uploads.complete,
            anywhere=True,
            body_bytes=small,
        ).described(
            body=RequestBody(UploadCompletion, {}, required=False), success=Success(FileRecord, ("ETag",), links=_LINKS)
        ),
        Operation(
            name="cloud_storage.upload",
            method="POST",
            path=COLLECTION,
            scope=FILES_WRITE,
            anywhere=True,
            take=uploads.upload,
            body_bytes=limits.file_bytes,
            body=raw,
            success=Success(FileRecord, ("ETag", "Location"), status=201, links=_LINKS),
            query=(
                OF_WORKSPACE,
                Parameter("fileName", "The name of the file; required for a new file.", FileName().schema(limits)),
                Parameter(
                    "contentType",
                    "The type of the file; with `fileName`, by default the type in the header.",
                    MediaType().schema(limits),
                ),
                Parameter("id", "The id of an existing file, which gets another version.", UUID),
                Parameter("sha256", "The SHA-256 that the bytes must have.", Sha256(description="").schema(limits)),
            ),
        ),
    )
