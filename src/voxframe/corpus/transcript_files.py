"""Small JSON files of transcripts, such as `names/<id>.json`: one per transcript that has any, replaced as a whole."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from voxframe._files import file_lock, file_name, stamp, write_atomic
from voxframe.corpus.store import check_writable, folder
from voxframe.errors import CorpusError

T = TypeVar("T")


class TranscriptFile(NamedTuple, Generic[T]):
    """The file of one transcript.

    Attributes:
        transcript_id: Id of the transcript.
        stamp: A text that changes with the file.
        content: Its content.
    """

    transcript_id: str
    stamp: str
    content: T


class TranscriptFiles(Generic[T]):
    """The files in one folder of a corpus.

    Args:
        root: Directory of the corpus.
        folder: Name of the folder, which says in messages what the files contain.
        parse: Returns the content of a decoded file. It may raise ValueError, KeyError, TypeError or AttributeError.
    """

    def __init__(self, root: Path, folder: str, parse: Callable[[Any], T]) -> None:
        self._root, self._folder, self._parse = root, root / folder, parse
        self._known: dict[str, TranscriptFile[T]] = {}

    def get(self, transcript_id: str) -> T | None:
        """Return the content of the file of a transcript; None if there is none.

        Raises:
            CorpusError: The file cannot be read.
        """
        try:
            return self._read(self._path(transcript_id))[1]
        except FileNotFoundError:
            return None

    def all(self) -> dict[str, TranscriptFile[T]]:
        """Return every file by its stem. Unchanged files are not read again.

        Raises:
            CorpusError: A file cannot be read.
        """
        found: dict[str, TranscriptFile[T]] = {}
        with contextlib.suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            for entry in entries:
                stem = entry.name.removesuffix(".json")
                if entry.name.startswith(".") or stem == entry.name:
                    continue
                with contextlib.suppress(FileNotFoundError):
                    now = stamp(entry.stat())
                    known = self._known.get(stem)
                    if known is None or known.stamp != now:
                        transcript_id, content = self._read(Path(entry.path))
                        known = TranscriptFile(transcript_id, now, content)
                    found[stem] = known
        self._known = found
        return found

    def keep(self, transcript_id: str, content: Mapping[str, Any] | None) -> None:
        """Replace the file of a transcript, or delete it if the content is None.

        Raises:
            CorpusError: The corpus cannot be written.
        """
        check_writable(self._root)
        path = self._path(transcript_id)
        folder(self._folder)
        if content is None:
            path.unlink(missing_ok=True)
            return
        text = json.dumps({"transcript_id": transcript_id, **content}, ensure_ascii=False, indent=1)
        write_atomic(path, text.encode() + b"\n")

    def lock(self, transcript_id: str) -> AbstractContextManager[bool]:
        """Return a context manager that holds the lock on the file of a transcript."""
        return file_lock(self._root / ".locks" / f"{self._folder.name}-{file_name(transcript_id)}")

    def _path(self, transcript_id: str) -> Path:
        return self._folder / f"{file_name(transcript_id)}.json"

    def _read(self, path: Path) -> tuple[str, T]:
        raw = path.read_bytes()
        try:
            found = json.loads(raw)
            return str(found["transcript_id"]), self._parse(found)
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise CorpusError(
                f"the {self._folder.name} in {path} cannot be read ({e}); delete the file and set them again"
            ) from None
