"""Execution of `ingestd pause`, `ingestd resume` and `ingestd run PIPELINE`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ingestd.core.clock import Now
from ingestd.core.phrases import counted, nearest
from ingestd.daemon.control.requests import ControlPipeline, PipelineControlled
from ingestd.daemon.pipeline_states import pause_phrase
from ingestd.mirror.reports import PipelinePause
from ingestd.mirror.sqlite import Observer
from ingestd.mirror.sqlite.pauses import PauseStore
from ingestd.settings.model import PipelineSettings
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.daemon import PipelinePaused, PipelineRequested, PipelineResumed


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineControl:
    """Pauses, resumes and reads pipelines. Call all methods on the event loop.

    ``pipelines`` returns the configured pipelines. ``use_pauses`` pauses the sources of exactly the given pipelines. ``read``
    requests a reading of a source now. ``deliver`` makes the lanes look for entries that may be sent again. The lock
    ``pausing`` is held from a change of the stored pauses until ``use_pauses`` is called with the new pauses.
    """

    pipelines: Callable[[], Sequence[PipelineSettings]]
    store: PauseStore
    status: Observer
    pausing: asyncio.Lock
    use_pauses: Callable[[Collection[str]], None]
    read: Callable[[str], None]
    deliver: Callable[[], None]
    now: Now
    emit: Emit

    async def perform(self, request: ControlPipeline, *, by: str) -> PipelineControlled:
        """Execute a request; ``by`` is the requesting account.

        Raises:
            MirrorError: the state file can't be written; nothing has changed.
        """
        name = request.pipeline
        async with self.pausing:
            match request.action:
                case "pause":
                    return await self._pause(name, by)
                case "resume":
                    return await self._resume(name, by)
                case "run":
                    return await self._read(name, by)

    async def _pause(self, name: str, by: str) -> PipelineControlled:
        if not self._is_configured(name):
            return self._unknown(name)
        is_new = await asyncio.to_thread(self.store.begin, name, at=self.now(), by=by)
        pauses = await self._pauses()
        if not is_new and name not in pauses:
            return self._unknown(name)
        if not is_new:
            return PipelineControlled(sentence=f"Pipeline {name} is {pause_phrase(pauses[name])} already.")
        self.use_pauses(pauses.keys())
        self.emit(PipelinePaused(pipeline=name, by=by))
        pending = counted(pauses[name].pending, "pending entry") if name in pauses else "no entry"
        return PipelineControlled(
            sentence=f"Pipeline {name} is paused: its source is not read, and its entries are not sent ({pending}) until "
            f"'ingestd resume {name}'. Requests in flight end."
        )

    async def _resume(self, name: str, by: str) -> PipelineControlled:
        """End a pause, so that pending entries are sent. The pipeline may be no longer configured."""
        pauses = await self._pauses()
        pause = pauses.pop(name, None)
        if pause is None:
            is_known = self._is_configured(name)
            return PipelineControlled(sentence=f"Pipeline {name} is not paused.") if is_known else self._unknown(name)
        if not await asyncio.to_thread(self.store.end, name):
            return self._unknown(name)
        self.use_pauses(pauses.keys())
        self.deliver()
        self.emit(PipelineResumed(pipeline=name, by=by))
        waits = counted(pause.pending, "pending entry")
        return PipelineControlled(sentence=f"Pipeline {name} is resumed, with {waits}.")

    async def _read(self, name: str, by: str) -> PipelineControlled:
        if not self._is_configured(name):
            return self._unknown(name)
        if (pause := (await self._pauses()).get(name)) is not None:
            sentence = f"Pipeline {name} is {pause_phrase(pause)}. 'ingestd resume {name}' ends the pause."
            return PipelineControlled(sentence=sentence, is_done=False)
        self.read(name)
        self.emit(PipelineRequested(pipeline=name, by=by))
        return PipelineControlled(sentence=f"The daemon reads pipeline {name} now. 'ingestd status' shows the result.")

    def _is_configured(self, name: str) -> bool:
        return any(pipeline.name == name for pipeline in self.pipelines())

    def _unknown(self, name: str) -> PipelineControlled:
        """Return the refusal for a pipeline that does not exist, or that a running reload renames or removes."""
        hint = nearest(name, [pipeline.name for pipeline in self.pipelines()])
        hint = hint or " Use 'ingestd reload' after a new pipeline."
        hint = " A reload renames or removes it now." if self._is_configured(name) else hint
        return PipelineControlled(sentence=f"There is no pipeline '{name}'.{hint}", is_done=False)

    async def _pauses(self) -> dict[str, PipelinePause]:
        return {one.pipeline: one for one in await asyncio.to_thread(self.status.pauses)}
