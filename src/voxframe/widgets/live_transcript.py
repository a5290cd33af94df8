"""LiveTranscript: real-time transcription from the browser's microphone or a file."""

from __future__ import annotations

import os
import queue
import tempfile
import threading
import time
import wave
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Unpack

import pandas as pd
import traitlets

from voxframe._text import join_words, quantity
from voxframe.client import Client, connect
from voxframe.client.stream import Stream
from voxframe.client.stream.messages import Final, Message, Partial
from voxframe.client.stream.stream_options import StreamOptions, check
from voxframe.corpus import Corpus
from voxframe.corpus.corpus import chosen_corpus
from voxframe.corpus.job import new_job
from voxframe.corpus.ledger import check_client, service_name
from voxframe.corpus.media import identify
from voxframe.errors import AudioError, OptionError
from voxframe.loaders import load_stream, load_stream_words
from voxframe.validators import shown
from voxframe.widgets.base import Background, ScriptedWidget, absolute_path, clock_text, connect_call, escaped

#: Maximum number of buffered blocks of 0.1 s; beyond it the oldest is dropped.
_MAX_BLOCKS = 600
#: Seconds without a block after which the browser is considered gone.
_TIMEOUT_S = 60.0


class BrowserSound:
    """Audio from a browser as the source of a session: 16-bit mono samples."""

    def __init__(self, sample_rate: int) -> None:
        self.sample_rate = sample_rate
        self._samples = tempfile.TemporaryFile()  # noqa: SIM115  open as long as this object lives
        weakref.finalize(self, self._samples.close)
        self._is_stored = True  # until the disk is full
        self._blocks: queue.Queue[bytes | None] = queue.Queue(_MAX_BLOCKS)

    def put(self, samples: bytes) -> bool:
        """Add samples; return False if the oldest block was dropped."""
        accepted = not self._blocks.full()
        if not accepted:
            self._blocks.get_nowait()
        self._blocks.put_nowait(samples[: len(samples) // 2 * 2])
        return accepted

    def write(self, path: Path) -> None:
        """Write the samples that were sent as a WAV file."""
        self._samples.seek(0)
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 2, self.sample_rate, 0, "NONE", ""))
            while block := self._samples.read(1 << 20):
                file.writeframes(block)

    def end(self) -> None:
        """End the stream."""
        if self._blocks.full():
            self._blocks.get_nowait()
        self._blocks.put_nowait(None)

    def __iter__(self) -> Iterator[bytes]:
        while True:
            try:
                block = self._blocks.get(timeout=_TIMEOUT_S)
            except queue.Empty:
                return
            if block is None:
                return
            if self._is_stored:
                try:
                    self._samples.write(block)
                except OSError:  # a full disk does not end the transcription
                    self._is_stored = False
            yield block


