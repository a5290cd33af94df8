"""Files of corrections, `corrections/<id>.json`: every edit of a transcript in order, also those that were undone."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from voxframe._files import file_lock, file_name, stamp, write_atomic
from voxframe.corpus.archive import Archive, view_of
from voxframe.corpus.part_reading import Located, runs_of
from voxframe.corpus.store import EXPORTS, check_writable
from voxframe.errors import CorpusError
from voxframe.frames.corrected import TURN_TABLES, Corrected, correct_tables
from voxframe.frames.turn_edits import Edit, Was
from voxframe.schema import CORRECTED_TABLES


class EditsOfTranscript(NamedTuple):
    """The edits of one transcript.

    Attributes:
        transcript_id: Id of the transcript.
        stamp: A text that changes with the file.
        edits: All edits in order.
    """

    transcript_id: str
    stamp: str
    edits: list[Edit]

    @property
    def active(self) -> list[Edit]:
        """The edits that were not undone."""
        return _active(self.edits)


class CorrectionFiles:
    """Corrections on disk.

    Args:
        root: Directory of the corpus.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = root / "corrections"
        self._read: dict[str, EditsOfTranscript] = {}

    def get(self, transcript_id: str) -> list[Edit]:
        """Return every edit of a transcript.

        Raises:
            CorpusError: The file cannot be read.
        """
        try:
            return _parse(self._path(transcript_id))[1]
        except FileNotFoundError:
            return []

    def all(self) -> dict[str, EditsOfTranscript]:
        """Return the edits of every transcript with a file, by the stem of the file. Unchanged files are not read."""
        found: dict[str, EditsOfTranscript] = {}
        with contextlib.suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            for entry in entries:
                stem = entry.name.removesuffix(".json")
                if entry.name.startswith(".") or stem == entry.name:
                    continue
                with contextlib.suppress(FileNotFoundError):
                    now = stamp(entry.stat())
                    known = self._read.get(stem)
                    if known is None or known.stamp != now:
                        transcript_id, edits = _parse(Path(entry.path))
                        known = EditsOfTranscript(transcript_id, now, edits)
                    found[stem] = known
        self._read = found
        return found

    def keep(self, transcript_id: str, edits: Sequence[Edit]) -> None:
        """Replace the edits of a transcript.

        Raises:
            CorpusError: The corpus cannot be written.
        """
        check_writable(self._root)
        path = self._path(transcript_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = {"transcript_id": transcript_id, "edits": [asdict(edit) for edit in edits]}
        write_atomic(path, json.dumps(whole, ensure_ascii=False, indent=1).encode() + b"\n")

    def lock(self, transcript_id: str) -> AbstractContextManager[bool]:
        """Return a context manager that holds the lock on the corrections of a transcript."""
        return file_lock(self._root / ".locks" / f"corrections-{file_name(transcript_id)}")

    def _path(self, transcript_id: str) -> Path:
        return self._folder / f"{file_name(transcript_id)}.json"


class CurrentCorrections:
    """The corrected tables of the current payloads.

    Args:
        archive: The transcripts.

    Attributes:
        files: The edits.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.files = CorrectionFiles(archive.path)

    def active(self, transcript_id: str) -> list[Edit]:
        """Return the edits of a transcript that were not undone. Reads its file only, while `edits` lists all."""
        return _active(self.files.get(transcript_id))

    def edits(self) -> dict[str, list[Edit]]:
        """Return the edits that were not undone of each transcript that has any, by transcript id."""
        return {of_it.transcript_id: active for of_it in self.files.all().values() if (active := of_it.active)}

    def stamps(self) -> dict[str, str]:
        """Return a text that changes with the edits, by the stem of the transcript's files."""
        return {stem: of_it.stamp for stem, of_it in self.files.all().items() if of_it.active}

    def of(self, transcript_id: str, edits: Sequence[Edit], names: Collection[str] = ()) -> Corrected:
        """Apply edits to a transcript.

        Args:
            transcript_id: Id of the transcript.
            edits: The edits.
            names: Tables to return besides those of the turns.

        Raises:
            CorpusError: The transcript is not in the corpus.
        """
        own = [*TURN_TABLES, *(name for name in names if view_of(name) == "transcript" and name not in TURN_TABLES)]
        tables = self._archive.tables(transcript_id, own)
        for view in EXPORTS:
            if view in names and self._archive.has(transcript_id, view):
                tables[view] = self._archive.table(view, transcript_id)
        return correct_tables(tables, edits)

    def tables(self, name: str, ids: Iterable[str]) -> dict[str, pa.Table]:
        """Return a table of each transcript with corrections, by transcript id; not of those that cannot be read."""
        if name not in CORRECTED_TABLES:
            return {}
        ids = list(ids)
        edits = {one: self.active(one) for one in ids} if len(ids) == 1 else self.edits()
        wanted = [transcript_id for transcript_id in ids if edits.get(transcript_id)]
        if name in EXPORTS and wanted:  # otherwise they are made from the corrected words
            stored = set(self._archive.select(name, None))
            wanted = [transcript_id for transcript_id in wanted if transcript_id in stored]
        if not wanted:
            return {}
        names = dict.fromkeys([*TURN_TABLES, name])
        found = {one: _by_transcript(*self._archive.read(one, wanted)) for one in names}
        return {
            i: correct_tables({one: found[one][i] for one in names}, edits[i]).tables[name]
            for i in wanted
            if all(i in tables for tables in found.values())
        }


def _active(edits: Sequence[Edit]) -> list[Edit]:
    return [edit for edit in edits if edit.undone is None]


def _by_transcript(table: pa.Table, located: Located) -> dict[str, pa.Table]:
    """Return the rows of each transcript that can be read, also of those without rows."""
    runs = runs_of(table["transcript_id"])
    return {i: table.slice(*runs.get(i, (0, 0))) for i in [*located.members, *located.loose]}


def _parse(path: Path) -> tuple[str, list[Edit]]:
    """Return the transcript id and the edits of a file."""
    raw = path.read_bytes()
    try:
        found = json.loads(raw)
        transcript_id = str(found["transcript_id"])
        if "texts" in found:  # from a version that kept only the text of each turn
            return transcript_id, _of_texts(found["texts"], found.get("made_for", {}))
        return transcript_id, [
            Edit(**{**row, "was": _was(row["was"]), "other_was": _was(row["other_was"])}) for row in found["edits"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise CorpusError(
            f"the corrections in {path} cannot be read ({e}); delete the file and set them again"
        ) from None


def _was(found: dict[str, Any] | None) -> Was | None:
    return None if found is None else Was(**found)


def _of_texts(texts: dict[str, str], made_for: dict[str, list[Any]]) -> list[Edit]:
    edits = []
    for key, text in texts.items():
        was = Was(made_for[key][0], None, made_for[key][1]) if key in made_for else None
        edits.append(Edit("text", int(key), was, {"text": str(text)}))
    return edits
