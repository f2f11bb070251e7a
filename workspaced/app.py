"""The service as an ASGI application. This module creates and connects the objects of all parts."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from prometheus_client import CollectorRegistry

from workspaced import __version__
from workspaced.core.asgi import Receive, Scope, Send
from workspaced.core.clock import Clock
from workspaced.core.problems import UnavailableProblem
from workspaced.events.fan_out import FAN_OUT, any_waiting, fan_out
from workspaced.http.dispatch import Dispatch
from workspaced.http.openapi.document import document
from workspaced.http.openapi.routes import Publication
from workspaced.http.operations import Operation
from workspaced.http.paths import raw_path_of
from workspaced.http.tracing import Tracing
from workspaced.resources.api_keys import routes as api_keys
from workspaced.resources.api_sections import api_sections
from workspaced.resources.audit import routes as audit_log
from workspaced.resources.blocks import routes as blocks
from workspaced.resources.blocks import store as block_store
from workspaced.resources.cloud_storage import download_routes, file_routes, upload_routes
from workspaced.resources.cloud_storage import retention as file_retention
from workspaced.resources.cloud_storage import store as file_store
from workspaced.resources.cloud_storage.links import UploadLinks, open_secret, resolve_secret
from workspaced.resources.cloud_storage.table_files import TableFiles
from workspaced.resources.cloud_storage.worker import ConversionWorker
from workspaced.resources.data_sinks import group_routes, history_routes, history_store, origin_store
from workspaced.resources.data_sinks import routes as data_sinks
from workspaced.resources.data_sinks import store as sink_store
from workspaced.resources.data_sinks.values import CHANGES, DELETED_SINKS, SINKS
from workspaced.resources.health import routes as health
from workspaced.resources.webhooks import delivery_log, delivery_routes
from workspaced.resources.webhooks import routes as webhooks
from workspaced.resources.webhooks import store as webhook_store
from workspaced.resources.webhooks.worker import Worker
from workspaced.resources.workspaces import retention
from workspaced.resources.workspaces import routes as workspaces
from workspaced.resources.writer_leases import routes as writer_leases
from workspaced.security import audit_log as audit
from workspaced.security import key_store as access_store
from workspaced.security.authentication import Authentication
from workspaced.security.egress.client import Resolver, system_resolver
from workspaced.security.key_fingerprint import require_same_key
from workspaced.security.leased_rate_limit import LeasedRateLimit
from workspaced.security.rate_limits import Limit, Policy, RateLimit
from workspaced.security.secret_box import SecretBox
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage import writers
from workspaced.storage.blobs.blobs import Blobs
from workspaced.storage.blobs.factory import create_blob_store
from workspaced.storage.blobs.file_threads import FileThreads
from workspaced.storage.blobs.received_bytes import IncomingFolder
from workspaced.storage.constants import resolve_constant
from workspaced.storage.factory import create_store
from workspaced.storage.incremental_job import IncrementalJob
from workspaced.storage.maintenance_jobs import JobLeases, MaintenanceJobs
from workspaced.storage.port import StorageUnusable, Transaction
from workspaced.storage.startup import Startup
from workspaced.telemetry.levels import Levels, read_levels
from workspaced.telemetry.metrics import Metrics
from workspaced.ui.application import Pages
from workspaced.ui.sessions import Sessions

# The steps of the purge of a workspace. Rows that refer to other rows are removed first.
_PURGE_STEPS = (sink_store.purge, file_store.purge, block_store.purge, access_store.purge)


class Application:
    """The ASGI application. It serves requests within `started`."""

    def __init__(
        self,
        settings: WorkspacedSettings,
        *,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        resolve: Resolver = system_resolver,
    ) -> None:
        """``clock``, ``jitter`` and ``resolve`` are replaced only by tests, so that the tests need not wait."""
        self.end: Callable[[], None] = lambda: None
        """The server's callback: called when the started service can never serve requests. `unusable` then has the reason."""
        self.unusable: StorageUnusable | None = None
        self._settings = settings
        self.metrics = Metrics(CollectorRegistry())
        self._store = create_store(
            settings.database,
            folder=settings.data,
            readers=settings.readers,
            streams=settings.streams,
            busy_seconds=settings.busy_seconds,
            group_callers=settings.group_callers,
            observer=self.metrics.committed,
        )
        self._leased_limits: list[LeasedRateLimit] = []
        shared = self._store.clock
        self.clock = clock or shared
        limits = settings.limits
        failures = limits.failed_authentications_per_minute
        self._authentication = Authentication(
            self._store,
            failures=self._create_limit("failed-authentications", failures, failures),
            cache_seconds=settings.key_cache_seconds,
            now=shared.now,
            count_failure=self.metrics.authentication_failed,
        )
        self._draining = False
        self._secret_box = SecretBox(settings.encryption_key)
        self._file_threads = FileThreads()
        self._incoming = IncomingFolder(settings.blob_folder / "incoming", self._file_threads)
        self._blobs = Blobs(
            create_blob_store(settings.blobs, self._file_threads), self._store, self._incoming, now=self.clock.now
        )
        self._upload_links = UploadLinks()
        self.publication = Publication(
            lambda: document(self.operations, api_sections(limits), limits=settings.limits, version=__version__)
        )
        self.operations = self._list_operations()
        rate = self._create_limit("default", limits.requests_per_minute, limits.request_burst)
        self._dispatch = Dispatch(
            self.operations,
            path_headers=(data_sinks.path_headers(limits),),
            settings=settings,
            store=self._store,
            authentication=self._authentication,
            is_public=partial(workspaces.is_public, self._store),
            rate=rate,
            metrics=self.metrics,
            now=self.clock.now,
        )
        self._sessions = Sessions(self._store, self._authentication, rate=rate, limits=limits, now=shared.now)
        self._pages = Pages(
            respond=self._dispatch.respond,
            schema_of=self.publication.schema_of,
            sessions=self._sessions,
            proxies=settings.proxies,
            limits=limits,
            read_table_file=TableFiles(self._incoming, settings.conversion).read,
        )
        self._stop_seconds = settings.deliveries.stop_seconds
        self._deliveries = Worker(
            self._store,
            self._secret_box,
            rules=settings.egress,
            settings=settings.deliveries,
            clock=self.clock,
            jitter=jitter,
            resolve=resolve,
            observer=self.metrics.attempted,
        )
        self._conversions = ConversionWorker(self._store, self._blobs, settings=settings.conversion, clock=self.clock)
        self._maintenance_jobs = MaintenanceJobs(
            self._list_maintenance_jobs(),
            leases=JobLeases(self._store, now=shared.now),
            every_seconds=settings.maintenance_seconds,
            observer=self.metrics.maintenance_job_ended,
        )
        self._jobs = self._list_incremental_jobs()
        self._startup = Startup(self._prepare)
        self._web = Tracing(self._forward, self.metrics, log_successes=settings.log_requests)

    def _create_limit(self, name: str, per_minute: int, burst: int) -> Limit:
        policy = Policy(name, per_minute, burst)
        if not self._settings.postgres:
            return RateLimit(policy, clock=time.monotonic)
        leased = LeasedRateLimit(policy, self._store, clock=time.monotonic)
        self._leased_limits.append(leased)
        return leased

    def _list_operations(self) -> tuple[Operation, ...]:
        limits = self._settings.limits
        return (
            *health.operations(self._require_ready),
            *workspaces.operations(limits),
            *data_sinks.operations(limits),
            *group_routes.operations(limits),
            *history_routes.operations(limits),
            *writer_leases.operations(limits),
            *blocks.operations(limits),
            *api_keys.operations(limits),
            *audit_log.operations(limits),
            *webhooks.operations(limits, self._secret_box),
            *delivery_routes.operations(limits, self._secret_box),
            *upload_routes.operations(limits, self._blobs, self._upload_links, self._authentication.verify_again),
            *file_routes.operations(limits),
            *download_routes.operations(self._blobs),
            *self.publication.operations(pages=self._settings.docs),
        )

    def _list_maintenance_jobs(self) -> dict[str, Callable[[], Awaitable[int]]]:
        settings, limits, shared = self._settings, self._settings.limits, self._store.clock

        def ago(days: int) -> int:
            return shared.now() - days * 86_400_000

        return {
            "purge_workspaces": lambda: retention.purge(
                self._store, _PURGE_STEPS, before=ago(limits.deleted_days), now=shared.now()
            ),
            "drop_audit_log": lambda: audit.drop_older(self._store, before=ago(limits.audit_days)),
            "purge_files": lambda: file_retention.purge_deleted(
                self._store, before=ago(limits.deleted_days), now=shared.now()
            ),
            "drop_uploads": lambda: file_retention.remove_expired_uploads(self._store, now=shared.now()),
            "sweep_blobs": lambda: file_retention.sweep(self._store, self._blobs, now=self.clock.now()),
            "drop_old_entry_changes": lambda: history_store.drop_old(
                self._store, default=settings.history, now=self.clock.now()
            ),
            "drop_unused_origins": lambda: origin_store.drop_unused(self._store, now=self.clock.now()),
            "drop_old_events": lambda: delivery_log.remove_older(
                self._store, before=ago(settings.deliveries.keep_days)
            ),
            "drop_ended_sessions": self._sessions.drop_ended,
            "drop_full_buckets": self._drop_full_buckets,
            "drop_old_writers": lambda: writers.drop_older(self._store, before=ago(writers.KEPT_DAYS)),
        }

    async def _drop_full_buckets(self) -> int:
        return sum([await limit.drop_full() for limit in self._leased_limits])

    def _list_incremental_jobs(self) -> tuple[IncrementalJob, ...]:
        settings = self._settings
        seldom = partial(IncrementalJob, store=self._store, every_seconds=settings.maintenance_seconds)
        return (
            seldom(
                "remove_deleted_sinks",
                channel=DELETED_SINKS,
                pending=sink_store.any_deleted,
                step=sink_store.remove_deleted,
                rows=1_000,
            ),
            seldom(
                "remove_deleted_webhooks",
                channel=webhook_store.DELETED_WEBHOOKS,
                pending=webhook_store.any_deleted,
                step=webhook_store.remove_deleted,
                rows=200,
            ),
            seldom(
                "drop_excess_entry_changes",
                channel=CHANGES,
                pending=history_store.has_excess,
                step=partial(history_store.drop_excess, default=settings.history),
                rows=1_000,
            ),
            IncrementalJob(
                "fan_out_events",
                self._store,
                channel=FAN_OUT,
                pending=any_waiting,
                step=fan_out,
                rows=1_000,
                every_seconds=settings.deliveries.sweep_seconds,
            ),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of the ASGI server."""
        await self._web(scope, receive, send)

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request to the pages if the first segment of its raw path is ``ui``; else to the API."""
        is_page = raw_path_of(scope).removeprefix(b"/").partition(b"/")[0] == b"ui"
        await (self._pages if is_page else self._dispatch)(scope, receive, send)

    @asynccontextmanager
    async def started(self) -> AsyncIterator[None]:
        """Run the service until the context ends.

        Raises:
            StorageUnusable: the database or the data folder can't be used.
        """
        try:
            await self._incoming.start()
            await self._store.start()
            startup = self._startup
            await startup.first()
            starting = asyncio.create_task(startup.retry_until_ready())
            starting.add_done_callback(self._note_unusable)
            self._store.listen(SINKS, self._pages.live.wake)
            maintenance_jobs = asyncio.create_task(startup.then(self._maintenance_jobs.run))
            jobs = [asyncio.create_task(startup.then(job.run)) for job in self._jobs]
            delivering = asyncio.create_task(startup.then(self._deliveries.run))
            converting = asyncio.create_task(startup.then(self._conversions.run))
            try:
                yield
            finally:
                self.end_streams()
                startup.stop()
                await asyncio.wait([starting])
                for task in (maintenance_jobs, *jobs):
                    task.cancel()
                converting.cancel()  # conversions may take minutes, so they are released and start again later
                self._deliveries.stop()
                await asyncio.wait([delivering], timeout=self._stop_seconds)
                delivering.cancel()  # attempts that are still in progress are released and repeated later
                await asyncio.wait([maintenance_jobs, *jobs, delivering, converting])
        finally:
            await self._authentication.close()
            await self._store.stop()
            await self._file_threads.stop()

    def _note_unusable(self, starting: asyncio.Task[None]) -> None:
        """End the service if its preparation (`_prepare`) failed permanently in a retry."""
        error = None if starting.cancelled() else starting.exception()
        if isinstance(error, StorageUnusable):
            self.unusable = error
            self.end()

    async def _prepare(self) -> None:
        """Prepare the service: check the stores, apply the constants of the data, and encrypt plain-text secrets."""
        await self._store.require_room()
        await self._blobs.identity.check()
        await self._apply_constants()
        if self._secret_box.seals:
            await self._store.write(lambda tx: webhook_store.seal_plain_texts(tx, self._secret_box))
        now = self._store.clock.now()
        await self._store.write(lambda tx: webhook_store.enable_readable(tx, self._secret_box, now=now))

    async def _apply_constants(self) -> None:
        """Apply the constants of the data: the encryption key, the prefix of visible ids, and the secret of upload links."""

        def resolve(tx: Transaction) -> tuple[str, str]:
            is_lost = require_same_key(tx, self._secret_box, lost=self._settings.lost_encryption_key)
            wanted = self._settings.visible_id_prefix
            prefix = resolve_constant(tx, "visible_id_prefix", wanted, default="SNK")
            return prefix, resolve_secret(tx, self._secret_box, renew=is_lost)

        prefix, stored = await self._store.write(resolve)
        self._upload_links.use_secret(lambda: open_secret(stored, self._secret_box))
        self._dispatch.configure(dataclasses.replace(self._settings, visible_id_prefix=prefix))

    def drain(self) -> None:
        """Prepare for the stop: /readyz returns 503, workers start no new work, and all other requests are still served."""
        self._draining = True
        self._deliveries.stop()
        self._conversions.stop()

    def end_streams(self) -> None:
        """End the event streams of live pages, which never end by themselves; the browsers connect again."""
        self._pages.live.close()

    async def run_maintenance(self) -> None:
        """Run all periodic and incremental jobs once, now."""
        await self._maintenance_jobs.once()
        for job in self._jobs:
            await job.finish()

    @property
    def draining(self) -> bool:
        """Whether `drain` was called."""
        return self._draining

    async def levels(self) -> Levels:
        """Return the sizes of the queues, for metrics."""
        return await read_levels(self._store)

    async def _require_ready(self) -> None:
        if self._draining:
            raise UnavailableProblem("stopping", "The service is stopping.")
        await self.check()

    async def check(self) -> None:
        """Check that the service has started, can read and write, and uses the blob store that the database names.

        Raises:
            UnavailableProblem: a check fails.
        """
        await self._store.check()
        self._startup.require_done()
        await self._store.read_brief(self._blobs.identity.require_current)


def create_app(settings: WorkspacedSettings) -> Application:
    """Return the application, not yet started."""
    return Application(settings)


@asynccontextmanager
async def running(
    settings: WorkspacedSettings,
    *,
    clock: Clock | None = None,
    jitter: Callable[[], float] = random.random,
    resolve: Resolver = system_resolver,
) -> AsyncIterator[Application]:
    """Run the application without a server, for ``httpx.ASGITransport(app=…)``."""
    app = Application(settings, clock=clock, jitter=jitter, resolve=resolve)
    async with app.started():
        yield app
