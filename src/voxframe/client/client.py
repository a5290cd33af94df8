"""The client: every operation of the service as a method."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, Unpack
from urllib.parse import urlsplit

from voxframe._forwarding import forwarded
from voxframe.client import api, llm, transfers
from voxframe.client.api import View
from voxframe.client.async_bridge import run, run_async
from voxframe.client.http import Transport
from voxframe.client.llm import (
    LanguageModelApi,
    LlmOptions,
    LlmQuestion,
    LlmResponse,
    Purge,
    RateLimitStatus,
    Transcripts,
    format_field,
)
from voxframe.client.response import HTTPResponse, clean
from voxframe.client.transcript import Transcript, steps_for_many
from voxframe.client.transfers import Media, RedactedAudio, UploadSource, remote_url
from voxframe.errors import OptionError, SettingsError
from voxframe.options import LIST_LIMIT, TranscriptOptions, check, takes_options
from voxframe.settings import Settings
from voxframe.validators import checked_timeout

if TYPE_CHECKING:  # clients that do not stream need not import the streaming half
    from voxframe.client.stream import Stream
    from voxframe.client.stream.audio import StreamSource
    from voxframe.client.stream.stream_options import StreamOptions

#: `list` is a method of the class.
_Handles: TypeAlias = list[Transcript]


class Client:
    """A client of a transcription service. It can be shared by threads; `voxframe.connect` makes one.

    Methods that take long have an async version with the suffix `_async` and the same arguments. It runs requests in
    threads of the client and pauses on the caller's event loop. Cancelling it stops the wait at the next step; a job
    that was submitted continues at the service.

    An invalid argument raises an `OptionError` before anything is sent. A request that fails raises a `ServiceError`.

    Args:
        settings: Settings with a base URL and a key.
        transport: Makes the requests; by default a `Transport` with the base URL and key.

    Attributes:
        base_url: Base URL of the service.
        settings: The settings.
        transport: The transport.
    """

    def __init__(self, settings: Settings, *, transport: Transport | None = None) -> None:
        if settings.base_url is None or settings.api_key is None:
            raise SettingsError("a client needs base_url and api_key; voxframe.connect() finds them")
        self.settings = settings
        self.base_url = settings.base_url
        self.transport = transport or Transport(
            settings.base_url,
            settings.api_key,
            response_timeout_s=settings.timeout,
            max_response_bytes=int(settings.max_response_mb * 2**20),
        )
        self._llm = LanguageModelApi(self.transport, settings.llm_prefix)

    def __reduce__(self) -> tuple[Any, ...]:
        from voxframe.client.embedded import is_embedded

        # The key is never pickled: a copy looks it up again. The package is imported, because it holds this module.
        settings = dataclasses.replace(self.settings, api_key=None)
        return sys.modules[__package__].reconnect, (settings, is_embedded(self.base_url))

    @property
    def is_local(self) -> bool:
        """True if the service runs on this machine."""
        return self.transport.is_local

    # Jobs

    def upload(self, media: Media, *, progress: bool | None = None) -> str:
        """Upload a recording.

        Args:
            media: Path, bytes, or binary file. Files of any size are streamed.
            progress: Show a progress bar. None (default): only in an interactive session, after one second.

        Returns:
            A URL that can be submitted as audio with the same API key.

        Raises:
            AudioError: The recording cannot be read or is empty; nothing was sent.
            ServiceError: The upload failed.
        """
        return transfers.upload(self.transport, UploadSource(media), progress)

    @forwarded(upload)
    async def upload_async(self, *args: Any, **options: Any) -> str:
        """Async version of `upload`."""
        return await self.transport.workers.call(self.upload, *args, **options)

    @takes_options
    def submit(self, audio: Media, *, progress: bool | None = None, **options: Unpack[TranscriptOptions]) -> Transcript:
        """Start a transcription job without waiting for it.

        All arguments are checked before anything is sent. A request that may have reached the service is not repeated,
        because the job might be charged twice.

        Args:
            audio: Path, bytes, binary file, http or https URL, or a URL returned by `upload`.
            progress: Show the progress of an upload.
            **options: Options of the job; see `voxframe.options.TranscriptOptions`.

        Returns:
            A handle on the job.

        Raises:
            OptionError: An option is invalid; nothing was sent.
            AudioError: The audio cannot be read; nothing was sent.
            ServiceError: The job could not be started. `possibly_delivered` is True if it may exist nevertheless.
        """
        body = check(**options)
        url = remote_url(audio)
        if url is None:
            recording = UploadSource(audio)
            label, source, url = recording.label, recording.path, transfers.upload(self.transport, recording, progress)
        else:
            label, source = urlsplit(url).path.rpartition("/")[2], url
        handle = Transcript(self.transport, *api.create_transcript(self.transport, url, body))
        handle.label, handle.source = clean(label, 60) or None, source
        return handle

    @forwarded(submit)
    async def submit_async(self, *args: Any, **options: Any) -> Transcript:
        """Async version of `submit`."""
        return await self.transport.workers.call(self.submit, *args, **options)

    @takes_options
    def transcribe(
        self,
        audio: Media,
        *,
        timeout: float | None = None,
        progress: bool | None = None,
        force: bool = False,
        **options: Unpack[TranscriptOptions],
    ) -> Transcript:
        """Transcribe a recording: submit it and wait for the result, unless it was submitted before.

        Recordings are submitted once: the default corpus (`voxframe.Corpus()`) records each submission before it is
        sent, and keeps the transcript. The same audio, under any file name, with the same options and the same service
        returns that transcript, or waits for the job in progress. A job that failed is sent again. Bytes and open files
        are submitted each time. A `webhook_url` is called for a job that is sent, not for a stored transcript.

        Args:
            audio: Path, bytes, binary file, http or https URL, or a URL returned by `upload`.
            timeout: Maximum seconds to wait for the result; None has no limit.
            progress: Show a progress bar. None (default): only in an interactive session, after one second.
            force: Submit the recording even if it was submitted before. A hosted service charges for it again.
            **options: Options of the job; see `voxframe.options.TranscriptOptions`.

        Returns:
            The finished transcript. Its status is "completed", or "error" with the reason in `error`.

        Raises:
            OptionError: An option is invalid; nothing was sent.
            AudioError: The audio cannot be read; nothing was sent.
            ServiceTimeoutError: It was not finished in time; the job continues at the service, and the next call waits
                for it.
            CorpusError: The recording may have been submitted before and this cannot be settled, or the default corpus
                cannot be written.
        """
        checked_timeout(timeout)
        if not isinstance(audio, str | os.PathLike):
            return self.wait(self.submit(audio, progress=progress, **options), timeout=timeout, progress=progress)
        handle, keep = self._begin(audio, options, force=force, progress=progress)
        if keep is not None:
            keep(handle.wait(timeout=timeout, progress=progress))
        return handle

    @forwarded(transcribe)
    async def transcribe_async(
        self,
        audio: Media,
        *,
        timeout: float | None = None,
        progress: bool | None = None,
        force: bool = False,
        **options: Any,
    ) -> Transcript:
        """Async version of `transcribe`."""
        checked_timeout(timeout)
        if not isinstance(audio, str | os.PathLike):
            handle = await self.submit_async(audio, progress=progress, **options)
            return await self.wait_async(handle, timeout=timeout, progress=progress)
        call = self.transport.workers.call
        handle, keep = await call(self._begin, audio, options, force=force, progress=progress)
        if keep is not None:
            await call(keep, await self.wait_async(handle, timeout=timeout, progress=progress))
        return handle

    def _begin(
        self, audio: str | os.PathLike[str], options: Any, *, force: bool, progress: bool | None
    ) -> tuple[Transcript, Callable[[Transcript], object] | None]:
        """Return a handle on the job of a recording, and what stores its result if it is not stored yet."""
        if remote_url(audio) is None:
            UploadSource(audio)  # raises an error if it cannot be read
        import voxframe  # not the corpus itself: the client is below it, and works without pandas

        corpus: Any = voxframe.Corpus(self.settings.data_dir / "corpus")
        job, handle = corpus.parts.batch.begin(audio, self, options, force=force, progress=progress)
        keep = None if handle is None else partial(corpus.parts.batch.finish, job)
        if handle is None:
            path, raw = api.transcript_path(job.transcript_id), corpus.raw.get(job.transcript_id)
            handle = Transcript(self.transport, job.transcript_id, HTTPResponse(200, {}, raw, "GET", path))
        handle.label, handle.source = clean(job.recording or "", 60) or None, os.fspath(audio)
        return handle, keep

    def wait(
        self, transcript: Transcript | str, *, timeout: float | None = None, progress: bool | None = None
    ) -> Transcript:
        """Wait until a transcript is completed or has failed.

        The interval between requests grows with the time waited. Outages of up to two minutes are tolerated.

        Args:
            transcript: Handle or id.
            timeout: Maximum seconds to wait; None has no limit.
            progress: Show a progress bar. None (default): only in an interactive session, after one second.

        Raises:
            ServiceTimeoutError: It was not finished in time; the job continues at the service.
            ServiceError: The service was unreachable for too long, or refused a request.
        """
        return self._handle(transcript).wait(timeout=timeout, progress=progress)

    @forwarded(wait)
    async def wait_async(self, transcript: Transcript | str, **options: Any) -> Transcript:
        """Async version of `wait`."""
        handle: Transcript = await self._handle(transcript).wait_async(**options)
        return handle

    def wait_all(
        self, transcripts: Iterable[Transcript | str], *, timeout: float | None = None, progress: bool | None = None
    ) -> _Handles:
        """Wait until all of several transcripts are completed or have failed.

        A thousand jobs need a few pages of the list, not a thousand requests. Results are fetched when they are first
        read. Arguments and errors are those of `wait`.

        Returns:
            The handles in the given order, failed ones included.
        """
        handles = self._handles(transcripts)
        run(steps_for_many(self.transport, handles, timeout, progress), self.transport.sleep)
        return handles

    @forwarded(wait_all)
    async def wait_all_async(
        self, transcripts: Iterable[Transcript | str], *, timeout: float | None = None, progress: bool | None = None
    ) -> _Handles:
        """Async version of `wait_all`."""
        handles = self._handles(transcripts)
        steps = steps_for_many(self.transport, handles, timeout, progress)
        await run_async(steps, self.transport.workers)
        return handles

    def transcript(self, transcript_id: str) -> Transcript:
        """Fetch a transcript in its current state.

        Raises:
            NotFoundError: There is no transcript with this id.
        """
        return Transcript(self.transport, transcript_id, api.get_transcript(self.transport, transcript_id))

    def list(
        self,
        *,
        limit: int | None = None,
        status: str | None = None,
        created_on: date | str | None = None,
        before_id: str | None = None,
        after_id: str | None = None,
        throttled_only: bool | None = None,
    ) -> api.TranscriptPage:
        """Fetch one page of the transcripts of this API key, newest first.

        Args:
            limit: Transcripts per page, 1 to 200; the default of the service is 10.
            status: Only transcripts with this status: queued, processing, completed or error.
            created_on: Only transcripts created on this day.
            before_id: Only transcripts older than this one.
            after_id: Only transcripts newer than this one.
            throttled_only: Only throttled transcripts.

        Raises:
            OptionError: A filter has an invalid value.
        """
        params = api.filters(limit, status, created_on, before_id, after_id, throttled_only)
        return api.list_transcripts(self.transport, params)

    def iter_transcripts(
        self,
        *,
        status: str | None = None,
        created_on: date | str | None = None,
        before_id: str | None = None,
        after_id: str | None = None,
        throttled_only: bool | None = None,
        page_size: int = LIST_LIMIT,
    ) -> Iterator[api.TranscriptItem]:
        """Iterate over all transcripts of this API key, newest first. Pages are fetched as needed.

        The filters and errors are those of `list`; `page_size` is the number of transcripts per request, 1 to 200.
        """
        params = api.filters(page_size, status, created_on, before_id, after_id, throttled_only)
        return api.iter_transcripts(self.transport, params)

    def progress(self) -> dict[str, float]:
        """Fetch the progress of unfinished jobs from the embedded server. Other services do not offer it.

        Returns:
            Share done by transcript id, from 0 to 1; 0 for queued jobs. Empty for a hosted service.
        """
        return api.get_progress(self.transport) if self.is_local else {}

    def delete(self, transcript_id: str) -> Transcript:
        """Delete a transcript and its media at the service. An emptied transcript stays in lists.

        The copy that `transcribe` has stored stays: `voxframe.Corpus().forget(transcript_id)` deletes it.

        Raises:
            NotFoundError: There is no transcript with this id.
        """
        return Transcript(self.transport, transcript_id, api.delete_transcript(self.transport, transcript_id))

    # Derived from a completed transcript

    def fetch(self, transcript_id: str, view: View = "transcript") -> bytes:
        """Fetch the response of the service about a transcript, byte for byte.

        Args:
            transcript_id: The transcript id.
            view: "transcript", "sentences" or "paragraphs".

        Raises:
            NotFoundError: There is no transcript with this id.
        """
        return api.get_transcript(self.transport, transcript_id, view).content

    def sentences(self, transcript_id: str) -> api.TranscriptPassages:
        """Fetch the sentences of a completed transcript, each with its words."""
        return api.get_passages(self.transport, transcript_id, "sentences")

    def paragraphs(self, transcript_id: str) -> api.TranscriptPassages:
        """Fetch the paragraphs of a completed transcript, each with its words."""
        return api.get_passages(self.transport, transcript_id, "paragraphs")

    def subtitles(
        self,
        transcript_id: str,
        format: Literal["srt", "vtt"] | None = None,  # noqa: A002 - the word of the interface
        *,
        chars_per_caption: int | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> str:
        """Fetch the captions of a completed transcript.

        Args:
            transcript_id: The transcript id.
            format: "srt" or "vtt" (WebVTT). None uses the suffix of `path`, else SRT.
            chars_per_caption: Maximum number of characters per caption; None uses the default of the service.
            path: File to which they are also written.

        Raises:
            OptionError: The format, the number or the path is not allowed; nothing was sent.
        """
        return api.get_subtitles(self.transport, transcript_id, format, chars_per_caption, path)

    def word_search(self, transcript_id: str, terms: api.Term | Iterable[api.Term]) -> api.WordSearchMatches:
        """Search a completed transcript for words and phrases.

        Args:
            transcript_id: The transcript id.
            terms: A word, a number, a phrase of up to five words, or several of these. A comma separates two terms, as
                in the request.

        Raises:
            OptionError: A phrase is empty or too long; nothing was sent.

        Example:
            >>> client.word_search(transcript.id, ["smoke", "air quality"]).total_count  # doctest: +SKIP
            8
        """
        return api.search_words(self.transport, transcript_id, terms)

    def redacted_audio(
        self, transcript_id: str, *, timeout: float | None = None, progress: bool | None = None
    ) -> RedactedAudio:
        """Wait for the copy of a recording in which personal information is beeped out.

        Args:
            transcript_id: A transcript made with `redact_pii=True, redact_pii_audio=True`.
            timeout: Maximum seconds to wait; None has no limit.
            progress: Show a progress bar. None (default): only in an interactive session, after one second.

        Raises:
            BadRequestError: It was not requested, or has expired.
            ServiceTimeoutError: It was not ready in time.

        Example:
            >>> client.redacted_audio(transcript.id).save("interview.mp3")  # doctest: +SKIP
            PosixPath('interview.mp3')
        """
        return transfers.redacted_audio(self.transport, transcript_id, timeout, progress)

    @forwarded(redacted_audio)
    async def redacted_audio_async(
        self, transcript_id: str, *, timeout: float | None = None, progress: bool | None = None
    ) -> RedactedAudio:
        """Async version of `redacted_audio`."""
        return await transfers.redacted_audio_async(self.transport, transcript_id, timeout, progress)

    # Language-model operations

    def summarize(
        self, transcripts: Transcripts | None = None, *, answer_format: str | None = None, **options: Unpack[LlmOptions]
    ) -> LlmResponse:
        """Summarize transcripts or a text.

        Args:
            transcripts: Up to 100 completed transcripts of up to 100 hours in total: an id, a handle, several of these,
                or a table with a column `transcript_id`.
            answer_format: Description of the summary wanted, such as "bullet points".
            **options: input_text, context, final_model, max_output_size, temperature; see `LlmOptions`.

        Raises:
            OptionError: An argument is invalid; nothing was sent.

        Example:
            >>> client.summarize(transcript, answer_format="one sentence").text  # doctest: +SKIP
            'Two neighbours talk about trees.'
        """
        return self._llm.generate("summary", transcripts, options, format_field(answer_format))

    @forwarded(summarize)
    async def summarize_async(self, *args: Any, **options: Any) -> LlmResponse:
        """Async version of `summarize`."""
        return await self.transport.workers.call(self.summarize, *args, **options)

    def ask(
        self,
        questions: str | LlmQuestion | Iterable[str | LlmQuestion],
        transcripts: Transcripts | None = None,
        **options: Unpack[LlmOptions],
    ) -> LlmResponse:
        """Ask questions about transcripts or a text. Other arguments and errors are those of `summarize`.

        Without a language model, the embedded server answers with quotations.

        Args:
            questions: A question, or a dict with `question` and optionally `context`, `answer_format` and
                `answer_options`; or several of these. The response has one reply per question.
            transcripts: As for `summarize`.
            **options: As for `summarize`.

        Example:
            >>> client.ask("Who is interviewed?", transcript).replies[0].answer  # doctest: +SKIP
            'Dr. Paul.'
        """
        fields = {"questions": llm.questions(questions)}
        return self._llm.generate("question-answer", transcripts, options, fields)

    @forwarded(ask)
    async def ask_async(self, *args: Any, **options: Any) -> LlmResponse:
        """Async version of `ask`."""
        return await self.transport.workers.call(self.ask, *args, **options)

    def task(self, prompt: str, transcripts: Transcripts | None = None, **options: Unpack[LlmOptions]) -> LlmResponse:
        """Give the language model a task about transcripts or a text. Arguments and errors are those of `summarize`."""
        return self._llm.generate("task", transcripts, options, {"prompt": llm.checked_text("prompt", prompt)})

    @forwarded(task)
    async def task_async(self, *args: Any, **options: Any) -> LlmResponse:
        """Async version of `task`."""
        return await self.transport.workers.call(self.task, *args, **options)

    def action_items(
        self, transcripts: Transcripts | None = None, *, answer_format: str | None = None, **options: Unpack[LlmOptions]
    ) -> LlmResponse:
        """Extract action items from transcripts or a text. Arguments and errors are those of `summarize`."""
        return self._llm.generate("action-items", transcripts, options, format_field(answer_format))

    @forwarded(action_items)
    async def action_items_async(self, *args: Any, **options: Any) -> LlmResponse:
        """Async version of `action_items`."""
        return await self.transport.workers.call(self.action_items, *args, **options)

    def llm_response(self, request_id: str) -> LlmResponse:
        """Fetch the response of an earlier request.

        Raises:
            NotFoundError: There is no such response, or it was deleted.
        """
        return self._llm.get(request_id)

    def purge(self, request_id: str) -> Purge:
        """Delete a response, and the context that was sent for it, at the service.

        Raises:
            NotFoundError: There is no such response, or it was deleted before.
        """
        return self._llm.purge(request_id)

    @property
    def rate_limit(self) -> RateLimitStatus | None:
        """Language-model requests left, as the service last reported; None if it did not."""
        return self._llm.rate_limit

    # Streaming

    def stream(self, source: StreamSource, **options: Unpack[StreamOptions]) -> Stream:
        """Transcribe audio while it is recorded or read.

        The connection is opened when the session is entered (`with`, `async with`), iterated or started:

            with client.stream("talk.wav") as session:
                for message in session:
                    if isinstance(message, Final):
                        print(message.text)

        Args:
            source: Path, bytes or binary file of a recording or of raw samples; a sync or async iterator of raw
                samples; or `voxframe.microphone()`.
            **options: See `voxframe.client.stream.stream_options.StreamOptions`: sample_rate, encoding, word_boost,
                partials, extra_session_information, token, end_utterance_silence_threshold, realtime, reconnect,
                on_partial, on_final, message_ms, keepalive_s, keep_partials.

        Raises:
            OptionError: An option or the source is invalid.
            AudioError: The source cannot be read.
        """
        from voxframe.client.stream import Stream

        assert self.settings.stream_url is not None
        return Stream(source, url=self.settings.stream_url, key=self.settings.api_key, **options)

    def token(self, expires_in: int = 480) -> str:
        """Create a temporary token for one streaming session, so that the API key need not leave this machine.

        Args:
            expires_in: Lifetime in seconds, 60 to 360,000.

        Raises:
            OptionError: `expires_in` is out of range; nothing was sent.
        """
        return api.create_token(self.transport, expires_in)

    def close(self) -> None:
        """Close all connections. Calls that wait in other threads raise an error."""
        self.transport.close()

    def _handle(self, transcript: Transcript | str) -> Transcript:
        if isinstance(transcript, Transcript):
            return transcript
        api.transcript_path(transcript)
        return Transcript(self.transport, transcript)

    def _handles(self, transcripts: Iterable[Transcript | str]) -> _Handles:
        items = [transcripts] if isinstance(transcripts, str | Transcript) else transcripts
        if not isinstance(items, Iterable) or isinstance(items, Mapping | bytes) or hasattr(items, "columns"):
            raise OptionError(
                f"transcripts must be handles or ids, such as df['transcript_id'], got {type(items).__name__}"
            )
        return [self._handle(t) for t in items]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.base_url!r})"
