"""`disfluencies`: filled pauses are left out unless they were asked for."""

from __future__ import annotations

from collections.abc import Sequence

from voxframe.local.words import Word

#: Sounds that fill a pause. "uh-huh", "mhm" and "huh" are answers, and stay.
FILLED_PAUSES = frozenset({"um", "umm", "uhm", "uh", "er", "erm", "hm", "hmm", "mm"})


def without_filled_pauses(words: Sequence[Word]) -> list[Word]:
    """The words without "um" and its kin; where one of them ended a sentence, the word before it does.

    Example:
        >>> spoken = [Word("well", 0, 300, 0.9), Word("um", 400, 800, 0.5), Word("yes", 900, 1200, 0.8)]
        >>> [word.text for word in without_filled_pauses(spoken)]
        ['well', 'yes']
    """
    kept: list[Word] = []
    for word in words:
        if word.text.lower() not in FILLED_PAUSES:
            kept.append(word)
        elif word.ends_sentence and kept and (kept[-1].speaker, kept[-1].channel) == (word.speaker, word.channel):
            kept[-1].ends_sentence, kept[-1].mark = True, word.mark
    return kept
