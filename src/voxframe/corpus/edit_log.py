"""The edits of turns in the catalog: every edit of a transcript in order, also those that were undone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from voxframe._files import file_name
from voxframe.corpus.catalog import Catalog
from voxframe.frames.corrected import VERSION
from voxframe.frames.turn_edits import ARGUMENTS, Edit, Was
from voxframe.schema import SCHEMA_VERSION


class EditLog:
    """The edits of the transcripts of a corpus."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def all(self, transcript_id: str | None = None) -> dict[str, list[Edit]]:
        """Return every edit of each transcript that has any, in order."""
        edits: dict[str, list[Edit]] = {}
        for i, text in self._rows(None if transcript_id is None else [transcript_id]):
            if (edit := _parse(text)) is not None:
                edits.setdefault(i, []).append(edit)
        return edits

    def active(self, transcript_id: str) -> list[Edit]:
        """Return the edits of a transcript that were not undone."""
        return [edit for edit in self.all(transcript_id).get(transcript_id, []) if edit.undone is None]

    def hashes(self, ids: Iterable[str] | None = None) -> dict[str, str]:
        """Return a text that changes with the edits that apply, of each transcript that has any."""
        ids = None if ids is None else list(ids)
        texts: dict[str, list[str]] = {}
        for i, text in self._rows(ids if ids is not None and len(ids) < 64 else None):
            if '"undone": null' in text:
                texts.setdefault(i, []).append(text)
        edited = texts.keys() if ids is None else texts.keys() & set(ids)
        return {i: hashlib.sha256(repr((VERSION, SCHEMA_VERSION, texts[i])).encode()).hexdigest()[:32] for i in edited}

    def stamps(self) -> dict[str, str]:
        """Return the texts of `hashes` by the stem of the files of the transcript."""
        return {file_name(i): key for i, key in self.hashes().items()}

    def keep(self, transcript_id: str, edits: Sequence[Edit]) -> None:
        """Store the edits of a transcript, of which none is ever removed."""
        texts = [text for _, text in self._rows([transcript_id])]
        rows = []
        for n, edit in enumerate(edits):
            text = json.dumps(asdict(edit), ensure_ascii=False)
            if n >= len(texts) or texts[n] != text:
                rows.append({"transcript_id": transcript_id, "n": n, "edit": text})
        with self._catalog.writing() as tx:
            tx.put("edits", rows)

    def _rows(self, ids: Sequence[str] | None) -> list[tuple[str, str]]:
        if ids is None:
            return self._catalog.rows("SELECT transcript_id, edit FROM edits ORDER BY transcript_id, n")
        among = "transcript_id IN (SELECT value FROM json_each(?))"
        query = f"SELECT transcript_id, edit FROM edits WHERE {among} ORDER BY transcript_id, n"  # noqa: S608
        return self._catalog.rows(query, [json.dumps([*ids])])


def _parse(text: str) -> Edit | None:
    """Return a stored edit; None if it is of a later version, so that it does not fit."""
    try:
        row: dict[str, Any] = json.loads(text)
        edit = Edit(**{**row, "was": _was(row["was"]), "other_was": _was(row["other_was"])})
        return edit if ARGUMENTS.get(edit.action, frozenset()) <= edit.value.keys() else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _was(fields: dict[str, Any] | None) -> Was | None:
    return None if fields is None else Was(**fields)
