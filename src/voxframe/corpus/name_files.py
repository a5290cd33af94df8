"""The files of speaker names: `names/<id>.json` beside the raw payloads, which keep their labels.

A file holds every state there was, the present one last, so that a change can be taken back.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from voxframe.corpus.marks import Mark, as_json, from_json, holding
from voxframe.corpus.store import write_atomic
from voxframe.corpus.turns import turn
from voxframe.errors import CorpusError
from voxframe.file_names import file_name


@dataclass(frozen=True)
class Names:
    """What the speakers of one transcript are called.

    Attributes:
        speakers: Name of each speaker by label ("A"; "channel 1" where only channels are known).
        turns: Who speaks in single turns, by `utterance_idx`: a label, or a name.
        made_for: What these turns were when it was said.
        made: When it was so, UTC.
    """

    speakers: Mapping[str, str] = field(default_factory=dict)
    turns: Mapping[int, str] = field(default_factory=dict)
    made: str = ""
    made_for: Mapping[int, Mark] = field(default_factory=dict)

    def holding(self, turns: pa.Table) -> Names:
        """Without what was said of turns that are other ones by now.

        Args:
            turns: The table `utterances` of the transcript.
        """
        same = holding(self.turns, self.made_for, turns) if self.turns else set()
        return replace(self, turns={n: who for n, who in self.turns.items() if n in same})

    def __bool__(self) -> bool:
        return bool(self.speakers or self.turns)

    def of_turn(self, position: int) -> str:
        """Name in a turn that was corrected."""
        return self.speakers.get(self.turns[position], self.turns[position])


class NameFiles:
    """Names of speakers on the disk.

    Args:
        root: Directory of the corpus.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = root / "names"
        self._read: dict[str, tuple[tuple[int, int, int], str, Names]] = {}

    def of(self, transcript_id: str) -> tuple[Names, str]:
        """Names of a transcript and a text that differs with them; it is empty where there are none."""
        path = self._path(transcript_id)
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return Names(), ""
        return _parse(raw, path)[1][-1], hashlib.sha256(raw).hexdigest()[:16]

    def history(self, transcript_id: str) -> list[Names]:
        """Every state there was, the present one last."""
        path = self._path(transcript_id)
        return _parse(path.read_bytes(), path)[1] if path.exists() else []

    def all(self) -> dict[str, Names]:
        """Names of every transcript that has some, by its identifier."""
        found = {}
        with contextlib.suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.startswith(".") or not entry.name.endswith(".json"):
                    continue
                with contextlib.suppress(FileNotFoundError):
                    stat = entry.stat()
                    stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
                    known = self._read.get(entry.name)
                    if known is None or known[0] != stamp:
                        path = Path(entry.path)
                        transcript_id, states = _parse(path.read_bytes(), path)
                        known = (stamp, transcript_id, states[-1])
                    found[entry.name] = known
        self._read = found
        return {transcript_id: names for _, transcript_id, names in found.values()}

    def keep(self, transcript_id: str, history: list[Names]) -> None:
        """Replace all states of a transcript; with none the file goes."""
        path = self._path(transcript_id)
        if not history:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        states = [asdict(names) | {"made_for": as_json(names.made_for)} for names in history]
        text = json.dumps({"transcript_id": transcript_id, "states": states}, ensure_ascii=False, indent=1)
        write_atomic(path, lambda file: file.write(text.encode() + b"\n"))

    def turn(self, transcript_id: str) -> AbstractContextManager[bool]:
        """Hold the only right to change the names of a transcript."""
        return turn(self._root / ".locks" / f"names-{file_name(transcript_id)}")

    def _path(self, transcript_id: str) -> Path:
        return self._folder / f"{file_name(transcript_id)}.json"


def _parse(raw: bytes, path: Path) -> tuple[str, list[Names]]:
    """Identifier and states of a file, of which there is at least one."""
    try:
        found = json.loads(raw)
        return str(found["transcript_id"]), [
            Names(
                dict(state["speakers"]),
                {int(k): v for k, v in state["turns"].items()},
                state["made"],
                from_json(state.get("made_for", {})),
            )
            for state in found["states"]
        ] or [Names()]
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise CorpusError(f"the names in {path} cannot be read ({e}); delete the file and name them again") from None
