"""Asynchronous twins of what takes long, for any event loop: a notebook's, a script's, uvloop's.

They do what their namesakes do, with requests in threads of the client's own and pauses on the caller's loop. A
thousand waits take a thousand small tasks and a handful of threads. Cancelling one ends it at its next step; a job that
was submitted goes on at the service.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from voxframe import options as opt
from voxframe.errors import ServiceError
from voxframe.service import waiting
from voxframe.service.jobs import Jobs
from voxframe.service.llm import LanguageModel
from voxframe.service.llm_requests import LlmOptions, Question, Transcripts
from voxframe.service.llm_results import LlmResponse
from voxframe.service.redacted import RedactedAudio, RedactedAudioEndpoint
from voxframe.service.transcript import Transcript
from voxframe.service.upload import Media


class AsyncTwins(Jobs, RedactedAudioEndpoint, LanguageModel):
    """What takes long, awaited."""

    async def upload_async(self, media: Media, *, progress: bool | None = None) -> str:
        """As `upload`, awaited."""
        return await self._http.workers.call(self.upload, media, progress=progress)

    async def submit_async(
        self, audio: Media, *, progress: bool | None = None, **options: Unpack[opt.TranscriptOptions]
    ) -> Transcript:
        """As `submit`, awaited."""
        return await self._http.workers.call(self.submit, audio, progress=progress, **options)

    async def transcribe_async(
        self,
        audio: Media,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the job's time, not the task's: it goes on at the service
        progress: bool | None = None,
        **options: Unpack[opt.TranscriptOptions],
    ) -> Transcript:
        """As `transcribe`, awaited.

        Example:
            >>> transcripts = await asyncio.gather(*map(client.transcribe_async, paths))  # doctest: +SKIP
        """
        handle = await self.submit_async(audio, progress=progress, **options)
        return await self.wait_async(handle, timeout=timeout, progress=progress)

    async def wait_async(
        self,
        transcript: Transcript | str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
        progress: bool | None = None,
    ) -> Transcript:
        """As `wait`, awaited."""
        handle = self._given(transcript)
        try:
            await waiting.run_async(self._wait_steps(handle, timeout, progress), self._http.workers)
        except ServiceError as stopped:
            stopped.add_note(waiting.how_to_go_on(handle))
            raise
        return handle

    async def wait_all_async(
        self,
        transcripts: Iterable[Transcript | str],
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
        progress: bool | None = None,
    ) -> list[Transcript]:
        """As `wait_all`, awaited."""
        handles = self._handles(transcripts)
        await waiting.run_async(self._wait_all_steps(handles, timeout, progress), self._http.workers)
        return handles

    async def redacted_audio_async(
        self,
        transcript_id: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
        progress: bool | None = None,
    ) -> RedactedAudio:
        """As `redacted_audio`, awaited."""
        found: list[RedactedAudio] = []
        steps = self._redacted_steps(transcript_id, found.append, timeout, progress)
        await waiting.run_async(steps, self._http.workers)
        return found[0]

    async def summarize_async(
        self,
        transcripts: Transcripts | None = None,
        *,
        answer_format: str | None = None,
        **options: Unpack[LlmOptions],
    ) -> LlmResponse:
        """As `summarize`, awaited."""
        return await self._http.workers.call(self.summarize, transcripts, answer_format=answer_format, **options)

    async def ask_async(
        self,
        questions: str | Question | Iterable[str | Question],
        transcripts: Transcripts | None = None,
        **options: Unpack[LlmOptions],
    ) -> LlmResponse:
        """As `ask`, awaited."""
        return await self._http.workers.call(self.ask, questions, transcripts, **options)

    async def task_async(
        self, prompt: str, transcripts: Transcripts | None = None, **options: Unpack[LlmOptions]
    ) -> LlmResponse:
        """As `task`, awaited."""
        return await self._http.workers.call(self.task, prompt, transcripts, **options)

    async def action_items_async(
        self,
        transcripts: Transcripts | None = None,
        *,
        answer_format: str | None = None,
        **options: Unpack[LlmOptions],
    ) -> LlmResponse:
        """As `action_items`, awaited."""
        return await self._http.workers.call(self.action_items, transcripts, answer_format=answer_format, **options)
