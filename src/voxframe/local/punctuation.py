"""`punctuate`: where sentences end, and with which mark. There are only words and pauses to go by."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from voxframe.local.words import Word, runs

_PAUSE_MS = 260  # a pause this long ends a sentence...
_LONG_PAUSE_MS = 1500  # ...after a word that leads on, only one this long
#: Words that hardly ever end a sentence: one is still speaking.
_LEADS_ON = frozenset(
    "a an the this's my your his their our its every each and or but nor because if unless until although than as of "
    "to from with into onto upon between at by for i he she we they who whose which when where while is am are was "
    "were be been being has had will would shall should could can may might must very so quite too rather not i'm "
    "you're he's we're they're i've we've you've they've i'd i'll we'll mister missus doctor".split()
)
_AUXILIARY = frozenset(
    "is are was were do does did has have had can could will would shall should may might must isn't aren't wasn't "
    "don't doesn't didn't hasn't haven't can't couldn't won't wouldn't shouldn't".split()
)
_SUBJECT = frozenset(
    "i you he she it we they there this that these those the a an my your his her its our their any anyone anybody "
    "anything someone everyone somebody everybody".split()
)
_ASKING = frozenset("what who whose which where when why how what's who's where's how's".split())
_COMPLETE = frozenset("what's who's where's how's why what how".split())  # may ask without an auxiliary
_OPENERS = frozenset("and so but well then okay now yes no oh".split())


def find_sentence_ends(words: Sequence[Word]) -> None:
    """Mark, in place, the words after which a sentence seems to end: at a pause, or where somebody else goes on."""
    for run in runs(words):
        for word, after in pairwise(run):
            pause = after.start - word.end
            word.ends_sentence = pause >= (_LONG_PAUSE_MS if word.text.lower() in _LEADS_ON else _PAUSE_MS)
        run[-1].ends_sentence = True


def sentences_of(words: Sequence[Word]) -> list[list[Word]]:
    """The words, a list for each sentence that was marked."""
    groups: list[list[Word]] = []
    for run in runs(words):
        group: list[Word] = []
        for word in run:
            group.append(word)
            if word.ends_sentence:
                groups.append(group)
                group = []
        if group:
            groups.append(group)
    return groups


def add_mark(sentence: Sequence[Word]) -> None:
    """End a sentence, in place, with a full stop, or with a question mark where it opens as a question does."""
    last = sentence[-1]
    if last.text[-1] not in ".?!":
        last.text += "?" if _asks([word.text.lower() for word in sentence]) else "."


def _asks(texts: list[str]) -> bool:
    """Whether the words are in the order of a question: "(and) what would", "is there"."""
    while len(texts) > 1 and texts[0] in _OPENERS:
        texts = texts[1:]
    first, second, third = (*texts, "", "", "")[:3]
    if first in _ASKING:
        return second in _AUXILIARY or (
            len(texts) > 1 and first in _COMPLETE and third in _AUXILIARY and second not in _SUBJECT
        )
    return first in _AUXILIARY and second in _SUBJECT and len(texts) > 2
