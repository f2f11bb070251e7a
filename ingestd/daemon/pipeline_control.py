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
    """Pauses, resumes and reads pipelines. Call it on the event loop.

    ``pipelines`` returns the configured pipelines. ``use_pauses`` has the sources of exactly these pipelines not read; ``read``
    has a source read now. ``deliver`` has the lanes look for entries that may be sent again.
    """

    pipelines: Callable[[], Sequence[PipelineSettings]]
    store: PauseStore
    status: Observer
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
        name, names = request.pipeline, [pipeline.name for pipeline in self.pipelines()]
        pause = (await self._pauses()).get(name)
        # The pause of a pipeline that is no longer configured can be ended, because its pending entries are then sent.
        if name not in names and (pause is None or request.action != "resume"):
            hint = nearest(name, names) or " Use 'ingestd reload' after a new pipeline."
            return PipelineControlled(sentence=f"There is no pipeline '{name}'.{hint}", is_done=False)
        match request.action:
            case "pause":
                return await self._pause(name, pause, by)
            case "resume":
                return await self._resume(name, pause, by)
            case "run":
                return self._read(name, pause, by)

    async def _pause(self, name: str, pause: PipelinePause | None, by: str) -> PipelineControlled:
        if pause is not None:
            return PipelineControlled(sentence=f"Pipeline {name} is {pause_phrase(pause)} already.")
        await asyncio.to_thread(self.store.begin, name, at=self.now(), by=by)
        pauses = await self._pauses()
        self.use_pauses(pauses.keys())
        self.emit(PipelinePaused(pipeline=name, by=by))
        pending = counted(pauses[name].pending, "pending entry") if name in pauses else "no entry"
        return PipelineControlled(
            sentence=f"Pipeline {name} is paused: its source is not read, and nothing of it is sent ({pending}) until "
            f"'ingestd resume {name}'. Requests in flight end."
        )

    async def _resume(self, name: str, pause: PipelinePause | None, by: str) -> PipelineControlled:
        if pause is None:
            return PipelineControlled(sentence=f"Pipeline {name} is not paused.")
        await asyncio.to_thread(self.store.end, name)
        self.use_pauses((await self._pauses()).keys())
        self.deliver()
        self.emit(PipelineResumed(pipeline=name, by=by))
        waits = counted(pause.pending, "pending entry")
        return PipelineControlled(sentence=f"Pipeline {name} is resumed, with {waits}.")

    def _read(self, name: str, pause: PipelinePause | None, by: str) -> PipelineControlled:
        if pause is not None:
            sentence = f"Pipeline {name} is {pause_phrase(pause)}. 'ingestd resume {name}' ends the pause."
            return PipelineControlled(sentence=sentence, is_done=False)
        self.read(name)
        self.emit(PipelineRequested(pipeline=name, by=by))
        return PipelineControlled(sentence=f"The daemon reads pipeline {name} now. 'ingestd status' shows the result.")

    async def _pauses(self) -> dict[str, PipelinePause]:
        return {one.pipeline: one for one in await asyncio.to_thread(self.status.pauses)}
