"""Edits that a person made in an exported annotation file: which turns have another text, and which words other times.

The file is compared with a new export of the same words, annotation by annotation. Annotations of one speaker that
overlap by more than half of the shorter one belong together, so that splitting or merging annotations changes no text.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from xml.etree import ElementTree as ET

import pandas as pd

from voxframe._arrow import TEXT, takes_frames
from voxframe._text import join_words
from voxframe.errors import OptionError, PayloadError
from voxframe.formats.corpora import regions
from voxframe.formats.tiers import eaf_tiers, is_word_tier, speaker_of, textgrid_tiers, tier_names
from voxframe.formats.writing import Losses, SpeechSegment, grouped, joined, whole
from voxframe.validators import shown

_COLUMNS = {"transcript_id": TEXT, "action": TEXT, "utterance_idx": "Int64", "word_idx": "Int64", "speaker": TEXT}
_COLUMNS |= {"text": TEXT, "was": TEXT, "start_ms": "Int64", "end_ms": "Int64"}


class _TimedLabel(NamedTuple):
    """An annotation of the edited file, or of the new export: then `rows` are its words."""

    start: int
    end: int
    text: str
    speaker: str
    rows: tuple[int, ...] = ()


@takes_frames
def read_edits(words: pd.DataFrame, file: str | os.PathLike[str]) -> pd.DataFrame:
    """Return what was changed in an exported EAF or TextGrid file of one transcript, or in its Label Studio task.

    Edits of turns count, and so do edits in the tier of words; if both changed the text of a turn, the turn counts.

    Args:
        words: The words that were exported, with `word_idx` and `utterance_idx`.
        file: The edited file. From Label Studio, an export in the format "JSON"; its tasks are found by transcript id.

    Returns:
        One row per change, in the order of time: `transcript_id` str; `action` str; `utterance_idx`, `word_idx` Int64;
        `speaker`, `text`, `was` str; `start_ms`, `end_ms` Int64 (ms). The actions are:

        - text: the turn `utterance_idx` has the new `text`; `was` is its text before.
        - time: the word `word_idx` has other times.
        - speaker: the turn `utterance_idx` was moved to the tier of `speaker`; `was` is the tier before. If only a part
          of the turn was moved, `word_idx` is its first word.
        - deleted: the annotations of the turn `utterance_idx` were removed.
        - added: a new annotation, which belongs to no turn.

    Raises:
        OptionError: A column is missing, there is more than one transcript, or `file` is not a path.
        PayloadError: The file has another format, cannot be read, or has no annotation of the transcript.

    Example:
        >>> import tempfile, voxframe
        >>> said = {"text": ["Helo.", "Yes."], "speaker": ["A", "B"], "start_ms": [0, 800], "end_ms": [700, 900]}
        >>> words = pd.DataFrame({"transcript_id": "t", "word_idx": [0, 1], "utterance_idx": [0, 1], **said})
        >>> path = Path(tempfile.mkdtemp(), "t.eaf")
        >>> _ = path.write_text(voxframe.export.eaf(words).replace("Helo.", "Hello."))
        >>> read_edits(words, path)[["action", "utterance_idx", "text", "was"]].values.tolist()
        [['text', 0, 'Hello.', 'Helo.']]
    """
    if not isinstance(file, str | os.PathLike):
        raise OptionError(f"read_edits needs the path of an edited file, got {shown(file)}")
    segments = whole(words, "read_edits", Losses())
    if missing := [name for name in ("word_idx", "utterance_idx") if name not in words]:
        raise OptionError(f"read_edits needs the words that were exported; the DataFrame lacks {', '.join(missing)}")
    edited = _edited(Path(file), str(words["transcript_id"].iloc[0]) if len(words) else None)
    names = {key: speaker_of(name) for key, name in tier_names(segments).items()}
    turns, single = [], []
    for run in grouped(segments):
        name, whole_run = names[run[0].voice, run[0].channel], joined(run)
        turns.append(_TimedLabel(whole_run.start, whole_run.end, whole_run.text, name, tuple(s.row for s in run)))
        single += [_TimedLabel(s.start, s.end, s.text, name, (s.row,)) for s in run if s.timed]
    changes = _Changes(_turn_of(words), {s.row: s for s in segments}, {s.row: s.text for s in segments})
    for old, new in _groups(single, [label for is_word, label in edited if is_word]):
        if new:  # a word that only the tier of words lacks was not deleted: its turn still has it
            changes.compare(old, new)
    for old, new in _groups(turns, [label for is_word, label in edited if not is_word]):
        changes.compare(old, new)
    return changes.table(words)


def _edited(path: Path, transcript_id: str | None) -> list[tuple[bool, _TimedLabel]]:
    """Return the annotations of a file, each with True if it is a word."""
    try:
        data = path.read_bytes()
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
        if text.lstrip().startswith("["):
            labelled = regions(text, transcript_id)
            return [
                (False, _TimedLabel(start, max(start, end), words, who)) for who, words, start, end in labelled if words
            ]
        tiers = eaf_tiers(text) if text.lstrip().startswith("<") else textgrid_tiers(text)
    except PayloadError:
        raise
    except OSError as error:
        raise PayloadError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    except (ET.ParseError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise PayloadError(
            f"{str(path)!r} is not a complete EAF, TextGrid or Label Studio JSON file: {error}"
        ) from None
    return [
        (tier.words_of is not None, _TimedLabel(start, max(start, end), " ".join(words.split()), tier.speaker))
        for tier in tiers
        if tier.words_of is None or is_word_tier(tier.name)  # else a layer below a tier, such as a translation
        for words, start, end in tier.rows
        if start is not None and end is not None
    ]


#: Annotations of the new export, and those of the edited file that belong to them.
_Group: TypeAlias = tuple[list[_TimedLabel], list[_TimedLabel]]


def _groups(old: Sequence[_TimedLabel], new: Sequence[_TimedLabel]) -> list[_Group]:
    """Return annotations that belong together, by time. Those of another speaker at the same times do too."""
    groups: dict[int, _Group] = {}
    for speaker in dict.fromkeys(label.speaker for label in (*old, *new)):
        active: list[_Group] = []
        mine = sorted([(label, False) for label in old if label.speaker == speaker], key=lambda pair: pair[0].start)
        mine += [(label, True) for label in new if label.speaker == speaker]
        for label, is_new in sorted(mine, key=lambda pair: (pair[0].start, pair[0].end)):
            active = [group for group in active if max(a.end for side in group for a in side) >= label.start]
            linked = [group for group in active if any(_overlap(label, a) for a in group[not is_new])]
            merged: _Group = ([], [])
            for group in linked:
                merged[0].extend(group[0])
                merged[1].extend(group[1])
                del groups[id(group)]
            active = [group for group in active if id(group) in groups]
            merged[is_new].append(label)
            active.append(merged)
            groups[id(merged)] = merged
    return _moved([*groups.values()])


def _overlap(label: _TimedLabel, other: _TimedLabel) -> bool:
    if (label.start, label.end) == (other.start, other.end):
        return True
    shared = min(label.end, other.end) - max(label.start, other.start)
    return 2 * shared > min(label.end - label.start, other.end - other.start)


def _moved(groups: list[_Group]) -> list[_Group]:
    """Join annotations that are gone with new ones of another speaker at the same times."""
    gone = {(old[0].start, old[0].end): old for old, new in groups if len(old) == 1 and not new}
    pairs = []
    for old, new in groups:
        if not old and len(new) == 1 and (source := gone.pop((new[0].start, new[0].end), None)):
            pairs.append(([*source], new))
        else:
            pairs.append((old, new))
    moved = [old[0] for old, new in pairs if old and new and old[0].speaker != new[0].speaker]
    pairs = [(old, new) for old, new in pairs if new or old[0] not in moved]
    return sorted(pairs, key=lambda group: min(label.start for side in group for label in side))


def _turn_of(words: pd.DataFrame) -> list[int]:
    """Return the index of the turn of each word. Without utterances, turns are counted at changes of speaker."""
    numbers = words["utterance_idx"]
    if numbers.notna().all():
        return [int(idx) for idx in numbers]
    speakers = words.get("speaker", pd.Series(index=words.index, dtype=object)).astype(object)
    changes = speakers.ne(speakers.shift()) & ~(speakers.isna() & speakers.shift().isna())
    changes.iloc[:1] = False
    return [int(idx) for idx in changes.cumsum()]


class _Changes:
    """Collects changes of words, and returns those of turns."""

    def __init__(self, turn_of: Sequence[int], segments: dict[int, SpeechSegment], texts: dict[int, str]) -> None:
        self._turn_of, self._segments, self._texts = turn_of, segments, texts
        self._times: dict[int, list[int]] = {}
        self._speakers: dict[int, tuple[str, str]] = {}  # new and old one, by row
        self._added: list[_TimedLabel] = []

    def compare(self, old: list[_TimedLabel], new: list[_TimedLabel]) -> None:
        """Note what changed from some annotations to others."""
        if not old:
            self._added += new
            return
        old, new = sorted(old), sorted(new)
        rows = [row for label in old for row in label.rows]
        if [label.text for label in old] != [label.text for label in new]:
            self._replace(rows, [token for label in new for token in label.text.split()])
        if new:
            self._move(rows, min(a.start for a in old), min(a.start for a in new), 0)
            self._move(rows, max(a.end for a in old), max(a.end for a in new), 1)
            if new[0].speaker != old[0].speaker:
                self._speakers |= dict.fromkeys(rows, (new[0].speaker, old[0].speaker))

    def _replace(self, rows: Sequence[int], tokens: Sequence[str]) -> None:
        """Give new tokens to the rows of the words that they replace, or follow."""
        before = [(row, token) for row in rows for token in self._segments[row].text.split()]
        if [token for _, token in before] == [*tokens]:
            return
        texts: dict[int, list[str]] = {row: [] for row in rows}
        matcher = SequenceMatcher(None, [token for _, token in before], tokens, autojunk=False)
        for tag, first, last, start, stop in matcher.get_opcodes():
            for n, token in enumerate(tokens[start:stop]):
                place = first + n if tag == "equal" else min(first + n, max(last - 1, first - 1 if first else 0))
                texts[before[place][0]].append(token)
        self._texts |= {row: join_words(words) for row, words in texts.items()}

    def _move(self, rows: Sequence[int], before: int, now: int, side: int) -> None:
        """Change the start of the first word, or the end of the last one."""
        timed = [self._segments[row] for row in rows if self._segments[row].timed]
        if before == now or not timed:
            return
        word = max(timed, key=lambda s: s.end) if side else min(timed, key=lambda s: s.start)
        times = self._times.setdefault(word.row, [word.start, word.end])
        times[side] = now
        times[1 - side] = max(times[1 - side], now) if side == 0 else min(times[1 - side], now)

    def table(self, words: pd.DataFrame) -> pd.DataFrame:
        """Return the changes."""
        transcript_id, word_idx = words["transcript_id"].iloc[0] if len(words) else None, words["word_idx"].to_list()
        edits: list[tuple[int, dict[str, Any]]] = []
        rows_of: dict[int, list[int]] = {}
        for row in sorted(self._segments):
            rows_of.setdefault(self._turn_of[row], []).append(row)
        for turn, rows in rows_of.items():
            start = min(self._segments[row].start for row in rows)
            was = join_words(self._segments[row].text for row in rows)
            text = join_words(self._texts[row] for row in rows)
            if text != was:
                change: dict[str, Any] = {"action": "text", "text": text} if text else {"action": "deleted"}
                edits.append((start, {"utterance_idx": turn, "was": was, **change}))
            if moved := [row for row in rows if row in self._speakers]:
                speaker, before = self._speakers[moved[0]]
                part = None if len(moved) == len(rows) else word_idx[moved[0]]
                change = {"action": "speaker", "speaker": speaker, "was": before, "word_idx": part}
                edits.append((start, {"utterance_idx": turn, **change}))
        for row, (start, end) in self._times.items():
            place = {"utterance_idx": self._turn_of[row], "word_idx": word_idx[row], "start_ms": start, "end_ms": end}
            edits.append((start, {"action": "time", "text": self._texts[row] or None, **place}))
        for a in self._added:
            new = {"speaker": a.speaker, "text": a.text, "start_ms": a.start, "end_ms": a.end}
            edits.append((a.start, {"action": "added", **new}))
        changes = [{"transcript_id": transcript_id, **change} for _, change in sorted(edits, key=lambda pair: pair[0])]
        return pd.DataFrame(changes, columns=list(_COLUMNS)).astype(_COLUMNS)
