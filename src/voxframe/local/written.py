"""Words that an engine already writes as people do: their punctuation, apart from them while they are shaped."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from voxframe.local.words import Word

_ENDS = ".?!\u2026\u3002\uff1f\uff01\u061f\u06d4\u0964\u0965\u1362\u1367\u104b\u17d4"


def take_marks(words: Sequence[Word]) -> list[Word]:
    """Take the punctuation off the words and mark where sentences end; what is nothing but punctuation goes.

    Example:
        >>> [(w.text, w.mark, w.ends_sentence) for w in take_marks([Word("Well,", 0, 9, 1), Word("yes!", 9, 20, 1)])]
        [('Well', ',', False), ('yes', '!', True)]
    """
    taken: list[Word] = []
    for word in words:
        last = _last(word.text)
        word.text, word.mark = word.text[:last], word.text[last:]
        word.ends_sentence = _ends(word.mark)
        if word.text:
            taken.append(word)
        elif taken:
            taken[-1].mark += word.mark
            taken[-1].ends_sentence |= word.ends_sentence
    if taken:
        taken[-1].ends_sentence = True
    return taken


def finish(words: Sequence[Word], *, punctuate: bool, format_text: bool) -> None:
    """Write the words, in place: with their punctuation or none at all, with their capitals or none at all."""
    for word in words:
        if punctuate:
            word.text += word.mark
        else:
            word.text = word.text[_first(word.text) :]
        if not (format_text or word.given):
            word.text = word.text.lower()


def _ends(mark: str) -> bool:
    return any(sign in mark for sign in _ENDS)


def _is_mark(sign: str) -> bool:
    """Whether a sign is punctuation around a word, and no part of it as in 5%, @name or 'tis."""
    return unicodedata.category(sign).startswith("P") and sign not in "%#@&'\u2019"


def _first(text: str) -> int:
    """Where the word begins in its text."""
    return next((at for at, sign in enumerate(text) if not _is_mark(sign)), len(text))


def _last(text: str) -> int:
    """Where the word ends in its text; 0 where there is none."""
    return next((at for at in range(len(text), 0, -1) if not _is_mark(text[at - 1])), 0)
