"""LiveTranscript: speech becomes text while it is spoken, from the browser's microphone or a file."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator
from typing import Any, Unpack

import pandas as pd
import traitlets

from voxframe import answers
from voxframe.errors import AudioError, OptionError
from voxframe.plots.style import clock
from voxframe.service import Client, connect
from voxframe.service.stream import Stream
from voxframe.service.stream_messages import Final, Message, Partial
from voxframe.service.stream_options import StreamOptions
from voxframe.widgets.background import Background
from voxframe.widgets.base import ScriptedWidget, escaped
from voxframe.widgets.connecting import connect_call

#: Sound that nobody has taken yet, in blocks of a tenth of a second; past that the oldest is let go of.
_HELD = 600
#: Seconds without sound after which a browser counts as gone.
_SILENT_S = 60.0


class BrowserSound:
    """Sound from a browser as a source of a session: 16-bit mono samples as they come.

    Attributes:
        sample_rate: Samples a second.
    """

    def __init__(self, sample_rate: int) -> None:
        self.sample_rate = sample_rate
        self._blocks: queue.Queue[bytes | None] = queue.Queue(_HELD)

    def put(self, samples: bytes) -> bool:
        """Add samples; whether all that came before could be kept."""
        whole = not self._blocks.full()
        if not whole:
            self._blocks.get_nowait()
        self._blocks.put_nowait(samples[: len(samples) // 2 * 2])
        return whole

    def end(self) -> None:
        """There is no more."""
        if self._blocks.full():
            self._blocks.get_nowait()
        self._blocks.put_nowait(None)

    def __iter__(self) -> Iterator[bytes]:
        while True:
            try:
                block = self._blocks.get(timeout=_SILENT_S)
            except queue.Empty:
                return
            if block is None:
                return
            yield block


class LiveTranscript(ScriptedWidget):
    """What is being said, as text: partials in grey, which the next one replaces, and finals, which stay.

    The microphone is that of the browser, which asks for leave first and gives it on https and on this machine only.
    Its sound goes to the kernel and from there to the service, and is kept nowhere. While a cell runs, sound waits: up
    to a minute of it. `result` and `words` are DataFrames of what there is, at any time.

    Args:
        client: The service; None is that of `voxframe.connect()`.
        file: Path of a recording that can be streamed instead.
        title: What stands above it.
        **options: Options of the sessions, as `Client.stream` takes them, such as `word_boost`.

    Attributes:
        file (str): Path of the recording, on the machine of the kernel.
        running (bool): Whether a session is under way.

    Raises:
        OptionError: An option is wrong.

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

    def __init__(
        self,
        client: Client | None = None,
        *,
        file: str | os.PathLike[str] = "",
        title: str = "Live transcript",
        **options: Unpack[StreamOptions],
    ) -> None:
        wrong = {"on_partial", "on_final", "sample_rate", "encoding"} & options.keys()
        if wrong:
            raise OptionError(f"{', '.join(sorted(wrong))} is set by LiveTranscript; leave it out")
        self._client, self._options = client, options
        self._sessions: list[Stream] = []
        self._sound: BrowserSound | None = None
        self._from = ""
        self._partial_ms = 0  # where the utterance of the last partial begins
        self._background = Background(self._show_busy, self._show_error)
        super().__init__(title=title, file=os.fspath(file))
        self.on_msg(self._said)

    def __repr__(self) -> str:
        return f"LiveTranscript({len(self._finals)} finals{', running' if self.running else ''})"

    @property
    def messages(self) -> list[Message]:
        """Messages of all sessions so far, of the partials the newest ones."""
        return [message for session in self._sessions for message in session.messages]

    @property
    def result(self) -> pd.DataFrame:
        """The finals so far: see `voxframe.load_stream`."""
        return answers.load_stream([message for message in self.messages if isinstance(message, Final)])

    @property
    def words(self) -> pd.DataFrame:
        """The words of the finals so far: see `voxframe.load_stream_words`."""
        return answers.load_stream_words(self.messages, finals_only=True)

    @property
    def text(self) -> str:
        """The text of the finals so far."""
        return " ".join(final["text"] for final in self._finals)

    @property
    def code(self) -> str:
        """Lines that stream the same kind of source without a widget."""
        source = repr(self.file) if self._from == "file" or (self.file and not self._from) else "voxframe.microphone()"
        options = "".join(f", {name}={value!r}" for name, value in self._options.items() if name != "token")
        lines = ["import voxframe", "", f"client = {connect_call(self._client)}"]
        lines += [f"session = client.stream({source}{options})", "session.wait()"]
        return "\n".join([*lines, "result = voxframe.load_stream(session.finals)"])

    def _still_html(self) -> str:
        """The finals so far."""
        rows = "".join(f"<p><small>{_clock(final)}</small> {escaped(final['text'])}</p>" for final in self._finals)
        return f"<p><strong>{escaped(self.title)}</strong></p>{rows or '<p>Nothing was said yet.</p>'}"

    def start(self) -> None:
        """Stream the recording that `file` names, in the background. The microphone begins with its button.

        Raises:
            OptionError: A session is under way, or no file is named.
        """
        if not self.file.strip():
            raise OptionError("no file is named; set .file, or press the microphone's button")
        path = self.file.strip()
        self._begin("file", path)

    def stop(self) -> None:
        """Send no more; what was sent is still transcribed."""
        self.send({"do": "stop"})
        if self._sound is not None:
            self._sound.end()
        elif self.running and self._sessions:
            threading.Thread(target=self._terminate, args=(self._sessions[-1],), daemon=True).start()

    def clear(self) -> None:
        """Forget what was said; not while a session is under way.

        Raises:
            OptionError: One is.
        """
        if self.running:
            raise OptionError("a session is under way; stop it first")
        self._sessions, self._finals, self._partial = [], [], ""

    def wait(self, timeout: float | None = None) -> None:
        """Wait until no session is under way.

        Raises:
            TimeoutError: One still is after `timeout` seconds.
        """
        self._background.wait(timeout)

    def close(self) -> None:
        """End the session and close the widget."""
        if "_background" in self.__dict__:  # one that was never whole is closed, too, when it goes
            if self.running:
                self.stop()
            self._background.close()
        super().close()

    def _begin(self, kind: str, source: Any) -> None:
        if self.running:
            raise OptionError("a session is under way; stop it first")
        self.running, self._from = True, kind
        self._background.do("connecting", lambda: self._stream(source))

    def _stream(self, source: Any) -> None:
        """One session, from its beginning to its end."""
        try:
            self._client = self._client or connect()
            given: StreamOptions = {**self._options, "on_partial": self._heard, "on_final": self._settled}
            session = self._client.stream(source, **given)
            self._sessions.append(session)
            session.start()
            self.busy = "listening" if self._from == "microphone" else "streaming"
            session.wait()
        finally:
            self.running, self._sound, self._partial = False, None, ""
            self.send({"do": "stop"})

    def _heard(self, partial: Partial) -> None:
        self._partial, self._partial_ms = partial.text, partial.start_ms or 0

    def _settled(self, final: Final) -> None:
        # Else the partial is of the next utterance, of which more is known already.
        if final.end_ms is None or self._partial_ms < final.end_ms:
            self._partial = ""
        if final.text:
            self._finals = [*self._finals, {"text": final.text, "start_ms": final.start_ms}]

    def _terminate(self, session: Stream) -> None:
        self._background.guarded(lambda: void(session.terminate()), after=True)

    def _said(self, _: Any, message: Any, buffers: Any) -> None:
        """Sound, or a click."""
        do = message.get("do")
        if do == "sound":
            if self._sound is not None and not self._sound.put(bytes(buffers[0])):
                self.error = "the service is more than a minute behind; the oldest sound is left out"
            return
        self._background.guarded(lambda: self._clicked(do, message))

    def _clicked(self, do: Any, message: Any) -> None:
        if do == "listen":
            rate = int(message["rate"])
            if not 8000 <= rate <= 192_000:
                raise AudioError(f"the microphone gives {rate} samples a second, which is none of a microphone")
            sound = BrowserSound(rate)
            self._begin("microphone", sound)
            self._sound = sound
        elif do == "file":
            self.file = str(message.get("file", self.file))  # what was typed last may come later than a click
            self.start()
        elif do == "stop":
            self.stop()
        elif do == "clear":
            self.clear()

    def _show_busy(self, what: str) -> None:
        self.busy = what

    def _show_error(self, text: str) -> None:
        self.error = text


def void(_: object) -> None:
    """Nothing, of anything."""


def _clock(final: dict[str, Any]) -> str:
    return "" if final["start_ms"] is None else clock(final["start_ms"] / 1000)
