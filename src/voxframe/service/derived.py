"""Views derived from a completed transcript: sentences, paragraphs, captions, word search."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

from voxframe import options as opt
from voxframe.errors import OptionError
from voxframe.service import views, words
from voxframe.service.endpoints import Endpoints, View, check_directory, transcript_path
from voxframe.service.lenient import as_path


class DerivedViews(Endpoints):
    """Endpoints that derive something from a completed transcript."""

    def sentences(self, transcript_id: str) -> views.Passages:
        """Sentences of a completed transcript, each with its words."""
        return self._passages(transcript_id, "sentences")

    def paragraphs(self, transcript_id: str) -> views.Passages:
        """Paragraphs of a completed transcript, each with its words."""
        return self._passages(transcript_id, "paragraphs")

    def subtitles(
        self,
        transcript_id: str,
        format: Literal["srt", "vtt"] | None = None,  # noqa: A002 - the interface's word
        *,
        chars_per_caption: int | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> str:
        """Captions of a completed transcript.

        Args:
            transcript_id: Its identifier.
            format: "srt" or "vtt" (WebVTT); None takes it from the name of the file, else "srt".
            chars_per_caption: The most characters in a caption; None leaves it to the service.
            path: File to write them to as well.

        Raises:
            OptionError: The format, the number or the path is not allowed; nothing was sent.
            ServiceError: The service, or the way to it, failed.
        """
        target = None if path is None else as_path(path)
        suffix = target.suffix.lower().removeprefix(".") if target is not None else ""
        kind = format if format is not None else suffix if suffix in opt.SUBTITLE_FORMATS else "srt"
        if kind not in opt.SUBTITLE_FORMATS:
            raise OptionError(f"the subtitle format is {format!r}; give 'srt' or 'vtt'")
        chars = chars_per_caption
        if chars is not None and (isinstance(chars, bool) or not isinstance(chars, int) or chars < 1):
            raise OptionError(f"chars_per_caption is {chars!r}; give a whole number of at least 1, or leave it out")
        if target is not None:
            if target.is_dir():
                raise OptionError(f"{target} is a directory; give the name of a file in it")
            check_directory(target)
        answer = self._http.request(
            "GET", f"{transcript_path(transcript_id)}/{kind}", params={"chars_per_caption": chars}, accept="text"
        )
        text = answer.content.decode("utf-8-sig", "replace")
        if target is not None:
            target.write_text(text, encoding="utf-8", newline="")
        return text

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
            "GET", f"{transcript_path(transcript_id)}/word-search", params={"words": ",".join(words.check(terms))}
        )
        return words.matches(transcript_id, answer.data, answer.content)

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
        return self._view(transcript_id, view).content

    def _passages(self, transcript_id: str, view: Literal["sentences", "paragraphs"]) -> views.Passages:
        answer = self._view(transcript_id, view)
        return views.passages(transcript_id, view, answer.data, answer.content)
