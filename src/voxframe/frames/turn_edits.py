"""Edits of the turns of one transcript: corrected text, split, merge, moved boundary, changed time of a word.

Edits are applied in order, each to the turns that the edits before it left. `utterance_idx` stays the index that the
service gave: a turn that is split off gets the next free index, and a merged turn keeps that of its first part. The
unchanged words of a corrected text keep their times, and changed words share the gap between them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any

from voxframe._text import UNSPACED, join_words, quantity
from voxframe.errors import OptionError

_UNSPACED = re.compile(UNSPACED)


@dataclass(frozen=True)
class TurnWord:
    """A word of a turn that can be corrected.

    Attributes:
        start: Start in milliseconds, or None.
        end: End in milliseconds, or None.
        place: Its place among all words of the transcript; between two numbers if it was added.
        row: Its row in the table `words`; for an added word that of a neighbour. None if it has none.
        original: The words of the service that it replaces, empty if it was added. None if it is unchanged.
        confidence: Confidence of the service; None if the word was changed.
        extra: Column `extra` of an unchanged word.
    """

    text: str | None
    start: int | None
    end: int | None
    place: float = 0.0
    row: int | None = None
    original: str | None = None
    confidence: float | None = None
    extra: str | None = None


def realign(words: Sequence[TurnWord], text: str, start: int | None = None, end: int | None = None) -> list[TurnWord]:
    """Return the words of a corrected text.

    A text in a script without spaces, such as Chinese, is cut where the words were.

    Words are compared without case, accents and punctuation. A word with the same text keeps its time and confidence.
    Words that replace as many words take their times. Otherwise they share the time of the replaced words, or the gap
    between their neighbours, in proportion to their lengths.

    Args:
        words: The words of the turn. A turn without words gets none.

    Example:
        >>> words = [TurnWord("We", 0, 100), TurnWord("meat", 100, 300), TurnWord("here.", 400, 600)]
        >>> [(word.text, word.start, word.end, word.original) for word in realign(words, "We meet right here.")]
        [('We', 0, 100, None), ('meet', 100, 188, 'meat'), ('right', 188, 300, ''), ('here.', 400, 600, None)]
    """
    from rapidfuzz.distance import Levenshtein

    from voxframe.analysis.search_terms import fold  # imports pandas, which processes that store payloads need not

    if not words:
        return []
    tokens = _tokens(words, text)
    keys = [[fold(piece or "") or piece for piece in side] for side in ([word.text for word in words], tokens)]
    same = [(op.src_start, op.src_end, op.dest_start) for op in Levenshtein.opcodes(*keys) if op.tag == "equal"]
    aligned: list[TurnWord] = []
    before = at = 0  # the next word and the next token that are not placed yet
    for first, last, token in [*same, (len(words), len(words), len(tokens))]:
        previous = words[before - 1] if before else None
        right = words[first] if first < len(words) else None
        times = previous.end if previous else start, right.start if right else end
        aligned += _replaced(words[before:first], tokens[at:token], previous, right, times)
        at = token + last - first
        aligned += map(_changed, words[first:last], tokens[token:at])
        before = last
    return aligned


def original_text(words: Sequence[TurnWord]) -> str:
    """Return the text of words before they were corrected."""
    return join_words(word.text if word.original is None else word.original for word in words)


def _tokens(words: Sequence[TurnWord], text: str) -> list[str]:
    """Return the words of a corrected text."""
    from rapidfuzz.distance import Levenshtein

    tokens = text.split()
    old, new = ("".join("".join(token or "" for token in side).split()) for side in ((w.text for w in words), tokens))
    if not _UNSPACED.search(new):
        return tokens
    edges = {0, *accumulate(len("".join((word.text or "").split())) for word in words)}
    cuts = set(accumulate(map(len, tokens)))
    for op in Levenshtein.opcodes(old, new):
        if op.tag == "equal":
            same = {op.dest_start + edge - op.src_start for edge in edges if op.src_start <= edge <= op.src_end}
            cuts |= {cut for cut in same if _UNSPACED.search(new[max(0, cut - 1) : cut + 1])}
    return [new[begin:end] for begin, end in pairwise(sorted(cuts | {0, len(new)}))]


def _changed(word: TurnWord, text: str) -> TurnWord:
    if word.text == text:
        return word
    original = original_text([word])
    return replace(word, text=text, original=None if text == original else original, confidence=None, extra=None)


def _replaced(
    words: Sequence[TurnWord],
    tokens: Sequence[str],
    left: TurnWord | None,
    right: TurnWord | None,
    gap: tuple[int | None, int | None],
) -> list[TurnWord]:
    """Return words in the place of others."""
    if len(words) == len(tokens):
        return list(map(_changed, words, tokens))
    begin, end = (words[0].start, words[-1].end) if words else gap
    begin, end = end if begin is None else begin, begin if end is None else end
    total, spoken = max(1, sum(map(len, tokens))), 0
    replaced: list[TurnWord] = []
    for n, token in enumerate(tokens):
        edges: list[int | None] = [None, None]
        if begin is not None and end is not None:
            edges = [begin + max(0, end - begin) * chars // total for chars in (spoken, spoken + len(token))]
        spoken += len(token)
        replaces = words[n:] if n == len(tokens) - 1 else words[n : n + 1]
        near = replaces[0] if replaces else replaced[-1] if replaced else left or right
        place = near.place if near else 0.0
        if not replaces:
            if near is right and right is not None:  # before the first word of the turn
                place = right.place - 0.5 / (n + 2)
            else:
                limit = min(place + 0.5, right.place) if right else place + 0.5
                place += (limit - place) / (len(tokens) - n + 1)
        row = near.row if near else None
        replaced.append(TurnWord(token, edges[0], edges[1], place, row, original_text(replaces)))
    return replaced


#: Arguments that each action needs.
ARGUMENTS = {
    "text": frozenset({"text"}),
    "split": frozenset({"word", "new"}),
    "merge": frozenset({"other"}),
    "move": frozenset({"other", "words"}),
    "time": frozenset({"word", "start_ms", "end_ms"}),
    "speakers": frozenset({"runs", "words"}),
}


@dataclass(frozen=True)
class Was:
    """A turn as the service sent it, by which it is found again in another payload."""

    start: int | None
    end: int | None
    text: str | None

    def has_text_of(self, other: Was) -> bool:
        """Return True if two turns have the same text.

        White space is ignored, because earlier versions of voxframe joined words with other spaces.
        """
        text, other_text = ("".join((turn.text or "").split()) for turn in (self, other))
        return text == other_text and (self.text is None) == (other.text is None)

    def overlaps(self, other: Was) -> bool:
        """Return True if two turns overlap in time."""
        if self.start is None or other.start is None:
            return self.start == other.start
        ends = [turn.start if turn.end is None else turn.end for turn in (self, other)]
        return other.start <= max(self.start, ends[0] or 0) and self.start <= max(other.start, ends[1] or 0)


@dataclass(frozen=True)
class Edit:
    """One edit of a transcript.

    Attributes:
        action: "text", "split", "merge", "move" or "time"; "speakers" for new speakers of all words, which
            `corrected.correct_tables` applies.
        turn: `utterance_idx` of the turn when it was first edited; see `TurnEdits.name`. -1 for "speakers".
        was: The turn as the service sent it. None if an edit has split it off, or if it is not known.
        value: Arguments of the action; see `TurnEdits.apply`.
        other_was: The second turn of "merge" and "move", as the service sent it.
        made: Time of the edit, UTC, as ISO 8601.
        author: Who made it, or None.
        change: Number of the change; edits made by one call have the same.
        undone: Time at which it was undone. None: it applies.
    """

    action: str
    turn: int
    was: Was | None
    value: Mapping[str, Any]
    other_was: Was | None = None
    made: str = ""
    author: str | None = None
    change: int = 0
    undone: str | None = None


@dataclass
class Turn:
    """A turn that edits can change.

    Attributes:
        idx: `utterance_idx`.
        was: The turn as the service sent it; None if it was split off.
        source: Row in the table `utterances` that it is or was split off from; None if that table has no rows.
        base: Its words without the last correction of the text.
        text: Its corrected text; None if it was not corrected, or was reshaped since.
        edited: True if an edit changed it.
        reshaped: True if it was split or merged, or a boundary moved.
        retimed: True if the time of a word was changed.
    """

    idx: int
    was: Was | None
    speaker: str | None
    channel: str | None
    source: int | None
    before: str | None = None
    base: list[TurnWord] = field(default_factory=list)
    words: list[TurnWord] = field(default_factory=list)
    text: str | None = None
    edited: bool = False
    reshaped: bool = False
    retimed: bool = False

    def content(self) -> str | None:
        """Return its text."""
        if self.text is not None or self.reshaped:
            return self.text or join_words(word.text for word in self.words)
        return self.was.text if self.was else None

    def original(self) -> str | None:
        """Return its text before it was corrected; None if the text is unchanged."""
        before = self.was.text if self.was and self.before is None else self.before
        before = original_text(self.words) if self.reshaped else before
        return before if before != self.content() else None

    def reshape(self, words: Sequence[TurnWord]) -> None:
        """Give it other words."""
        self.words = list(words)
        self.base, self.text, self.reshaped, self.edited = self.words, None, True, True

    def correct(self, text: str | None) -> None:
        """Set its text, or restore that of the service."""
        if text is not None:
            start, end = (self.was.start, self.was.end) if self.was and not self.reshaped else (None, None)
            self.words, self.text = realign(self.base, text, start, end), text
        elif self.reshaped:
            words = [word for word in self.words if word.original != ""]
            self.reshape(
                [word if word.original is None else replace(word, text=word.original, original=None) for word in words]
            )
        else:
            self.words, self.text = self.base, None
        self.edited = True

    def set_time(self, place: int, start: int, end: int) -> None:
        """Change the time of a word."""
        if not 0 <= place < len(self.words):
            raise OptionError(
                f"turn {self.idx} has {quantity(len(self.words), 'word')}: word must be 0 to {len(self.words) - 1}, "
                f"got {place!r}"
            )
        low = self.words[place - 1].start if place else None
        high = self.words[place + 1].start if place + 1 < len(self.words) else None
        if not 0 <= start <= end or (low is not None and start < low) or (high is not None and start > high):
            raise OptionError(
                f"the word {self.words[place].text!r} of turn {self.idx} cannot be at {start} to {end} ms: "
                f"it must not start before 0 ms, end before it starts, nor start before the previous word ({low} ms) "
                f"or after the next one ({high} ms)"
            )
        word = self.words[place]
        self.words = [*self.words[:place], replace(word, start=start, end=end), *self.words[place + 1 :]]
        # A word that shares the time of other words says nothing about theirs.
        was = (word.place, word.start, word.end)
        self.base = [
            replace(item, start=start, end=end) if (item.place, item.start, item.end) == was else item
            for item in self.base
        ]
        self.edited = self.retimed = True

    def check_part(self, count: int) -> None:
        """Raise an OptionError unless a number of words can be divided off the turn."""
        if not 0 < count < len(self.words):
            allowed = f"1 to {len(self.words) - 1} of them" if len(self.words) > 1 else "none of them"
            raise OptionError(
                f"turn {self.idx} has {quantity(len(self.words), 'word')}, so {allowed} can be divided off, got {count}"
            )


class TurnEdits:
    """The turns of a transcript while edits are applied to them.

    Args:
        turns: The turns as the service sent them, without words, in order.

    Attributes:
        turns: The turns by `utterance_idx`, in order.
        loaded: Indexes of the turns with words; edits change only these.
        free: Index of the next turn that is split off.
    """

    def __init__(self, turns: Iterable[Turn], words_of: Callable[[Turn], list[TurnWord]]) -> None:
        self.turns = {turn.idx: turn for turn in turns}
        self.free = max(self.turns, default=-1) + 1
        self._words_of = words_of
        self.loaded: set[int] = set()
        # Index in the edits, with the turn as the service sent it -> index in this transcript
        self._places: dict[tuple[int, Was | None], int | None] = {}

    def apply(self, edit: Edit) -> None:
        """Apply an edit.

        Values by action:

        - "text": `text`; None restores that of the service.
        - "split": `word`, the position of the first word of the second part; `new`, the `utterance_idx` of that part;
          `speaker`, its label, or None for the same.
        - "merge": `other`, the turn to append.
        - "move": `other`, the next turn; `words`, the number of its words to take, or to give if negative.
        - "time": `word`, `start_ms`, `end_ms`.
        """
        value = edit.value
        if edit.action == "split":
            self._places[value["new"], None] = None  # until it is split off
        turn = self._turn(edit.turn, edit.was)
        if edit.action == "text":
            turn.correct(value["text"])
        elif edit.action == "time":
            turn.set_time(value["word"], value["start_ms"], value["end_ms"])
        elif edit.action == "split":
            self._split(turn, value)
        elif edit.action in ("merge", "move"):
            other = self._turn(value["other"], edit.other_was)
            if turn is other or turn.channel != other.channel:
                raise OptionError(f"turns {turn.idx} and {other.idx} are not two turns of one channel")
            if edit.action == "merge":
                if wordless := [each.idx for each in (turn, other) if not each.words]:
                    raise OptionError(
                        f"turn {wordless[0]} has no words, so turns {turn.idx} and {other.idx} stay apart"
                    )
                turn.reshape([*turn.words, *other.words])
                del self.turns[other.idx]
                return
            count, words = value["words"], [*turn.words, *other.words]
            (other if count > 0 else turn).check_part(abs(count))
            place = len(turn.words) + count
            turn.reshape(words[:place])
            other.reshape(words[place:])
        else:
            raise OptionError(f"{edit.action!r} is an edit of a newer version of voxframe; update voxframe")

    def name(self, turn: Turn) -> int:
        """Return the index of a turn in edits: the index at its first edit, also if the payload was replaced since."""
        same = (idx for (idx, was), place in self._places.items() if place == turn.idx and was == turn.was)
        return next(same, turn.idx)

    def next_of(self, idx: int) -> int:
        """Return the index of the next turn on the same channel."""
        order = list(self.turns)
        for other in order[order.index(idx) + 1 :]:
            if self.turns[other].channel == self.turns[idx].channel:
                return other
        same = "" if idx == order[-1] else " of the same channel"
        raise OptionError(f"there is no turn{same} after turn {idx}")

    def _split(self, turn: Turn, value: Mapping[str, Any]) -> None:
        turn.check_part(value["word"])
        speaker = turn.speaker if value.get("speaker") is None else value["speaker"]
        new_turn = Turn(self.free, None, speaker, turn.channel, turn.source)
        new_turn.reshape(turn.words[value["word"] :])
        turn.reshape(turn.words[: value["word"]])
        self._places[value["new"], None] = new_turn.idx
        self.loaded.add(new_turn.idx)
        self.free = max(self.free, value["new"]) + 1
        items = [*self.turns.items()]
        place = [idx for idx, _ in items].index(turn.idx) + 1
        self.turns = dict([*items[:place], (new_turn.idx, new_turn), *items[place:]])

    def _turn(self, idx: int, was: Was | None) -> Turn:
        """Return the turn that an edit names, with its words."""
        if (idx, was) not in self._places:
            self._places[idx, was] = self._find(idx, was)
        place = self._places[idx, was]
        if place is None or place not in self.turns:
            raise OptionError(f"turn {idx} has changed or no longer exists")
        turn = self.turns[place]
        if place not in self.loaded:
            turn.base = turn.words = self._words_of(turn)
            self.loaded.add(place)
        return turn

    def _find(self, idx: int, was: Was | None) -> int | None:
        """Return the index of a turn that the service sent: the nearest one with its text and at its time."""
        here = self.turns.get(idx)
        if here is not None and was in (None, here.was):
            return idx
        places = set(self._places.values())
        same = [
            (abs((turn.was.start or 0) - (was.start or 0)), turn.idx)
            for turn in self.turns.values()
            if was and turn.was and turn.was.has_text_of(was) and turn.was.overlaps(was) and turn.idx not in places
        ]
        return min(same)[1] if same else None
