"""The client: a method per endpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack
from urllib.parse import quote

from voxframe import options as opt
from voxframe.errors import OptionError, ServiceError, SettingsError
from voxframe.service import listing, views, waiting, words
from voxframe.service.answer import Answer
from voxframe.service.http import Transport
from voxframe.service.lenient import as_text
from voxframe.service.progress import Progress
from voxframe.service.transcript import Transcript
from voxframe.service.upload import Media, Recording, send, web_address
from voxframe.settings import Settings, is_loopback

if TYPE_CHECKING:  # a client that streams nothing does without the streaming half
    from voxframe.service.stream import Stream
    from voxframe.service.stream_options import StreamOptions
    from voxframe.service.stream_sources import StreamSource

View = Literal["transcript", "sentences", "paragraphs"]


class Client:
    """A client of a transcription service. May be used from several threads; `connect` makes one.

    Args:
        settings: With an address and a key.
        transport: How requests are made; default: a `Transport` of its own.

    Attributes:
        base_url: Address of the service.
        settings: The settings it was made with.
    """

    def __init__(self, settings: Settings, *, transport: Transport | None = None) -> None:
        if settings.base_url is None or settings.api_key is None:
            raise SettingsError("a client needs base_url and api_key; voxframe.connect() finds them")
        self.settings = settings
        self.base_url = settings.base_url
        self._http = transport or Transport(settings.base_url, settings.api_key)
        self._local = is_loopback(self.base_url)

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
            address = self._upload(recording, progress)
        answer = self._http.request("POST", "/v2/transcript", json={"audio_url": address, **body})
        identifier = as_text(answer.data.get("id"))
        if not identifier:
            raise answer.unreadable()
        return Transcript(self, identifier, answer)

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
        return Transcript(self, transcript_id, self.ask(transcript_id))

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
        handle = self.transcript(transcript) if isinstance(transcript, str) else transcript
        try:
            waiting.wait(handle, self._http.sleep, timeout_s=timeout, local=self._local, show=progress)
        except (KeyboardInterrupt, ServiceError) as stopped:
            stopped.add_note(f"The job goes on at the service; client.wait({handle.id!r}) waits for it again.")
            raise
        return handle

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

    def delete(self, transcript_id: str) -> Transcript:
        """Delete a transcript and its media at the service. It stays in lists, emptied.

        Raises:
            NotFoundError: There is none of that id.
            ServiceError: The service, or the way to it, failed.
        """
        return Transcript(self, transcript_id, self._http.request("DELETE", _path(transcript_id)))

    def sentences(self, transcript_id: str) -> views.Passages:
        """Sentences of a completed transcript, each with its words."""
        return self._passages(transcript_id, "sentences")

    def paragraphs(self, transcript_id: str) -> views.Passages:
        """Paragraphs of a completed transcript, each with its words."""
        return self._passages(transcript_id, "paragraphs")

    def subtitles(
        self,
        transcript_id: str,
        format: Literal["srt", "vtt"] = "srt",  # noqa: A002 - the interface's word
        *,
        chars_per_caption: int | None = None,
    ) -> str:
        """Captions of a completed transcript.

        Args:
            transcript_id: Its identifier.
            format: "srt" or "vtt" (WebVTT).
            chars_per_caption: The most characters in a caption; None leaves it to the service.

        Raises:
            OptionError: The format or the number is not allowed.
            ServiceError: The service, or the way to it, failed.
        """
        if format not in opt.SUBTITLE_FORMATS:
            raise OptionError(f"the subtitle format is {format!r}; give 'srt' or 'vtt'")
        chars = chars_per_caption
        if chars is not None and (isinstance(chars, bool) or not isinstance(chars, int) or chars < 1):
            raise OptionError(f"chars_per_caption is {chars!r}; give a whole number of at least 1, or leave it out")
        answer = self._http.request(
            "GET", f"{_path(transcript_id)}/{format}", params={"chars_per_caption": chars}, accept="text"
        )
        return answer.content.decode("utf-8-sig", "replace")

    def word_search(self, transcript_id: str, terms: words.Term | Iterable[words.Term]) -> words.WordSearch:
        """Where words and phrases occur in a completed transcript.

        Args:
            transcript_id: Its identifier.
            terms: A word, a number, a phrase of up to five words, or several of these. A comma parts two of them, as it
                does on the wire.

        Raises:
            OptionError: A phrase is empty or too long; nothing was sent.
            ServiceError: The service, or the way to it, failed.

        Example:
            >>> client.word_search(transcript.id, ["smoke", "air quality"]).total_count  # doctest: +SKIP
            8
        """
        answer = self._http.request(
            "GET", f"{_path(transcript_id)}/word-search", params={"words": ",".join(words.check(terms))}
        )
        return words.matches(transcript_id, answer.data, answer.content)

    def stream(self, source: StreamSource, **options: Unpack[StreamOptions]) -> Stream:
        """Transcribe audio as it is spoken.

        Nothing is opened until the session is entered (`with`, `async with`), iterated (`for`, `async for`) or started.
        A session from a file:

            with client.stream("talk.wav") as session:
                for message in session:
                    if isinstance(message, Final):
                        print(message.text)

        Args:
            source: Path, bytes or binary file of a recording or of raw samples; an iterator or asynchronous iterator of
                raw samples; or `voxframe.microphone()`.
            **options: See `voxframe.service.stream_options.StreamOptions`: sample_rate, encoding, word_boost, partials,
                extra_session_information, token, end_utterance_silence_threshold, realtime, reconnect, on_partial,
                on_final, message_ms, keepalive_s, keep_partials.

        Raises:
            OptionError: An option or the source is wrong.
            AudioError: The source cannot be read.
        """
        from voxframe.service.stream import Stream

        assert self.settings.stream_url is not None
        return Stream(source, url=self.settings.stream_url, key=self.settings.api_key, **options)

    def token(self, expires_in: int = 480) -> str:
        """A temporary token: it opens one streaming session, so that the key need not leave this machine.

        Args:
            expires_in: Seconds it is good for, from 60 to 360000.

        Raises:
            OptionError: `expires_in` is out of range.
            ServiceError: The service, or the way to it, failed.
        """
        low, high = opt.TOKEN_SECONDS
        if isinstance(expires_in, bool) or not isinstance(expires_in, int) or not low <= expires_in <= high:
            raise OptionError(f"expires_in is {expires_in!r}; it must be a whole number from {low} to {high} seconds")
        answer = self._http.request("POST", "/v2/realtime/token", json={"expires_in": expires_in}, repeatable=True)
        token = as_text(answer.data.get("token"))
        if not token:
            raise answer.unreadable()
        return token

    def fetch(self, transcript_id: str, view: View = "transcript") -> bytes:
        """The service's answer about a transcript, byte for byte.

        Args:
            transcript_id: Its identifier.
            view: "transcript", "sentences" or "paragraphs".

        Raises:
            NotFoundError: There is none of that id.
            ServiceError: The service, or the way to it, failed.
        """
        if view not in ("transcript", "sentences", "paragraphs"):
            raise OptionError(f"the view is {view!r}; give 'transcript', 'sentences' or 'paragraphs'")
        return self.ask(transcript_id, view).content

    def ask(self, transcript_id: str, view: View = "transcript", *, attempts: int | None = None) -> Answer:
        """As `fetch`, with headers and status. `attempts`: tries; None is the client's own number."""
        suffix = "" if view == "transcript" else f"/{view}"
        return self._http.request("GET", _path(transcript_id) + suffix, attempts=attempts)

    def close(self) -> None:
        """Close connections; waits in other threads end with an error."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.base_url!r})"

    def _upload(self, recording: Recording, show: bool | None) -> str:
        with Progress(f"uploading {recording.label}", recording.size or 0, show=show) as progress:
            return send(self._http, recording, progress)

    def _passages(self, transcript_id: str, view: Literal["sentences", "paragraphs"]) -> views.Passages:
        answer = self.ask(transcript_id, view)
        return views.passages(transcript_id, view, answer.data, answer.content)

    def _page(self, params: Mapping[str, Any]) -> listing.Page:
        return listing.page(self._http.request("GET", "/v2/transcript", params=params))


def _path(transcript_id: str) -> str:
    if not isinstance(transcript_id, str) or transcript_id.strip() in ("", ".", ".."):
        raise OptionError(f"{transcript_id!r} is no id of a transcript; give the text that Transcript.id holds")
    return f"/v2/transcript/{quote(transcript_id, safe='')}"
