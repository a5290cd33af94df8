"""Corrections of turns: their text, their boundaries, and the times of their words.

They are stored beside the payloads, which never change, and applied when tables are read, searched or exported. If a
payload is replaced, a correction follows its turn: the nearest one with the same text at the same time. If there is
none, it is stale: it stays stored, and `Corrections.stale` lists it.
"""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import TEXT
from voxframe.client.response import is_unicode
from voxframe.corpus.archive import Archive, in_session
from voxframe.corpus.people import stale_names
from voxframe.errors import OptionError
from voxframe.frames.corrected import Corrected, correct_tables, speakers_edit
from voxframe.frames.turn_edits import Edit, Turn, TurnEdits
from voxframe.validators import Integer, checked, checked_mapping, checked_text, shown, speaker_label

_TURN = ("the text of a turn", 1_000_000)  # description and maximum number of characters
_SPEAKER = ("the label of a speaker", 200)
_MOST_WORDS = 1_000_000  # of a turn
_UTC: Any = pd.DatetimeTZDtype("us", "UTC")


class Corrections:
    """Corrections of the turns of a corpus, as `corpus.corrections`.

    Every table shows the corrected text as `text`, and that of the service as `text_original`. Unchanged words of a
    corrected turn keep their times and confidences. Changed words share the gap between them and have no confidence.

    A turn is named by its `utterance_idx`. If the service sent no utterances, turns are counted at changes of speaker.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    def __repr__(self) -> str:
        return f"Corrections({str(self._archive.path)!r})"

    def set(self, transcript_id: str, texts: Mapping[int, str | None], *, author: str | None = None) -> pd.DataFrame:
        """Correct the text of turns of a transcript.

        Args:
            transcript_id: Id of the transcript, or its recording.
            texts: Corrected text of each turn by `utterance_idx`; None restores the text of the service, and removes
                stale corrections of that turn.
            author: Who corrects it, for `history`. None (default): the user of this machine.

        Returns:
            The corrections of this transcript, as `get` returns them.

        Raises:
            CorpusError: The transcript is not in the corpus, or the corpus cannot be written.
            OptionError: There is no such turn, or the texts are not a dict of texts.

        Example:
            >>> import json, tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> words = [{"text": "Helo.", "start": 0, "end": 90, "speaker": "A"}]
            >>> turns = [{"speaker": "A", "text": "Helo.", "start": 0, "end": 90, "words": words}]
            >>> corpus.raw.put("t1", json.dumps({"id": "t1", "words": words, "utterances": turns}).encode())
            >>> _ = corpus.corrections.set("t1", {0: "Hello there."})
            >>> corpus.words()[["text", "text_original", "end_ms"]].values.tolist()
            [['Hello', 'Helo.', 40], ['there.', '', 90]]
        """
        transcript_id = self._archive.recordings.id(transcript_id)
        texts = checked_mapping(texts, "the texts of turns", '{0: "Hello there."}')
        corrected_texts = {position: checked_text(text, *_TURN) for position, text in texts.items()}

        def make(corrected: Corrected, active: list[Edit]) -> tuple[list[Edit], list[Edit]]:
            turns, new, removed = corrected.turns, list[Edit](), list[Edit]()
            for idx, text in corrected_texts.items():
                stale = [active[n] for n in corrected.stale if active[n].turn == idx]
                removed += [edit for edit in stale if text is None or edit.action == "text"]
                if stale and text is None and idx not in turns.turns:
                    continue
                self._check(transcript_id, turns, idx)
                turn = turns.turns[idx]
                if (text is None and turn.original() is not None) or text not in (None, turn.content()):
                    new.append(Edit("text", turns.name(turn), turn.was, {"text": text}))
            return new, removed

        return _texts([(transcript_id, self._change(transcript_id, make, author))])

    def split(
        self, transcript_id: str, word_idx: int, *, speaker: str | None = None, author: str | None = None
    ) -> pd.DataFrame:
        """Split a turn in two. The second part gets the next free `utterance_idx`.

        Args:
            transcript_id: Id of the transcript, or its recording.
            word_idx: Index in `words` of the first word of the second part.
            speaker: Speaker label of the second part. None (default): that of the turn.
            author: As for `set`.

        Returns:
            The turns of this transcript; see `turns`.

        Raises:
            CorpusError: As for `set`.
            OptionError: There is no such word, or it is the first one of its turn.
        """
        transcript_id, label = (
            self._archive.recordings.id(transcript_id),
            checked_text(speaker_label(speaker), *_SPEAKER),
        )

        def make(corrected: Corrected, _: list[Edit]) -> tuple[list[Edit], list[Edit]]:
            turn, place = self._word(transcript_id, corrected, word_idx)
            if place == 0:
                later_words = np.flatnonzero(corrected.word_turns == turn.idx)[1:]
                where = (
                    f"split it before one of {later_words[0]} to {later_words[-1]}"
                    if len(later_words)
                    else "it has no other word"
                )
                raise OptionError(
                    f"{transcript_id!r} was not changed: word {word_idx} is the first one of turn {turn.idx}; {where}"
                )
            value = {"word": place, "new": corrected.turns.free, "speaker": label}
            return [Edit("split", corrected.turns.name(turn), turn.was, value)], []

        return _turns(transcript_id, self._change(transcript_id, make, author))

    def merge(self, transcript_id: str, utterance_idx: int, *, author: str | None = None) -> pd.DataFrame:
        """Append the next turn of the same channel to a turn, which keeps its speaker.

        Args:
            transcript_id: Id of the transcript, or its recording.
            utterance_idx: The turn.
            author: As for `set`.

        Returns:
            The turns of this transcript; see `turns`.

        Raises:
            CorpusError: As for `set`.
            OptionError: There is no such turn, or none after it.
        """
        return self._change_pair("merge", transcript_id, utterance_idx, {}, author)

    def move_boundary(
        self, transcript_id: str, utterance_idx: int, words: int, *, author: str | None = None
    ) -> pd.DataFrame:
        """Move the boundary between a turn and the next one of the same channel.

        Args:
            transcript_id: Id of the transcript, or its recording.
            utterance_idx: The first of the two turns.
            words: Number of words that the turn takes from the next one; if negative, that it gives to the next one.
            author: As for `set`.

        Returns:
            The turns of this transcript; see `turns`.

        Raises:
            CorpusError: As for `set`.
            OptionError: There is no such turn, none after it, `words` is 0, or a turn would have no words left.
        """
        count = checked("words", words, Integer(-_MOST_WORDS, _MOST_WORDS))
        if count == 0:
            raise OptionError("words must be above 0 to take words from the next turn, or below 0 to give some, got 0")
        return self._change_pair("move", transcript_id, utterance_idx, {"words": count}, author)

    def set_time(
        self, transcript_id: str, word_idx: int, start_ms: int, end_ms: int, *, author: str | None = None
    ) -> pd.DataFrame:
        """Change the time of a word.

        Args:
            transcript_id: Id of the transcript, or its recording.
            word_idx: Index of the word in `words`.
            start_ms: Start in milliseconds.
            end_ms: End in milliseconds.
            author: As for `set`.

        Returns:
            The turns of this transcript; see `turns`.

        Raises:
            CorpusError: As for `set`.
            OptionError: There is no such word, or words would no longer be in order.
        """
        transcript_id = self._archive.recordings.id(transcript_id)
        times = {
            "start_ms": checked("start_ms", start_ms, Integer(0)),
            "end_ms": checked("end_ms", end_ms, Integer(0)),
        }

        def make(corrected: Corrected, _: list[Edit]) -> tuple[list[Edit], list[Edit]]:
            turn, place = self._word(transcript_id, corrected, word_idx)
            value = {"word": place, **times}
            return [Edit("time", corrected.turns.name(turn), turn.was, value)], []

        return _turns(transcript_id, self._change(transcript_id, make, author))

    def relabel(
        self,
        transcript_id: str,
        speakers: Sequence[str | None],
        *,
        turns: Sequence[int] | None = None,
        source: str | None = None,
        author: str | None = None,
    ) -> pd.DataFrame:
        """Give every word of a transcript a speaker, as one change, which `undo` reverts.

        The turns are made from the words again, and numbered from 0. Sentences, paragraphs and sentiments get the
        speaker of their words, or null if these have several. Later corrections apply to the new turns. If the
        transcript is replaced by one with other words, the labels are kept but no longer apply; `stale` lists them.

        Args:
            transcript_id: Id of the transcript, or the name of its recording.
            speakers: The label of each row of the table `words`, in its order, of 1 to 200 characters. None: unknown.
            turns: The number of the turn of each row, from 0, for turns that overlap: between the words of one, those
                of another speaker may stand. None (default): a turn is a run of words of one speaker.
            source: What the labels were made from, kept with the change. None (default): not said.
            author: Name of who made the change. None: the user of this machine.

        Returns:
            The turns; see `turns`.

        Raises:
            OptionError: The number of labels or of turns is not the number of words, a label is no text, or a turn has
                words of two speakers.
            CorpusError: The transcript is not in the corpus.

        Example:
            >>> corpus.corrections.relabel("a1", ["A", "A", "B"])  # doctest: +SKIP
        """
        transcript_id = self._archive.recordings.id(transcript_id)
        labels = [checked_text(speaker_label(label), *_SPEAKER) for label in speakers]
        if turns is not None:
            turns = [checked("turns", turn, Integer(0)) for turn in turns]
            if len({*zip(turns, labels, strict=False)}) > len({*turns}):
                raise OptionError("a turn has words of two speakers; give each turn words of one")

        def make(corrected: Corrected, _: list[Edit]) -> tuple[list[Edit], list[Edit]]:
            words = corrected.tables["words"]
            if len(labels) != len(words):
                raise OptionError(f"{transcript_id!r} has {len(words)} words, got {len(labels)} labels of speakers")
            if turns is not None and len(turns) != len(words):
                raise OptionError(f"{transcript_id!r} has {len(words)} words, got {len(turns)} numbers of turns")
            same = words["speaker"].to_pylist() == labels and (
                turns is None or corrected.word_turns.tolist() == [*turns]
            )
            return ([] if same else [speakers_edit(words, labels, turns, source)]), []

        return _turns(transcript_id, self._change(transcript_id, make, author))

    def undo(self, transcript_id: str) -> pd.DataFrame:
        """Undo the last change of a transcript; call it again for the change before.

        Returns:
            The corrections of this transcript, as `get` returns them.

        Raises:
            CorpusError: The transcript is not in the corpus, or the corpus cannot be written.
            OptionError: There is no change to undo.
        """
        return self._mark(transcript_id, undone=True)

    def redo(self, transcript_id: str) -> pd.DataFrame:
        """Apply the change again that `undo` reverted last; after a new change there is none.

        Returns:
            The corrections of this transcript, as `get` returns them.

        Raises:
            CorpusError: The transcript is not in the corpus, or the corpus cannot be written.
            OptionError: There is no change to redo.
        """
        return self._mark(transcript_id, undone=False)

    def _mark(self, transcript_id: str, *, undone: bool) -> pd.DataFrame:
        """Mark the last active change as undone, or the first change after it as active."""
        transcript_id = self._archive.recordings.id(transcript_id)
        if not self._archive.has(transcript_id):
            raise self._archive.missing(transcript_id)
        with self._archive.kept(transcript_id):
            edits = self._archive.edits.all(transcript_id).get(transcript_id, [])
            if undone:
                change = max((edit.change for edit in edits if edit.undone is None), default=0)
            else:
                change = next(iter(redoable((edit.change, edit.made, edit.undone) for edit in edits)), 0)
            if not change and undone:
                raise OptionError(f"{transcript_id!r} has no corrections, so there is no change to undo")
            if not change:
                raise OptionError(
                    f"{transcript_id!r} has no undone change after the last one, so there is none to redo"
                )
            now = _now() if undone else None
            marked = [
                replace(e, undone=now) if e.change == change and (e.undone is None) == undone else e for e in edits
            ]
            self._archive.edits.keep(transcript_id, marked)
        self._archive.refresh(transcript_id)
        return self.get(transcript_id)

    def get(self, ids: str | Iterable[str] | None = None) -> pd.DataFrame:
        """Return the corrected texts of turns, without stale corrections.

        Args:
            ids: Id or ids of transcripts. None (default): all with corrections.

        Returns:
            One row per turn with another text than the service sent: `transcript_id` str, `utterance_idx` int64,
            `text` str.

        Raises:
            CorpusError: A file of corrections cannot be read.
        """
        self._archive.report_missing()
        edited = self._archive.edits.hashes()
        selected = sorted(edited) if ids is None else self._archive.known(ids)
        return _texts([(i, self._of(i)) for i in selected if i in edited and self._archive.has(i)])

    def turns(self, transcript_id: str) -> pd.DataFrame:
        """Return the turns of a transcript as corrected, also if the service sent no utterances.

        Args:
            transcript_id: Id of the transcript, or its recording.

        Returns:
            One row per turn in their order: `transcript_id` str, `utterance_idx` int64, `speaker`, `text` and
            `text_original` str (null if unchanged), `first_word_idx` Int64 and `word_count` int64.

        Raises:
            CorpusError: The transcript is not in the corpus.
        """
        transcript_id = self._archive.recordings.id(transcript_id)
        return _turns(transcript_id, self._of(transcript_id))

    def word_turns(self, transcript_id: str) -> npt.NDArray[np.int64]:
        """Return the turn of each word as corrected: `utterance_idx` of `turns`, -1 if no turn has the word.

        Args:
            transcript_id: Id of the transcript, or its recording.

        Returns:
            Shape (words,), in the order of the table `words`.

        Raises:
            CorpusError: The transcript is not in the corpus.
        """
        transcript_id = self._archive.recordings.id(transcript_id)
        return self._of(transcript_id).word_turns

    def _of(self, transcript_id: str) -> Corrected:
        """Apply the edits of a transcript to its turns."""
        return correct_tables(self._archive.sent(transcript_id), self._archive.edits.active(transcript_id))

    def history(self, ids: str | Iterable[str] | None = None) -> pd.DataFrame:
        """Return every edit that was made, oldest first, also those that were undone.

        Args:
            ids: Id or ids of transcripts. None (default): all.

        Returns:
            One row per edit: `transcript_id` str; `change` int64, equal for edits made by one call; `action` str
            (text, split, merge, move, time); `utterance_idx` int64; `text` str, the corrected text; `was` str, the text
            of the service; `value` str, the arguments as JSON; `author` str; `made` and `undone` datetime64[us, UTC].

        Raises:
            CorpusError: A file of corrections cannot be read.
        """
        self._archive.report_missing()
        edits = self._archive.edits.all()
        rows = [
            {
                "transcript_id": transcript_id,
                "change": edit.change,
                "action": edit.action,
                "utterance_idx": edit.turn,
                "text": edit.value.get("text"),
                "was": edit.was.text if edit.was else None,
                "value": json.dumps(dict(edit.value), ensure_ascii=False),
                "author": edit.author,
                "made": edit.made or None,
                "undone": edit.undone,
            }
            for transcript_id in (sorted(edits) if ids is None else self._archive.known(ids))
            for edit in edits.get(transcript_id, ())
        ]
        dtypes: dict[str, Any] = {"transcript_id": TEXT, "change": "int64", "action": TEXT, "utterance_idx": "int64"}
        dtypes |= dict.fromkeys(("text", "was", "value", "author"), TEXT)
        frame = pd.DataFrame(rows, columns=[*dtypes, "made", "undone"]).astype(dtypes)
        for name in ("made", "undone"):
            frame[name] = pd.to_datetime(frame[name], utc=True).astype(_UTC)
        return frame

    def stale(self) -> pd.DataFrame:
        """Return the corrections and names of single turns that no longer apply, because the transcript was replaced.

        To resolve one, call `corpus.corrections.set` or `corpus.speakers.set` with the right turn, or with None to
        remove it.

        Returns:
            One row per turn: `transcript_id` str; `utterance_idx` int64, its old index; `text` str and `speaker_name`
            str, at most one of which is not null; `start_ms` Int64 and `was` str, the old start in milliseconds and the
            old text; `action` str, as in `history`, or "name".

        Raises:
            CorpusError: A file of corrections or names cannot be read.
        """
        self._archive.report_missing()
        rows: list[tuple[object, ...]] = []
        edited, named = self._archive.edits.hashes(), self._archive.names.all()
        for transcript_id in self._archive.ids() if edited or named else []:
            edits = self._archive.edits.active(transcript_id) if transcript_id in edited else []
            stale = self._of(transcript_id).stale if edits else {}
            last = {(edits[n].turn, edits[n].action): edits[n] for n in stale}  # of each turn, the last one counts
            for (turn, action), edit in sorted(last.items()):
                start, was = (edit.was.start, edit.was.text) if edit.was else (None, None)
                rows.append((transcript_id, turn, edit.value.get("text"), None, start, was, action))
            for position, name, fingerprint in stale_names(self._archive, transcript_id):
                rows.append((transcript_id, position, None, name, *fingerprint, "name"))
        dtypes: dict[str, Any] = {"transcript_id": TEXT, "utterance_idx": "int64", "text": TEXT}
        dtypes |= {"speaker_name": TEXT, "start_ms": pd.Int64Dtype(), "was": TEXT, "action": TEXT}
        return pd.DataFrame(rows, columns=list(dtypes)).astype(dtypes)

    def _change_pair(
        self, action: str, transcript_id: str, idx: int, value: Mapping[str, int], author: str | None
    ) -> pd.DataFrame:
        """Make an edit of a turn and the next one."""
        transcript_id = self._archive.recordings.id(transcript_id)

        def make(corrected: Corrected, _: list[Edit]) -> tuple[list[Edit], list[Edit]]:
            turns = corrected.turns
            self._check(transcript_id, turns, idx)
            first, second = turns.turns[idx], turns.turns[turns.next_of(idx)]
            return [Edit(action, turns.name(first), first.was, {**value, "other": turns.name(second)}, second.was)], []

        return _turns(transcript_id, self._change(transcript_id, make, author))

    @in_session
    def _change(
        self,
        transcript_id: str,
        make: Callable[[Corrected, list[Edit]], tuple[list[Edit], list[Edit]]],
        author: str | None,
    ) -> Corrected:
        """Store edits and return the corrected transcript."""
        if author is not None and (not isinstance(author, str) or not author.strip() or not is_unicode(author)):
            raise OptionError(f"author is a name, or None for the user of this machine, got {shown(author)}")
        self._archive.status(transcript_id)  # raises an error if it is not in the corpus
        tables, user = self._archive.sent(transcript_id), author or _user()
        with self._archive.kept(transcript_id):
            edits = self._archive.edits.all(transcript_id).get(transcript_id, [])
            active = [edit for edit in edits if edit.undone is None]
            corrected = correct_tables(tables, active)
            new, removed = make(corrected, active)
            if not new and not removed:
                return corrected
            now, change = _now(), max((edit.change for edit in edits), default=0) + 1
            new = [replace(edit, made=now, author=user, change=change) for edit in new]
            remaining = [edit for edit in active if edit not in removed]
            corrected = correct_tables(tables, [*remaining, *new])
            if refused := [reason for n, reason in corrected.stale.items() if n >= len(remaining)]:
                raise OptionError(f"{transcript_id!r} was not changed: {refused[0]}")
            edits = [*(replace(e, undone=now) if e in removed else e for e in edits), *new]
            self._archive.edits.keep(transcript_id, edits)
        self._archive.refresh(transcript_id)
        return corrected

    def _check(self, transcript_id: str, turns: TurnEdits, idx: int) -> None:
        if not isinstance(idx, Hashable) or idx not in turns.turns:
            there = f"0 to {max(turns.turns)}" if turns.turns else "no turns"
            raise OptionError(f"{transcript_id!r} has no turn {idx!r}; it has {there}")

    def _word(self, transcript_id: str, corrected: Corrected, word_idx: int) -> tuple[Turn, int]:
        """Return the turn of a word, and the position of the word in it."""
        owner = corrected.word_turns
        is_whole = hasattr(word_idx, "__index__") and not isinstance(word_idx, bool)
        if not is_whole or word_idx not in range(len(owner)) or owner[word_idx] < 0:
            there = f"0 to {len(owner) - 1}" if len(owner) else "no words"
            raise OptionError(f"{transcript_id!r} has no turn with word {word_idx!r}; it has {there}")
        turn = corrected.turns.turns[int(owner[word_idx])]
        before = int(np.count_nonzero(owner[:word_idx] == turn.idx))
        rows = [n for n, word in enumerate(turn.words) if word.row is not None]
        order = sorted(rows, key=lambda n: turn.words[n].place)  # merged turns can overlap
        return turn, order[before] if order else before


def redoable(edits: Iterable[tuple[int, Any, Any]]) -> list[int]:
    """Return the numbers of the undone changes that `redo` applies, in its order.

    A change that was undone before a later one was made is none of them: the later one replaced it.

    Args:
        edits: Change, time, and time of the undoing (None if it is active) of each edit.
    """
    rows = list(edits)
    last = max((change for change, _, undone in rows if undone is None), default=0)
    return sorted(
        {
            change
            for change, _, undone in rows
            if change > last and not any(later > change and made >= undone for later, made, _ in rows)
        }
    )


def _texts(transcripts: Iterable[tuple[str, Corrected]]) -> pd.DataFrame:
    """Return the corrected texts of turns; see `Corrections.get`."""
    rows = [
        (transcript_id, turn.idx, turn.content())
        for transcript_id, corrected in transcripts
        for turn in sorted(corrected.turns.turns.values(), key=lambda turn: turn.idx)
        if turn.original() is not None
    ]
    dtypes = {"transcript_id": TEXT, "utterance_idx": "int64", "text": TEXT}
    return pd.DataFrame(rows, columns=list(dtypes)).astype(dtypes)


def _turns(transcript_id: str, corrected: Corrected) -> pd.DataFrame:
    """Return the turns of a transcript; see `Corrections.turns`."""
    rows = []
    for turn in corrected.turns.turns.values():
        words = np.flatnonzero(corrected.word_turns == turn.idx)
        first = int(words[0]) if len(words) else None
        rows.append((transcript_id, turn.idx, turn.speaker, turn.content(), turn.original(), first, len(words)))
    dtypes: dict[str, Any] = {"transcript_id": TEXT, "utterance_idx": "int64"}
    dtypes |= dict.fromkeys(("speaker", "text", "text_original"), TEXT)
    dtypes |= {"first_word_idx": pd.Int64Dtype(), "word_count": "int64"}
    return pd.DataFrame(rows, columns=list(dtypes)).astype(dtypes)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _user() -> str | None:
    """Return the name of the user of this machine, if it is known."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None
