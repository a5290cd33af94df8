"""Jobs: upload, submit, wait, list, delete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any, TypeAlias, Unpack
from urllib.parse import urlsplit

from voxframe import options as opt
from voxframe.errors import NotFoundError, OptionError, ServiceError
from voxframe.service import listing, many, waiting
from voxframe.service.answer import clean
from voxframe.service.endpoints import Endpoints, transcript_path
from voxframe.service.lenient import as_float, as_text
from voxframe.service.progress import Progress
from voxframe.service.transcript import Transcript
from voxframe.service.upload import Media, Recording, send, web_address

Handles: TypeAlias = list[Transcript]


class Jobs(Endpoints):
    """Endpoints that make, watch, list and delete transcripts."""

    def upload(self, media: Media, *, progress: bool | None = None) -> str:
        """Send a recording to the service.

        Args:
            media: Path, bytes, or a file opened for reading bytes. Files are streamed, whatever their size.
            progress: Whether to show progress; None shows it where somebody looks, past a second.

        Returns:
            An address to use as audio, with the same key only.

        Raises:
            AudioError: It cannot be read, or there is nothing in it; nothing was sent.
            ServiceError: It could not be sent.
        """
        return self._upload(Recording(media), progress)

    def submit(
        self, audio: Media, *, progress: bool | None = None, **options: Unpack[opt.TranscriptOptions]
    ) -> Transcript:
        """Start a transcription job and return a handle on it, without waiting.

        Everything is checked before anything is sent. A request that may have reached the service is not made again:
        it might be paid for twice.

        Args:
            audio: Path, bytes, binary file, an http or https address, or what `upload` returned.
            progress: Whether to show the progress of an upload.
            **options: What to do; see `voxframe.options.TranscriptOptions`.

        Raises:
            OptionError: An option is wrong; nothing was sent.
            AudioError: The audio cannot be read; nothing was sent.
            ServiceError: The job could not be started; `may_have_arrived` says whether it may exist all the same.
        """
        body = opt.check(**options)
        address = web_address(audio)
        if address is None:
            recording = Recording(audio)
            label, address = recording.label, self._upload(recording, progress)
        else:
            label = urlsplit(address).path.rpartition("/")[2]
        handle = self._create(address, body)
        handle.label = clean(label, 60) or None
        return handle

    def transcribe(
        self,
        audio: Media,
        *,
        timeout: float | None = None,
        progress: bool | None = None,
        **options: Unpack[opt.TranscriptOptions],
    ) -> Transcript:
        """Start a transcription job and wait for it.

        Args:
            audio: Path, bytes, binary file, an http or https address, or what `upload` returned.
            timeout: Seconds to wait for the result; None waits as long as it takes.
            progress: Whether to show progress; None shows it where somebody looks, past a second.
            **options: What to do; see `voxframe.options.TranscriptOptions`.

        Returns:
            The finished transcript: `completed`, or `error` with its `error`.

        Raises:
            OptionError: An option is wrong; nothing was sent.
            AudioError: The audio cannot be read; nothing was sent.
            ServiceTimeoutError: It was not finished in time; it goes on at the service.
            ServiceError: The service, or the way to it, failed.
        """
        return self.wait(self.submit(audio, progress=progress, **options), timeout=timeout, progress=progress)

    def transcript(self, transcript_id: str) -> Transcript:
        """A handle on a transcript, in its present state.

        Raises:
            NotFoundError: There is none of that id.
            ServiceError: The service, or the way to it, failed.
        """
        return self._handle(transcript_id, self._view(transcript_id))

    def wait(
        self, transcript: Transcript | str, *, timeout: float | None = None, progress: bool | None = None
    ) -> Transcript:
        """Wait until a transcript is completed or has failed.

        The service is asked ever less often the longer it takes, and a service that is away for a while is waited for.

        Args:
            transcript: Handle or id.
            timeout: Seconds to wait; None waits as long as it takes.
            progress: Whether to show progress; None shows it where somebody looks, past a second.

        Raises:
            ServiceTimeoutError: It was not finished in time; it goes on at the service.
            ServiceError: The service, or the way to it, failed.
        """
        handle = self._given(transcript)
        try:
            waiting.run(self._wait_steps(handle, timeout, progress), self._http.sleep)
        except (KeyboardInterrupt, ServiceError) as stopped:
            stopped.add_note(waiting.how_to_go_on(handle))
            raise
        return handle

    def _wait_steps(self, handle: Transcript, timeout: float | None, progress: bool | None) -> waiting.Steps:
        return waiting.steps(handle, timeout_s=timeout, local=self._local, show=progress)

    def wait_all(
        self,
        transcripts: Iterable[Transcript | str],
        *,
        timeout: float | None = None,
        progress: bool | None = None,
    ) -> Handles:
        """Wait until all of many transcripts are completed or have failed.

        A thousand jobs are watched by a few pages of the list, not by a thousand questions. Results are fetched when
        they are first looked at.

        Args:
            transcripts: Handles or ids.
            timeout: Seconds to wait; None waits as long as it takes.
            progress: Whether to show progress; None shows it where somebody looks, past a second.

        Returns:
            Their handles, in the order given. Failed ones are among them, with `error`.

        Raises:
            ServiceTimeoutError: Not all were finished in time; they go on at the service.
            ServiceError: The service, or the way to it, failed.
        """
        handles = self._handles(transcripts)
        waiting.run(self._wait_all_steps(handles, timeout, progress), self._http.sleep)
        return handles

    def _handles(self, transcripts: Iterable[Transcript | str]) -> Handles:
        given = [transcripts] if isinstance(transcripts, str | Transcript) else transcripts
        if not isinstance(given, Iterable) or isinstance(given, Mapping | bytes) or hasattr(given, "columns"):
            raise OptionError(
                f"transcripts is a {type(given).__name__}; give handles or ids, such as df['transcript_id']"
            )
        return [self._given(t) for t in given]

    def _wait_all_steps(self, handles: Handles, timeout: float | None, progress: bool | None) -> waiting.Steps:
        return many.steps(handles, self.transcripts, timeout_s=timeout, local=self._local, show=progress)

    def list(
        self,
        *,
        limit: int | None = None,
        status: str | None = None,
        created_on: date | str | None = None,
        before_id: str | None = None,
        after_id: str | None = None,
        throttled_only: bool | None = None,
    ) -> listing.Page:
        """One page of the transcripts of this key, newest first.

        Args:
            limit: Transcripts on the page, 1 to 200; the service's default is 10.
            status: queued, processing, completed or error.
            created_on: Day they were made on.
            before_id: Only those older than this one.
            after_id: Only those newer than this one.
            throttled_only: Only those that are throttled.

        Raises:
            OptionError: A filter has a value that is not allowed.
            ServiceError: The service, or the way to it, failed.
        """
        return self._page(listing.filters(limit, status, created_on, before_id, after_id, throttled_only))

    def transcripts(
        self,
        *,
        status: str | None = None,
        created_on: date | str | None = None,
        before_id: str | None = None,
        after_id: str | None = None,
        throttled_only: bool | None = None,
        page_size: int = opt.LIST_LIMIT,
    ) -> Iterator[listing.Item]:
        """Every transcript of this key from the newest to the oldest; pages are fetched as they are wanted.

        Args:
            status: queued, processing, completed or error.
            created_on: Day they were made on.
            before_id: Only those older than this one.
            after_id: Only those newer than this one.
            throttled_only: Only those that are throttled.
            page_size: Transcripts fetched at once, 1 to 200.

        Raises:
            OptionError: A filter has a value that is not allowed.
            ServiceError: The service, or the way to it, failed.
        """
        params = listing.filters(page_size, status, created_on, before_id, after_id, throttled_only)
        return listing.walk(self._page, params)

    def shares_done(self) -> dict[str, float]:
        """How much is done of the jobs that are not over, where the service says so.

        The interface has no such question; the embedded service answers it, at `/queue`. No other service is asked.

        Returns:
            Share from 0 to 1 by id: 0 for those that wait for their turn. Nothing where the service does not say.

        Raises:
            ServiceError: The service, or the way to it, failed.
        """
        if not self._local:
            return {}
        try:
            told = self._http.request("GET", "/queue").data
        except NotFoundError:  # another service on this machine
            return {}
        waiting, going = (told.get(name) or {} for name in ("waiting", "progress"))
        shares = {name: as_float(value) for name, value in going.items()}
        return {**dict.fromkeys(waiting, 0.0), **{name: share for name, share in shares.items() if share is not None}}

    def delete(self, transcript_id: str) -> Transcript:
        """Delete a transcript and its media at the service. It stays in lists, emptied.

        Raises:
            NotFoundError: There is none of that id.
            ServiceError: The service, or the way to it, failed.
        """
        return self._handle(transcript_id, self._http.request("DELETE", transcript_path(transcript_id)))

    def _create(self, audio_url: str, body: Mapping[str, Any], *, attempts: int | None = None) -> Transcript:
        """Ask for a job on media at an address, with options as `voxframe.options.check` returns them."""
        answer = self._http.request("POST", "/v2/transcript", json={"audio_url": audio_url, **body}, attempts=attempts)
        identifier = as_text(answer.data.get("id"))
        if not identifier:
            raise answer.unreadable()
        return self._handle(identifier, answer)

    def _upload(self, recording: Recording, show: bool | None) -> str:
        with Progress(f"uploading {recording.label}", recording.size or 0, show=show) as progress:
            return send(self._http, recording, progress)

    def _page(self, params: Mapping[str, Any]) -> listing.Page:
        return listing.page(self._http.request("GET", "/v2/transcript", params=params))
