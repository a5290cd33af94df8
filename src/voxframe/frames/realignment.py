"""Words of a corrected text: unchanged words keep their times, and changed words share the gap between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from voxframe._text import UNSPACED, join_words

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
    return join_words(text for word in words if (text := word.text if word.original is None else word.original))


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
