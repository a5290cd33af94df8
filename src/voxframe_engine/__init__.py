"""The offline engine: sound and words in, fields of the transcription API out. It knows no HTTP, no jobs and no corpus.

    transcription   a media file and the options of a job -> result fields
    speech          audio, speech detection, recognition engines, speakers
    text            words, sentences, captions, formatting
    analyses        entities, sentiment, topics, chapters, ... computed from the text
    answers         summaries and answers: quoted from the text, or by a language model

It imports only the ground floor of `voxframe`. The server runs it in worker processes; other callers import it lazily.
"""

from __future__ import annotations

from voxframe.errors import VoxframeError


class JobFailed(VoxframeError):  # noqa: N818  # an outcome of a job ("status": "error"), not a fault of the service
    """A recording that cannot be transcribed."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RequestRefused(ValueError):  # noqa: N818 - the result of a request, not a fault
    """A request that cannot be fulfilled; the message says why."""
