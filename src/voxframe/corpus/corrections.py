"""The part of a corpus that keeps what people corrected in the text of turns: `corrections/<id>.json`.

Tables, searches and exports keep the words of the service, which carry times and confidences; a correction stands
beside them and joins by `transcript_id` and `utterance_idx`. Where a transcript is replaced by one with other turns,
those about a turn that is gone hold no more; they stay in the file, and `stale_corrections` lists them.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from voxframe.corpus.disk import clear_errors
from voxframe.corpus.marks import Mark, as_json, from_json, holding, marks
from voxframe.corpus.store import write_atomic
from voxframe.corpus.turns import turn
from voxframe.errors import CorpusError, OptionError
from voxframe.file_names import file_name

_LONGEST = 100_000  # characters of a turn
_TEXT: Any = pd.StringDtype("pyarrow", na_value=np.nan)


class Corrections(ABC):
    """Corrected texts of the turns of a corpus; `Corpus` is one of these."""

    path: Path

    @abstractmethod
    def arrow(self, name: str, transcript_id: str) -> pa.Table:
        """One table of one transcript as Arrow."""

    @abstractmethod
    def ids(self) -> list[str]:
        """Identifiers of all transcripts here, sorted."""

    @abstractmethod
    def _stale_names(self, transcript_id: str) -> list[tuple[int, str, Mark]]:
        """Turns whose name holds no more, with that name and what they were."""

    def correct_turns(self, transcript_id: str, texts: Mapping[int, str | None]) -> pd.DataFrame:
        """Say what was really said in turns of a transcript. `TranscriptPlayer` shows it; tables stay as they came.

        Args:
            transcript_id: Identifier of the transcript.
            texts: The text of a turn, by its `utterance_idx`; None takes the correction away.

        Returns:
            As `corrections` of this transcript.

        Raises:
            CorpusError: It is not here, or the corpus cannot be written.
            OptionError: There is no such turn, or a text is none.

        Example:
            >>> import json, tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> turns = [{"speaker": "A", "text": "Helo.", "start": 0, "end": 90, "words": []}]
            >>> _ = corpus.put("t1", json.dumps({"id": "t1", "utterances": turns}).encode())
            >>> corpus.correct_turns("t1", {0: "Hello."})["text"].to_list()
            ['Hello.']
        """
        positions = marks(self.arrow("utterances", transcript_id))
        path = self._corrections_path(transcript_id)
        gone = _read(path)[0].keys()  # may be taken away
        if missing := [n for n, text in texts.items() if n not in positions and not (text is None and n in gone)]:
            there = f"0 to {len(positions) - 1}" if positions else "no turns"
            raise OptionError(f"{transcript_id!r} has no turn {missing[0]!r}; it has {there}")
        given = {int(position): _checked(text) for position, text in texts.items()}
        with clear_errors(self.path), turn(self.path / ".locks" / f"corrections-{file_name(transcript_id)}"):
            before, made_for = _read(path)
            now = {**before, **given}
            made_for |= {position: positions[position] for position in given if position in positions}
            kept = {str(position): now[position] for position in sorted(now) if now[position] is not None}
            marked = as_json({n: mark for n, mark in made_for.items() if now.get(n) is not None})
            if kept:
                path.parent.mkdir(parents=True, exist_ok=True)
                whole = {"transcript_id": transcript_id, "texts": kept, "made_for": marked}
                state = json.dumps(whole, ensure_ascii=False, indent=1)
                write_atomic(path, lambda file: file.write(state.encode() + b"\n"))
            else:
                path.unlink(missing_ok=True)
        return self.corrections(transcript_id)

    def corrections(self, ids: str | Iterable[str]) -> pd.DataFrame:
        """Corrected texts of turns, of those that are still what they were.

        Args:
            ids: Identifier or identifiers.

        Returns:
            One row a corrected turn: `transcript_id` str, `utterance_idx` int64, `text` str.

        Raises:
            CorpusError: A file of corrections cannot be read.
        """
        rows = [
            (transcript_id, position, text)
            for transcript_id in ([ids] if isinstance(ids, str) else ids)
            for position, text in self._corrected(transcript_id, stale=False).items()
        ]
        dtypes = {"transcript_id": _TEXT, "utterance_idx": "int64", "text": _TEXT}
        return pd.DataFrame(rows, columns=list(dtypes)).astype(dtypes)

    def stale_corrections(self) -> pd.DataFrame:
        """Corrected texts, and names of single turns, that hold no more: their transcript has other turns by now.

        `correct_turns` and `name_speakers` say it of the right turn, or take it away with None.

        Returns:
            One row a turn: `transcript_id` str, `utterance_idx` int64 (which it had), `text`, `speaker_name` str (what
            was said of it; one of them is null), `start_ms` Int64, `was` str (when it began, and its text).

        Raises:
            CorpusError: A file of corrections or names cannot be read.
        """
        rows: list[tuple[object, ...]] = []
        for transcript_id in self.ids():
            made_for = _read(self._corrections_path(transcript_id))[1]
            for position, text in self._corrected(transcript_id, stale=True).items():
                rows.append((transcript_id, position, text, None, *made_for.get(position, (None, None))))
            for position, name, mark in self._stale_names(transcript_id):
                rows.append((transcript_id, position, None, name, *mark))
        dtypes: dict[str, Any] = {"transcript_id": _TEXT, "utterance_idx": "int64", "text": _TEXT}
        dtypes |= {"speaker_name": _TEXT, "start_ms": pd.Int64Dtype(), "was": _TEXT}
        return pd.DataFrame(rows, columns=list(dtypes)).astype(dtypes)

    def _corrected(self, transcript_id: str, *, stale: bool) -> dict[int, str]:
        """Corrected texts that hold, or that hold no more."""
        texts, made_for = _read(self._corrections_path(transcript_id))
        if not texts:
            return {}
        same = holding(texts, made_for, self.arrow("utterances", transcript_id))
        return {position: text for position, text in texts.items() if (position in same) != stale}

    def _forget_corrections(self, transcript_id: str) -> None:
        self._corrections_path(transcript_id).unlink(missing_ok=True)

    def _corrections_path(self, transcript_id: str) -> Path:
        return self.path / "corrections" / f"{file_name(transcript_id)}.json"


def _read(path: Path) -> tuple[dict[int, str], dict[int, Mark]]:
    """Corrected texts, and what their turns were then."""
    try:
        found = json.loads(path.read_bytes())
        texts = {int(position): str(text) for position, text in found["texts"].items()}
        return texts, from_json(found.get("made_for", {}))
    except FileNotFoundError:
        return {}, {}
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as e:
        raise CorpusError(
            f"the corrections in {path} cannot be read ({e}); delete the file and correct again"
        ) from None


def _checked(text: object) -> str | None:
    if text is None:
        return None
    given = " ".join(text.split()) if isinstance(text, str) else ""
    if not given or len(given) > _LONGEST or any("\ud800" <= c <= "\udfff" for c in given):
        raise OptionError(f"a turn is a text of 1 to {_LONGEST:,} characters, not {text!r:.100}; None takes it back")
    return given