class LiveTranscript(ScriptedWidget):
    """Real-time transcription: partial results in grey, then final results.

    The browser asks for permission to use the microphone, and allows it only on https and localhost. The sound goes to
    the kernel and from there to the service. Until the widget is closed, it is in a temporary file of the kernel
    without a name, from which `save` stores it. While a cell runs, up to a minute of sound is buffered. `result` and
    `words` are available at any time.

    Args:
        client: Client of the service. None (default): `voxframe.connect()`.
        corpus: Corpus for `save` and the button "Save". None (default): the default corpus.
        file: Path of a recording to stream instead.
        title: Title of the widget.
        **options: Session options of `Client.stream`, such as `word_boost`.

    Attributes:
        file (str): Path of the recording, on the kernel's machine.
        running (bool): True while a session is running.

    Raises:
        OptionError: An option is invalid, or `client` or `file` has the wrong type.

    Example:
        >>> live = voxframe.LiveTranscript(file="talk.wav")  # doctest: +SKIP
        >>> live.start()  # doctest: +SKIP
        >>> live.result  # doctest: +SKIP
    """

    scripts = ("live_transcript",)
    styles = ("fields", "live_transcript")

    file = traitlets.Unicode("").tag(sync=True)
    running = traitlets.Bool(False).tag(sync=True)
    busy = traitlets.Unicode("").tag(sync=True)
    _finals: Any = traitlets.List().tag(sync=True)
    _partial = traitlets.Unicode("").tag(sync=True)
    # Start of the running session: Unix time in ms.
    _since = traitlets.Int(0).tag(sync=True)
    _saved = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        client: Client | None = None,
        *,
        corpus: Corpus | None = None,
        file: str | os.PathLike[str] = "",
        title: str = "Live transcript",
        **options: Unpack[StreamOptions],
    ) -> None:
        wrong = {"on_partial", "on_final", "sample_rate", "encoding"} & options.keys()
        if wrong:
            raise OptionError(f"LiveTranscript sets {', '.join(sorted(wrong))} itself; remove it")
        if not isinstance(file, str | os.PathLike):
            raise OptionError(f"file must be the path of a recording, got {shown(file)}")
        check_client(client, "stream")
        check(options)
        self._client, self._options = client, options
        self._corpus = corpus if corpus is None else chosen_corpus(corpus)
        self._sessions: list[Stream] = []
        self._sources: list[tuple[BrowserSound | Path, str]] = []  # of each session, with its name
        self._session: Stream | None = None  # the running one
        self._stopped = False  # True if it was stopped, also while it was connecting
        self._browser_sound: BrowserSound | None = None
        self._source_kind = ""
        self._partial_ms = 0  # start of the utterance of the last partial
        self._background = Background(self, lambda text: self.set_trait("busy", text))
        super().__init__(title=title, file=os.fspath(file))

    def __repr__(self) -> str:
        return f"LiveTranscript({quantity(len(self._finals), 'final')}{', running' if self.running else ''})"

    @property
    def messages(self) -> list[Message]:
        """The final messages of all sessions, and the latest partials."""
        return [message for session in self._sessions for message in session.messages]

    @property
    def result(self) -> pd.DataFrame:
        """The final results so far: see `voxframe.load_stream`."""
        return load_stream([message for message in self.messages if isinstance(message, Final)])

    @property
    def words(self) -> pd.DataFrame:
        """The words of the final results so far: see `voxframe.load_stream_words`."""
        return load_stream_words(self.messages, finals_only=True)

    @property
    def text(self) -> str:
        """The text of the final results so far."""
        return join_words(final["text"] for final in self._finals)

    @property
    def code(self) -> str:
        """Python code that streams the same file, or the microphone, without a widget."""
        source = (
            repr(absolute_path(self.file))
            if self._source_kind == "file" or (self.file and not self._source_kind)
            else "voxframe.microphone()"
        )
        options = "".join(f", {name}={value!r}" for name, value in self._options.items() if name != "token")
        lines = ["import voxframe", "", f"client = {connect_call(self._client)}"]
        lines += [f"session = client.stream({source}{options})", "session.wait()"]
        return "\n".join([*lines, "result = voxframe.load_stream(session.finals)", "result"])

    def _static_html(self) -> str:
        """Return the final results."""
        rows = "".join(
            f"<p><small>{clock_text(final['start_ms'])}</small> {escaped(final['text'])}</p>" for final in self._finals
        )
        return f"<p><strong>{escaped(self.title)}</strong></p>{rows or '<p>No speech yet.</p>'}"

    def start(self) -> None:
        """Stream the recording in `file`, in the background. To use the microphone, press its button.

        Raises:
            OptionError: A session is running, or `file` is empty.
        """
        if not self.file.strip():
            raise OptionError("there is no file to stream; set .file, or press Microphone")
        self._begin("file", self.file.strip())

    def stop(self) -> None:
        """Stop sending; audio already sent is still transcribed."""
        self.send({"do": "stop"})
        self._stopped = True
        if self._browser_sound is not None:
            self._browser_sound.end()
        elif (session := self._session) is not None:
            end, quietly = session.terminate, {"keep_error": True}
            threading.Thread(target=self._background.run_now, args=(end,), kwargs=quietly, daemon=True).start()

    def clear(self) -> None:
        """Remove the results.

        Raises:
            OptionError: A session is running.
        """
        if self.running:
            raise OptionError("a session is running; stop it first")
        self._sessions, self._sources, self._finals, self._partial, self._saved = [], [], [], "", ""

    def save(self, corpus: Corpus | None = None) -> list[str]:
        """Add the transcript of each session to a corpus, with its sound.

        Sound of the microphone is written to the folder `live` of the corpus; a file stays where it is.

        Args:
            corpus: The corpus. None (default): the one given to the widget, otherwise the default corpus.

        Returns:
            The names of the new recordings, such as "live-20260504-101500-123Z". A session without words is left out.

        Raises:
            OptionError: A session is running, or nothing was transcribed.
            CorpusError: The corpus cannot be written.
            AudioNotFoundError: The file of a session is no longer there.
        """
        if self.running:
            raise OptionError("a session is running; stop it first")
        corpus = self._corpus or Corpus() if corpus is None else chosen_corpus(corpus)
        assert self._client is not None or not self._sessions
        names = []
        for session, (source, name) in zip(self._sessions, self._sources, strict=True):
            words = _words(session.finals)
            if not words.empty:
                self._add(corpus, name, words, source)
                names.append(name)
        if not names:
            raise OptionError("there is nothing to save: no session has words")
        self._saved = f"saved as {', '.join(names)}"
        return names

    def _add(self, corpus: Corpus, name: str, words: pd.DataFrame, source: BrowserSound | Path) -> None:
        """Add a session to a corpus, with a job that tells where its sound is. Adding it again changes nothing."""
        if isinstance(source, Path):
            path = source
        else:
            path = Path(str(corpus.path)).absolute() / "live" / f"{name}.wav"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                unfinished = path.with_suffix(".part")
                try:
                    source.write(unfinished)
                    unfinished.replace(path)
                finally:
                    unfinished.unlink(missing_ok=True)
        media = identify(str(path), corpus.parts.ledger, measure=True)  # raises an error if it is not there
        rows = words[["text", "start_ms", "end_ms", "confidence"]].set_axis(
            ["text", "start", "end", "confidence"], axis=1
        )
        spoken = rows.astype(object).where(rows.notna(), None).to_dict("records")
        payload = {"id": name, "status": "completed", "text": join_words(words["text"]), "words": spoken}
        corpus.add(payload, progress=False)
        options = {
            "stream": name
        }  # other jobs and sessions of the same sound have others, so none is taken for this one
        service = service_name(self._client or connect())
        job = new_job(str(path), media.identity, options, service, state="completed", recording=name)
        corpus.parts.ledger.save(replace(job, transcript_id=name, audio_duration_s=media.audio_duration_s))

    def wait(self, timeout: float | None = None) -> None:
        """Wait until no session is running; after `timeout` seconds, raise a TimeoutError."""
        self._background.wait(timeout)

    def close(self) -> None:
        """End the session and close the widget."""
        if "_background" in self.__dict__:  # __init__ may have failed
            if self.running:
                self.stop()
            self._background.close()
        super().close()

    def _begin(self, kind: str, source: BrowserSound | str) -> None:
        if self.running:
            raise OptionError("a session is running; stop it first")
        self.running, self._source_kind, self._stopped = True, kind, False
        self._saved, self._since = "", 0
        self._browser_sound = source if isinstance(source, BrowserSound) else None
        self._background.submit("connecting", lambda: self._stream(source))

    def _stream(self, source: BrowserSound | str) -> None:
        """Run one session."""
        try:
            self._client = self._client or connect()
            options: StreamOptions = {**self._options, "on_partial": self._on_partial, "on_final": self._on_final}
            session = self._client.stream(source, **options)
            self._sessions.append(session)
            place = Path(source).expanduser().absolute() if isinstance(source, str) else source
            self._sources.append((place, f"live-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"[:-3] + "Z"))
            session.start()
            self._session = session
            self._since = round(time.time() * 1000)
            self.busy = "listening" if self._source_kind == "microphone" else "streaming"
            if self._stopped and self._browser_sound is None:  # while it connected
                session.terminate()
            session.wait()
        finally:
            self.running, self._session, self._browser_sound, self._partial = False, None, None, ""
            self.send({"do": "stop"})

    def _on_partial(self, partial: Partial) -> None:
        self._partial, self._partial_ms = partial.text, partial.start_ms or 0

    def _on_final(self, final: Final) -> None:
        # Otherwise the partial belongs to the next utterance.
        if final.end_ms is None or self._partial_ms < final.end_ms:
            self._partial = ""
        if final.text:
            self._finals = [
                *self._finals,
                {"text": final.text, "start_ms": final.start_ms, "session": len(self._sessions)},
            ]

    def _on_browser_message(self, message: dict[str, Any], buffers: list[Any]) -> None:
        """Handle audio or a click from the browser."""
        do = message.get("do")
        if do == "sound":
            if self._browser_sound is not None and not self._browser_sound.put(bytes(buffers[0])):
                self.error = "the service is more than a minute behind; the oldest sound was dropped"
            return
        self._background.run_now(lambda: self._on_action(do, message))

    def _on_action(self, do: Any, message: Any) -> None:
        if do == "listen":
            rate = int(message["rate"])
            if not 8000 <= rate <= 192_000:
                self.send({"do": "stop"})  # otherwise the browser would keep the microphone on
                raise AudioError(f"the sample rate of the microphone must be from 8000 to 192000 Hz, got {rate}")
            self._begin("microphone", BrowserSound(rate))
        elif do == "file":
            self.file = str(message.get("file", self.file))  # the trait may arrive after the click
            self.start()
        elif do == "stop":
            self.stop()
        elif do == "clear":
            self.clear()
        elif do == "save":
            self.save()


def _words(finals: Iterable[Final]) -> pd.DataFrame:
    """Return the words of finals with their times in the source, also after a reconnection."""
    frames = []
    for final in finals:
        frame = load_stream_words([final], finals_only=True)
        frames.append(
            frame.assign(start_ms=frame["start_ms"] + final.offset_ms, end_ms=frame["end_ms"] + final.offset_ms)
        )
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
