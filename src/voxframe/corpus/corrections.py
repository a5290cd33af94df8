"""Corrected texts of turns, in `corrections/<id>.json`.

Tables, searches and exports keep the service's words with their times and confidences. A correction is stored beside
them and joins by `transcript_id` and `utterance_idx`. If a transcript is replaced and a turn changes, its correction
becomes stale: it stays in the file, and `Corrections.stale` lists it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from voxframe._files import file_lock, file_name, write_atomic
from voxframe.corpus.archive import Archive
from voxframe.corpus.io_errors import clear_errors
from voxframe.corpus.speaker_names import Fingerprint, as_json, checked_text, fingerprints, from_json, unchanged
from voxframe.corpus.speakers import CurrentNames
from voxframe.corpus.store import check_writable
from voxframe.errors import CorpusError, OptionError

_TURN = ("the text of a turn", 100_000)  # description and maximum number of characters
_TEXT: Any = pd.StringDtype("pyarrow", na_value=np.nan)


class Corrections:
    """Corrected texts of turns, as `corpus.corrections`.

    Args:
        archive: The transcripts.
        names: The names in use; names of single turns can become stale like corrections.
    """

    def __init__(self, archive: Archive, names: CurrentNames) -> None:
        self._archive = archive
        self._names = names

    def set(self, transcript_id: str, texts: Mapping[int, str | None]) -> pd.DataFrame:
        """Correct the text of turns of a transcript. `TranscriptPlayer` shows the corrections; tables do not change.

        Args:
            transcript_id: Id of the transcript.
            texts: Corrected text of each turn by `utterance_idx`; None removes a correction.

        Returns:
            The corrections of this transcript, as `get` returns them.

        Raises:
            CorpusError: The transcript is not in the corpus, or the corpus cannot be written.
            OptionError: There is no such turn, or a text is invalid.

        Example:
            >>> import json, tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> turns = [{"speaker": "A", "text": "Helo.", "start": 0, "end": 90, "words": []}]
            >>> corpus.raw.put("t1", json.dumps({"id": "t1", "utterances": turns}).encode())
            >>> corpus.corrections.set("t1", {0: "Hello."})["text"].to_list()
            ['Hello.']
        """
        transcript_id = self._archive.recordings.id(transcript_id)
        positions = fingerprints(self._archive.table("utterances", transcript_id))
        path = self._path(transcript_id)
        gone = _read(path)[0].keys()  # corrections of turns that no longer exist can still be removed
        if missing := [n for n, text in texts.items() if n not in positions and not (text is None and n in gone)]:
            there = f"0 to {len(positions) - 1}" if positions else "no turns"
            raise OptionError(f"{transcript_id!r} has no turn {missing[0]!r}; it has {there}")
        given = {int(position): checked_text(text, *_TURN) for position, text in texts.items()}
        with (
            clear_errors(self._archive.path),
            file_lock(self._archive.path / ".locks" / f"corrections-{file_name(transcript_id)}"),
        ):
            check_writable(self._archive.path)
            before, made_for = _read(path)
            now = {**before, **given}
            made_for |= {position: positions[position] for position in given if position in positions}
            kept = {str(position): now[position] for position in sorted(now) if now[position] is not None}
            kept_for = as_json({n: made for n, made in made_for.items() if now.get(n) is not None})
            if kept:
                path.parent.mkdir(parents=True, exist_ok=True)
                whole = {"transcript_id": transcript_id, "texts": kept, "made_for": kept_for}
                state = json.dumps(whole, ensure_ascii=False, indent=1)
                write_atomic(path, state.encode() + b"\n")
            else:
                path.unlink(missing_ok=True)
        return self.get(transcript_id)

    def get(self, ids: str | Iterable[str]) -> pd.DataFrame:
        """Return the corrected texts of turns, without stale corrections.

        Args:
            ids: Id or ids of transcripts.

        Returns:
            One row per corrected turn: `transcript_id` str, `utterance_idx` int64, `text` str.

        Raises:
            CorpusError: A file of corrections cannot be read.
        """
        rows = [
            (transcript_id, position, text)
            for transcript_id in self._archive.recordings.ids(ids)
            for position, text in self._corrected(transcript_id, stale=False).items()
        ]
        dtypes = {"transcript_id": _TEXT, "utterance_idx": "int64", "text": _TEXT}
        return pd.DataFrame(rows, columns=list(dtypes)).astype(dtypes)

    def stale(self) -> pd.DataFrame:
        """Return the corrections and names of single turns that no longer apply, because the transcript was replaced.

        To resolve one, call `corpus.corrections.set` or `corpus.speakers.set` with the right turn, or with None to
        remove it.

        Returns:
            One row per turn: `transcript_id` str; `utterance_idx` int64, its old index; `text` str and `speaker_name`
            str, one of which is null; `start_ms` Int64 and `was` str, the old start in milliseconds and the old text.

        Raises:
            CorpusError: A file of corrections or names cannot be read.
        """
        rows: list[tuple[object, ...]] = []
        for transcript_id in self._archive.ids():
            made_for = _read(self._path(transcript_id))[1]
            for position, text in self._corrected(transcript_id, stale=True).items():
                rows.append((transcript_id, position, text, None, *made_for.get(position, (None, None))))
            for position, name, fingerprint in self._names.stale(transcript_id):
                rows.append((transcript_id, position, None, name, *fingerprint))
        dtypes: dict[str, Any] = {"transcript_id": _TEXT, "utterance_idx": "int64", "text": _TEXT}
        dtypes |= {"speaker_name": _TEXT, "start_ms": pd.Int64Dtype(), "was": _TEXT}
        return pd.DataFrame(rows, columns=list(dtypes)).astype(dtypes)

    def _corrected(self, transcript_id: str, *, stale: bool) -> dict[int, str]:
        """Return the corrected texts that still apply, or those that are stale."""
        texts, made_for = _read(self._path(transcript_id))
        if not texts:
            return {}
        same = unchanged(texts, made_for, self._archive.table("utterances", transcript_id))
        return {position: text for position, text in texts.items() if (position in same) != stale}

    def _path(self, transcript_id: str) -> Path:
        return self._archive.path / "corrections" / f"{file_name(transcript_id)}.json"


def _read(path: Path) -> tuple[dict[int, str], dict[int, Fingerprint]]:
    """Return the corrected texts, and the fingerprints that their turns had."""
    try:
        found = json.loads(path.read_bytes())
        texts = {int(position): str(text) for position, text in found["texts"].items()}
        return texts, from_json(found.get("made_for", {}))
    except FileNotFoundError:
        return {}, {}
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as e:
        raise CorpusError(
            f"the corrections in {path} cannot be read ({e}); delete the file and set them again"
        ) from None
