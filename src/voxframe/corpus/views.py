"""The part of a corpus that keeps views of a transcript: captions, word search, redacted audio."""

from __future__ import annotations

import hashlib
import shutil
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import orjson

from voxframe.corpus import kept
from voxframe.corpus.disk import clear_errors
from voxframe.errors import CorpusError, CorpusWarning
from voxframe.file_names import file_name
from voxframe.service import words

if TYPE_CHECKING:
    from voxframe.corpus.corpus import Corpus
    from voxframe.service import Client


class Views:
    """Views of a transcript that a service makes, each asked for once; `Corpus` is one of these."""

    def captions(
        self,
        transcript_id: str,
        format: Literal["srt", "vtt"] = "srt",  # noqa: A002 - the interface's word
        *,
        chars_per_caption: int | None = None,
        client: Client | None = None,
        refresh: bool = False,
    ) -> str:
        """Captions as the service makes them, asked for once. `export` makes captions with the names of speakers.

        Args:
            transcript_id: Identifier of a transcript that is here.
            format: "srt" or "vtt".
            chars_per_caption: The most characters in a caption; None leaves it to the service.
            client: The service; None is the one used last, else that of `voxframe.connect()`.
            refresh: Whether to ask even where they are here.

        Raises:
            OptionError: The format or the number is not allowed.
            CorpusError: The transcript is not here, or the corpus cannot be written.
            ServiceError: The service, or the way to it, failed.
        """
        request = {"view": "captions", "format": format, "chars_per_caption": chars_per_caption}

        def ask(client: Client) -> bytes:
            return client.subtitles(transcript_id, format, chars_per_caption=chars_per_caption).encode()

        return self._view(transcript_id, request, ask, client, refresh).decode()

    def word_search(
        self,
        transcript_id: str,
        terms: words.Term | Iterable[words.Term],
        *,
        client: Client | None = None,
        refresh: bool = False,
    ) -> words.WordSearch:
        """Where words and phrases occur, as the service finds them, asked for once. `search` needs no service.

        Args:
            transcript_id: Identifier of a transcript that is here.
            terms: As for `Client.word_search`.
            client: The service; None is the one used last, else that of `voxframe.connect()`.
            refresh: Whether to ask even where the answer is here.

        Raises:
            OptionError: A phrase is empty or too long; nothing was sent.
            CorpusError: The transcript is not here, or the corpus cannot be written.
            ServiceError: The service, or the way to it, failed.
        """
        checked = words.check(terms)
        request = {"view": "word-search", "words": checked}
        raw = self._view(
            transcript_id, request, lambda client: client.word_search(transcript_id, checked).raw, client, refresh
        )
        return words.matches(transcript_id, orjson.loads(raw), raw)

    def redacted_audio(self, transcript_id: str, *, client: Client | None = None, refresh: bool = False) -> Path:
        """The recording with personal data beeped out, downloaded once.

        Args:
            transcript_id: A transcript made with `redact_pii=True, redact_pii_audio=True`.
            client: The service; None is the one used last, else that of `voxframe.connect()`.
            refresh: Whether to fetch it even where it is here.

        Returns:
            The file, below `redacted/` in the corpus; `forget` deletes it.

        Raises:
            CorpusError: The transcript is not here, or the corpus cannot be written.
            ServiceError: It was not asked for, has expired, or could not be fetched.
        """
        self._there(transcript_id)
        folder = self._corpus.path / "redacted"
        with clear_errors(self._corpus.path), self._corpus.ledger.turn(f"redacted-{file_name(transcript_id)}"):
            whole = {"transcript_id": transcript_id, "view": "redacted-audio"}
            key = kept.key_of(whole)
            found = redacted_files(self._corpus.path, transcript_id)
            if found and not refresh:
                known = kept.find(self._corpus.ledger, key)
                if known is None or known.content == _hash(found[0]):
                    return found[0]
                warnings.warn(f"{found[0]} is damaged and is fetched again", CorpusWarning, stacklevel=2)
            copy = self._corpus._service(client).redacted_audio(transcript_id)
            beginning = _beginning(self._corpus.path, transcript_id)
            beginning.mkdir(parents=True, exist_ok=True)
            fetched = copy.save(beginning)
            kept.keep_view(self._corpus.ledger, key, transcript_id, whole, _hash(fetched))
            path = fetched.replace(folder / f"{file_name(transcript_id)}{fetched.suffix}")
            shutil.rmtree(beginning, ignore_errors=True)
            return path

    def _view(
        self,
        transcript_id: str,
        request: dict[str, Any],
        ask: Callable[[Client], bytes],
        client: Client | None,
        refresh: bool,
    ) -> bytes:
        self._there(transcript_id)
        whole = {
            "transcript_id": transcript_id,
            "content": self._corpus._store.content(transcript_id, "transcript"),
            **request,
        }
        key = kept.key_of(whole)
        with clear_errors(self._corpus.path):
            known = None if refresh else kept.find(self._corpus.ledger, key)
            if known is not None:
                return known.content
            content = ask(self._corpus._service(client))
            kept.keep_view(self._corpus.ledger, key, transcript_id, whole, content)
        return content

    def _there(self, transcript_id: str) -> None:
        if transcript_id not in self._corpus:
            raise CorpusError(
                f"there is no finished transcript {transcript_id!r} in {self._corpus!r}; Corpus.ids() lists them"
            )

    @property
    def _corpus(self) -> Corpus:
        return cast("Corpus", self)


def _hash(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest().encode()


def forget_redacted(root: Path, transcript_id: str) -> None:
    """Delete the redacted recording of a transcript, and what came of one before it broke off."""
    for path in redacted_files(root, transcript_id):
        path.unlink(missing_ok=True)
    if _beginning(root, transcript_id).is_dir():
        shutil.rmtree(_beginning(root, transcript_id))


def _beginning(root: Path, transcript_id: str) -> Path:
    """Where a recording is while it is downloaded."""
    return root / "redacted" / f".{file_name(transcript_id)}"


def redacted_files(root: Path, transcript_id: str) -> list[Path]:
    """Redacted recordings of a transcript that are here."""
    name = file_name(transcript_id)
    return [path for suffix in (".mp3", ".wav", "") if (path := root / "redacted" / f"{name}{suffix}").is_file()]
