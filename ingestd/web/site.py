"""The pages and actions of the listener by path."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Literal, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

from ingestd.core.errors import IngestdError
from ingestd.core.phrases import counted
from ingestd.core.pipeline_state import DEFINITIONS
from ingestd.daemon.control.requests import (
    CheckDrift,
    ControlPipeline,
    DecideRun,
    PipelineControlled,
    Reload,
    Reloaded,
    Request,
    Response,
    RetryRejected,
    RollBack,
    RunDecided,
    RunsUndone,
)
from ingestd.daemon.reporting import describe_retries
from ingestd.mirror.drift import START
from ingestd.mirror.rejections import Retried, Selection
from ingestd.mirror.rollback import RunSelection
from ingestd.process.change_signal import ChangeSignal
from ingestd.process.pages.assets import CACHED, PageAssets
from ingestd.settings.drift import Mode
from ingestd.web.export_streams import ExportStreams
from ingestd.web.forms import ActionResult, Forms
from ingestd.web.live import LiveRows
from ingestd.web.message import WebRequest, WebResponse, text_response
from ingestd.web.pages import PageContent, PageContents, PageMissing, selection_of
from ingestd.web.renderer import PageRenderer

T = TypeVar("T")
Handler: TypeAlias = Callable[..., Awaitable[WebResponse]]

_HTML = "text/html; charset=utf-8"
_ACTOR = "web page"
_IDS_AT_MOST = 90
_DRIFT_SECONDS = 20.0
"""The time that the response to a drift check waits for the end of the check. The check continues after this time."""
_MODES: Mapping[str, Mode] = {"": "report", "repair": "repair", "adopt": "adopt"}


class Site:
    """The pages of one daemon. ``executor`` runs the reads. ``perform`` executes an action in the same way as for a command.

    ``acts``: whether actions are accepted. Actions are refused if other accounts of the machine can connect without a token.
    """

    def __init__(
        self,
        pages: PageContents,
        *,
        perform: Callable[[Request, str], Awaitable[Response]],
        executor: Executor,
        changes: ChangeSignal,
        acts: bool,
    ) -> None:
        self._pages = pages
        self._perform = perform
        self._executor = executor
        self._acts = acts
        self._assets = PageAssets("ingestd.web", prefix="/assets")
        self._renderer = PageRenderer(self._assets)
        self._forms = Forms()
        self._live = LiveRows(changes, self._rows)
        self._exports = ExportStreams(self._in_thread)
        self._drift_checks: set[asyncio.Future[Response]] = set()
        self._routes: list[tuple[str, re.Pattern[str], Handler]] = [
            *(("GET", path, partial(self._page, read)) for path, read in _page_readers(pages)),
            ("GET", re.compile(r"/live"), self._stream),
            ("GET", re.compile(r"/assets/(?P<name>[\w.-]+)"), self._asset),
            ("GET", re.compile(r"/rejected\.csv"), self._export),
            ("POST", re.compile(r"/rejected/retry"), self._retry),
            ("POST", re.compile(r"/drift/check"), self._check_drift),
            ("POST", re.compile(r"/configuration/reload"), self._reload),
            ("POST", re.compile(r"/pipelines/(?P<name>[a-z0-9_-]+)/(?P<verb>pause|resume|run)"), self._control),
            ("POST", re.compile(r"/held/(?P<number>[1-9][0-9]{0,17})/(?P<verb>approve|discard)"), self._decide),
            ("POST", re.compile(r"/runs/(?P<number>[1-9][0-9]{0,17})/rollback"), self._roll_back),
        ]

    async def respond(self, request: WebRequest) -> WebResponse | None:
        """Return the response to a request for a page; None if no page has this path."""
        methods = set()
        for method, pattern, handler in self._routes:
            match = pattern.fullmatch(request.path)
            if match is None:
                continue
            methods.add(method)
            if method == ("GET" if request.method == "HEAD" else request.method):
                return await self._guarded(request, handler, match.groupdict())
        if methods:
            allowed = ", ".join(sorted(methods))
            return text_response(405, f"This path accepts only {allowed}.", ("Allow", allowed))
        return None

    async def _guarded(self, request: WebRequest, handler: Handler, values: Mapping[str, str]) -> WebResponse:
        if request.method == "POST" and not self._acts:
            return self._failure(403, "Actions need a token or a Unix socket (listen); see docs/monitoring.md.")
        if request.method == "POST" and not self._forms.accepts(request):
            return self._failure(403, "This form is from another page, or from before a restart. Open the page again.")
        try:
            return await handler(request, **values)
        except PageMissing as error:
            return self._failure(404, str(error))
        except ValueError:
            return self._failure(400, "The request has a field that can't be used.")
        except IngestdError as error:
            return self._failure(503, str(error))

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    # ------------------------------------------------------------------------------------------------ pages

    async def _export(self, request: WebRequest) -> WebResponse:
        if self._exports.is_full:
            return text_response(503, "Too many exports are being sent. Try again later.", ("Retry-After", "60"))
        stream = await self._exports.begin(self._pages.export(selection_of(request.parameters)))
        name = ("Content-Disposition", 'attachment; filename="rejected.csv"')
        return WebResponse(stream=stream, content_type="text/csv; charset=utf-8", headers=(name,))

    async def _asset(self, _: WebRequest, name: str) -> WebResponse:
        asset = self._assets.find(name)
        if asset is None:
            raise PageMissing("There is no such file. Reload the page.")
        return WebResponse(body=asset.body, content_type=asset.media_type, headers=(CACHED, ("ETag", asset.tag)))

    async def _stream(self, request: WebRequest) -> WebResponse:
        state = _state_filter(request.parameters)
        if self._live.is_full:
            return text_response(503, "Too many pages are live. Reload this page later.", ("Retry-After", "60"))
        content_type = "text/event-stream; charset=utf-8"
        return WebResponse(content_type=content_type, stream=partial(self._live.stream, state))

    async def _rows(self, state: str) -> str:
        def read() -> str:
            return self._render("live_overview.html", **self._pages.overview(state=state).values).decode()

        return await self._in_thread(read)

    async def _page(self, read: Callable[..., PageContent], request: WebRequest, **values: str) -> WebResponse:
        fields = request.parameters
        result = self._forms.result(fields.get("done", ""))

        def render() -> bytes:
            page = read(fields, **values)
            common = {"title": page.title, "section": page.section, "result": result}
            return self._render(page.template, **common, **page.values)

        return WebResponse(body=await self._in_thread(render), content_type=_HTML)

    def _failure(self, status: int, sentence: str) -> WebResponse:
        values = {"title": "Not possible", "section": "", "result": None, "sentence": sentence}
        return WebResponse(status=status, body=self._render("failure.html", **values), content_type=_HTML)

    def _render(self, template: str, **values: object) -> bytes:
        return self._renderer.render(template, acts=self._acts, form_token=self._forms.token, **values).encode(
            "utf-8", "backslashreplace"
        )

    # ------------------------------------------------------------------------------------------------ actions

    async def _act(self, request: Request, kind: type[T]) -> T:
        """Perform an action, even if the client disconnects. Return the response, which has the type ``kind``."""
        done = await asyncio.shield(self._perform(request, _ACTOR))
        if not isinstance(done, kind):
            raise TypeError(f"the response to {request!r} is {done!r}")
        return done

    async def _retry(self, request: WebRequest) -> WebResponse:
        fields = request.form
        page = f"/rejected?{urlencode(_filters(selection_of(fields)))}&"
        ids = [int(name.removeprefix("id-")) for name in fields if name.startswith("id-")]
        if len(ids) > _IDS_AT_MOST or (not ids and "all" not in fields):
            return self._done(page, "Nothing was selected.", is_done=False)
        selection = selection_of({} if ids else fields, ids)
        done = await self._act(RetryRejected(selection=selection), Retried)
        return self._done(
            page,
            f"Pending again: {counted(done.entries, 'entry')}. Mapped again when their source is read: "
            f"{counted(done.records, 'record')}.",
        )

    async def _control(self, request: WebRequest, name: str, verb: Literal["pause", "resume", "run"]) -> WebResponse:  # noqa: ARG002 - a handler
        done = await self._act(ControlPipeline(pipeline=name, action=verb), PipelineControlled)
        return self._done(f"/pipelines/{name}", done.sentence, is_done=done.is_done)

    async def _decide(self, request: WebRequest, number: str, verb: str) -> WebResponse:  # noqa: ARG002 - a handler
        run = int(number)
        decision = DecideRun(run=run, decision="approved" if verb == "approve" else "discarded")
        done = await self._act(decision, RunDecided)
        if done.refusal:
            return self._done("/held", done.refusal, is_done=False)
        if verb == "discard":
            return self._done("/held", f"Run {run} of {done.partition} is discarded; delivered entries stay.")
        when = "They are sent when the pipeline is resumed." if done.paused else "The daemon sends them now."
        return self._done(
            "/held",
            f"Run {run} of {done.partition} is approved: {done.created} created, {done.updated} updated, "
            f"{done.removed} removed. {when}",
        )

    async def _roll_back(self, request: WebRequest, number: str) -> WebResponse:  # noqa: ARG002 - a handler
        selection = RunSelection(run=int(number))
        response = await self._act(RollBack(selection=selection, only_plan=False), RunsUndone)
        if response.done is None:
            return self._done("/held", response.refusal, is_done=False)
        done = response.done
        unchecked = "".join(f" Not compared with the service: {one}" for one in response.unchecked)
        return self._done(
            f"/pipelines/{done.runs[0].pipeline}",
            f"Run {number} is rolled back: {done.restored} restored, {done.removed} removed, {done.created} created, "
            f"{done.left_count} left. The daemon sends the values now.{unchecked}",
        )

    async def _check_drift(self, request: WebRequest) -> WebResponse:
        fields = request.form
        pipeline, mode = fields.get("pipeline", ""), _MODES.get(fields.get("mode", ""))
        if mode is None:
            raise ValueError("the form has an unknown mode")
        names = await self._in_thread(lambda: self._pages.pipeline_names(pipeline))
        page = f"/drift?pipeline={quote(pipeline)}&"
        if self._drift_checks:
            return self._done(page, "A check is running already. Reload this page to see its result.", is_done=False)
        check = asyncio.ensure_future(self._perform(CheckDrift(pipelines=names, mode=mode), _ACTOR))
        self._drift_checks.add(check)
        check.add_done_callback(self._end_drift_check)
        ended, _ = await asyncio.wait({check}, timeout=_DRIFT_SECONDS)
        if not ended:
            return self._done(page, "The check takes longer and goes on. Reload this page to see its result.")
        results = check.result()
        if not isinstance(results, tuple):
            raise TypeError(f"the response to a check for drift is {results!r}")
        compared = sum(one.status is not None and not one.status.failure for one in results)
        handled = sum(one.handled for one in results)
        what = {"report": "", "repair": f" Entries sent again: {handled}.", "adopt": f" Entries adopted: {handled}."}
        return self._done(page, f"Data sinks compared: {compared} of {len(results)}.{what[mode]}")

    def _end_drift_check(self, check: asyncio.Future[Response]) -> None:
        self._drift_checks.discard(check)
        if not check.cancelled():
            check.exception()  # marks the exception as retrieved: a waiting response raises it for the log and the page

    async def _reload(self, request: WebRequest) -> WebResponse:  # noqa: ARG002 - a handler
        done = await self._act(Reload(), Reloaded)
        if done.mistakes:
            return self._done("/configuration", "Nothing was changed, because the file has mistakes.", is_done=False)
        counts = (
            ("added", done.added),
            ("removed", done.removed),
            ("renamed", done.renamed),
            ("restarted", done.restarted),
        )
        changed = ", ".join(f"{len(names)} {verb}" for verb, names in counts if names) or "none changed"
        sentences = (f"Reloaded. Pipelines: {changed}, {done.unchanged} unchanged.", *describe_retries(done))
        return self._done("/configuration", " ".join(sentences))

    def _done(self, path: str, sentence: str, *, is_done: bool = True) -> WebResponse:
        number = self._forms.remember(ActionResult(sentence=sentence, is_done=is_done))
        return WebResponse(
            status=303, headers=(("Location", f"{path}{'' if path.endswith('&') else '?'}done={quote(number)}"),)
        )


def _page_readers(pages: PageContents) -> Iterator[tuple[re.Pattern[str], Callable[..., PageContent]]]:
    """Yield a path pattern and a function for each page. The function's arguments: the query's fields, the path's groups."""
    yield re.compile(r"/"), lambda fields: pages.overview(state=_state_filter(fields))
    yield re.compile(r"/pipelines/(?P<name>[a-z0-9_-]+)"), lambda _, name: pages.pipeline(name)
    yield re.compile(r"/files"), lambda fields: pages.file(fields.get("name", ""))
    yield re.compile(r"/trace"), lambda fields: pages.trace(fields.get("key", ""), steps=fields.get("steps", "") == "1")
    yield (
        re.compile(r"/rejected"),
        lambda fields: pages.rejected(selection_of(fields), after=_row_number(fields.get("after", "0"))),
    )
    yield re.compile(r"/drift"), lambda fields: pages.drift(fields.get("pipeline", ""), after=_drift_position(fields))
    yield re.compile(r"/configuration"), lambda _: pages.configuration()
    yield re.compile(r"/held"), lambda _: pages.held_runs()
    yield (
        re.compile(r"/held/(?P<number>[1-9][0-9]{0,17})"),
        lambda fields, number: pages.held_run(int(number), after=fields.get("after", "")),
    )
    yield re.compile(r"/runs/(?P<number>[1-9][0-9]{0,17})/rollback"), lambda _, number: pages.rollback(int(number))


def _state_filter(fields: Mapping[str, str]) -> str:
    """Return the state that a query names, or an empty text.

    Raises:
        ValueError: there is no such state.
    """
    state = fields.get("state", "")
    if state and state not in DEFINITIONS:
        raise ValueError("there is no such state")
    return state


def _drift_position(fields: Mapping[str, str]) -> tuple[int, str]:
    return (_row_number(fields["after"]), fields.get("key", "")) if "after" in fields else START


def _filters(selection: Selection) -> dict[str, str]:
    """Return the fields of the form that shows a selection."""
    return {name: text for name in ("pipeline", "reason", "file", "key") if (text := getattr(selection, name))}


def _row_number(text: str) -> int:
    """Return the number of a row in the state file.

    Raises:
        ValueError: the text is not a number, or the number is out of range.
    """
    number = int(text)
    if not 0 <= number < 2**62:
        raise ValueError("the number is out of range")
    return number
