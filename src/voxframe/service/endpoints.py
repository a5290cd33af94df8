"""What the endpoint families of a client share: its settings, its transport, and paths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast
from urllib.parse import quote

from voxframe.errors import OptionError, SettingsError
from voxframe.service.answer import Answer
from voxframe.service.http import Transport
from voxframe.service.lenient import is_unicode
from voxframe.service.transcript import Transcript
from voxframe.settings import Settings, is_loopback

if TYPE_CHECKING:
    from voxframe.service.client import Client

View = Literal["transcript", "sentences", "paragraphs"]


class Endpoints:
    """Ground of every endpoint family.

    Args:
        settings: With an address and a key.
        transport: How requests are made; default: a `Transport` of its own.
    """

    def __init__(self, settings: Settings, *, transport: Transport | None = None) -> None:
        if settings.base_url is None or settings.api_key is None:
            raise SettingsError("a client needs base_url and api_key; voxframe.connect() finds them")
        self.settings = settings
        self.base_url = settings.base_url
        self._http = transport or Transport(settings.base_url, settings.api_key)
        self._local = is_loopback(self.base_url)

    def _view(self, transcript_id: str, view: View = "transcript", *, attempts: int | None = None) -> Answer:
        """The service's answer about a transcript."""
        suffix = "" if view == "transcript" else f"/{view}"
        return self._http.request("GET", transcript_path(transcript_id) + suffix, attempts=attempts)

    def _given(self, transcript: Transcript | str) -> Transcript:
        """A handle, of a handle or an id."""
        if isinstance(transcript, Transcript):
            return transcript
        transcript_path(transcript)
        return self._handle(transcript)

    def _handle(self, transcript_id: str, answer: Answer | None = None) -> Transcript:
        return Transcript(cast("Client", self), transcript_id, answer)


def transcript_path(transcript_id: str) -> str:
    """Path of a transcript, whatever its id holds.

    Raises:
        OptionError: It is no id.
    """
    return f"/v2/transcript/{segment(transcript_id, 'a transcript', 'Transcript.id')}"


def check_directory(target: Path) -> None:
    """Check that a file can be made there.

    Raises:
        OptionError: There is no such directory.
    """
    directory = target.absolute().parent
    if not directory.is_dir():
        raise OptionError(f"the directory {directory} does not exist; make it, or name another")


def segment(identifier: str, of: str, where: str) -> str:
    """An identifier as one segment of a path.

    Raises:
        OptionError: It is none.
    """
    if not isinstance(identifier, str) or identifier.strip() in ("", ".", "..") or not is_unicode(identifier):
        raise OptionError(f"{identifier!r} is no id of {of}; give the text that {where} holds")
    return quote(identifier, safe="")
