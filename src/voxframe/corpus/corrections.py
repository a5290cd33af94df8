"""The part of a corpus that keeps what people corrected in the text of turns: `corrections/<id>.json`.

Tables, searches and exports keep the words of the service, which carry times and confidences; a correction stands
beside them and joins by `transcript_id` and `utterance_idx`.
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
        positions = set(self.arrow("utterances", transcript_id)["utterance_idx"].to_pylist())
        if missing := [position for position in texts if position not in positions]:
            there = f"0 to {len(positions) - 1}" if positions else "no turns"
            raise OptionError(f"{transcript_id!r} has no turn {missing[0]!r}; it has {there}")
        given = {int(position): _checked(text) for position, text in texts.items()}
        path = self._corrections_path(transcript_id)
        with clear_errors(self.path), turn(self.path / ".locks" / f"corrections-{file_name(transcript_id)}"):
            now = {**_read(path), **given}
            kept = {str(position): now[position] for position in sorted(now) if now[position] is not None}
            if kept:
                path.parent.mkdir(parents=True, exist_ok=True)
                state = json.dumps({"transcript_id": transcript_id, "texts": kept}, ensure_ascii=False, indent=1)
                write_atomic(path, lambda file: file.write(state.encode() + b"\n"))
            else:
                path.unlink(missing_ok=True)
        return self.corrections(transcript_id)

    def corrections(self, ids: str | Iterable[str]) -> pd.DataFrame:
        """Corrected texts of turns.

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
            for position, text in _read(self._corrections_path(transcript_id)).items()
        ]
        dtypes = {"transcript_id": _TEXT, "utterance_idx": "int64", "text": _TEXT}
        return pd.DataFrame(rows, columns=list(dtypes)).astype(dtypes)

    def _forget_corrections(self, transcript_id: str) -> None:
        self._corrections_path(transcript_id).unlink(missing_ok=True)

    def _corrections_path(self, transcript_id: str) -> Path:
        return self.path / "corrections" / f"{file_name(transcript_id)}.json"


def _read(path: Path) -> dict[int, str | None]:
    try:
        return {int(position): str(text) for position, text in json.loads(path.read_bytes())["texts"].items()}
    except FileNotFoundError:
        return {}
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
