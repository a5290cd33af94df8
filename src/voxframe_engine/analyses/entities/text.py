"""Consecutive words as one text for patterns, with the mapping from a match back to its words; patterns for numbers.

Digits read out one by one are the common case. text2num 3.1 reads quantities well, but turns "five five five zero one
seven three" into "5 5 5 01 7 3" and "nineteen ninety eight" into "19 98".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

WordDict = dict[str, Any]

_LONG_PAUSE_MS = 5000  # nothing that is said as one thing has a pause this long in it
_BEFORE = 110  # characters before a value that may announce it
_ASKED_WORDS = 20  # of another channel
_REPLY = 60  # characters from the start of a reply in which the value comes that was asked for
_LONGEST_WORD = 80  # characters of a word that are read: some patterns take long over thousands without a blank


#: Words that carry no information between a cue and its value: "the security code, um, I think it's ...".
_EMPTY = frozenset(
    """
    a an the my your our his her their its it it's that that's this these there there's here here's is are was were be
    been being will would should could can may might must do did does have has had i i'm i've i'll i'd you you're
    you've he he's she she's we we're they they're me him us them and so or but if then now well um uh er erm uhm hmm
    mm oh ah yes yeah yep yup no nope sure okay ok right alright just only also like please thanks thank sorry again
    let let's see think believe guess say says said reads read shows starts start begins begin ends ended end ending
    's beginning number numbers code digits digit last first whole full actual called call known as at in on of for
    with to from by one sec second moment hang hold got get give gave gives have what which who how about around it'll
    that'll that'd exactly still current new old back go goes going ready course follows following written simply
    really actually probably wait quite too look looking correct all both sir madam ma'am dear spelled spelt
    """.split()
)
_SAID = re.compile(r"[a-z']+|\d")


def _is_empty(text: str) -> bool:
    """Return True if a text has only hesitations and words such as "it's", and at most 16 of them."""
    words = _SAID.findall(text)
    return len(words) <= 16 and all(word in _EMPTY for word in words)


class EntityMatch(NamedTuple):
    """A match of a pattern or list.

    Attributes:
        weight: The match with the greater weight is kept if two overlap; of equal weights, the longer one. From 90:
            announced by name, or of an unmistakable format. From 70: checked, or determined by context. From 50: listed
            words. Less: a guess.
    """

    kind: str
    start: int
    end: int
    weight: int


class Rule(NamedTuple):
    """A pattern over lower-case text. The match is its group `it`, or the whole pattern without such a group."""

    kind: str
    weight: int
    pattern: re.Pattern[str]

    def find(self, low: str) -> Iterator[EntityMatch]:
        """Yield every match in a text."""
        group = "it" if "it" in self.pattern.groupindex else 0
        for match in self.pattern.finditer(low):
            yield EntityMatch(self.kind, *match.span(group), self.weight)


def rules(kind: str, weight: int, *forms: str) -> list[Rule]:
    """Return one rule per pattern."""
    return [Rule(kind, weight, re.compile(form)) for form in forms]


def find_matches(run: WordRun, table: Iterable[Rule]) -> Iterator[EntityMatch]:
    """Yield the matches of all rules."""
    for rule in table:
        yield from rule.find(run.low)


@dataclass(frozen=True)
class WordRun:
    """Consecutive words of one speaker on one channel.

    Attributes:
        asked: Lower-case text of another speaker or channel just before: "and your last name?"
    """

    indexes: Sequence[int]
    text: str
    low: str
    starts: Sequence[int]
    asked: str = ""

    def indexes_of(self, start: int, end: int) -> tuple[int, ...]:
        """Return the indexes of the words in a span of the text."""
        return tuple(self.indexes[bisect_right(self.starts, start) - 1 : bisect_right(self.starts, end - 1)])

    def before(self, at: int) -> str:
        """Return the lower-case text just before a character, including what another speaker asked."""
        text = self.low[max(0, at - _BEFORE) : at]
        return f"{self.asked[-_BEFORE:].rstrip(' .?')}? {text}" if self.asked and at < _REPLY else text

    def follows(self, cue: re.Pattern[str], at: int) -> re.Match[str] | None:
        """Return the last match of a cue if only empty words stand between it and a character.

        The cue may be in a question just before, of the same or of another speaker: "And your login? It's ...".
        """
        before = self.before(at)
        cues = list(cue.finditer(before))
        if not cues:
            return None
        last = cues[-1]
        question, mark, answer = before[last.end() :].rpartition("?")
        return last if _is_empty(answer) and (not mark or not re.search(r"[.?!] ", question)) else None

    def opens_sentence(self, at: int) -> bool:
        """Return True if a character is at the start of the run or follows ".", "?", "!" or ":"."""
        before = self.text[max(0, at - _LONGEST_WORD) : at].rstrip("\"'( ")
        return not before or before[-1] in ".?!:"


def runs(words: Sequence[WordDict]) -> Iterator[WordRun]:
    """Split words into runs at changes of speaker and at long pauses, separately for each channel.

    A run of one channel also ends when another channel asks something: "How old is he?"
    """
    channels: dict[Any, list[int]] = {}
    for index, word in enumerate(words):
        channels.setdefault(word.get("channel"), []).append(index)
    for channel, indexes in channels.items():
        other_channel = [index for index in range(len(words)) if words[index].get("channel") != channel]
        other_channel.sort(key=lambda index: words[index]["end"])
        ends = [words[index]["end"] for index in other_channel]
        asked, first = "", 0
        for at, index in enumerate(indexes, 1):
            here, after = words[index], words[indexes[at]] if at < len(indexes) else None
            turns = after is not None and after.get("speaker") != here.get("speaker")
            if (
                after is None
                or turns
                or after["start"] - here["end"] >= _LONG_PAUSE_MS
                or "?" in _said(words, other_channel, ends, here["end"], after["start"])
            ):
                start = words[indexes[first]]["start"]
                run = _run(
                    words, indexes[first:at], asked or _said(words, other_channel, ends, start - _LONG_PAUSE_MS, start)
                )
                yield run
                asked, first = run.low if turns else "", at


def _said(words: Sequence[WordDict], other_channel: Sequence[int], ends: Sequence[int], since: int, until: int) -> str:
    """Return the lower-case text of the words of other channels that end in a time, at most the last ones."""
    last = bisect_right(ends, until)
    first = max(bisect_right(ends, since), last - _ASKED_WORDS)
    return " ".join(_lower(words[index]["text"][:_LONGEST_WORD]) for index in other_channel[first:last])


def _run(words: Sequence[WordDict], indexes: Sequence[int], asked: str) -> WordRun:
    texts = [words[index]["text"][:_LONGEST_WORD] for index in indexes]
    starts = list(accumulate((len(text) + 1 for text in texts[:-1]), initial=0))
    text = " ".join(texts)
    return WordRun(indexes, text, _lower(text), starts, asked)


def _lower(text: str) -> str:
    """Return the text in lower case with the same length, and with straight apostrophes."""
    low = text.lower()
    if len(low) != len(text):  # the lower case of a few letters has two characters: "İ"
        low = "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
    return low.replace("\u2019", "'")


_ONES = "zero one two three four five six seven eight nine".split()
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = (
    "tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth "
    "thirtieth first second third fourth fifth sixth seventh eighth ninth"
).split()
_VALUES = {
    **{word: n for n, word in enumerate(_ONES)},
    **{word: 10 + n for n, word in enumerate(_TEENS)},
    **{word: 20 + 10 * n for n, word in enumerate(_TENS)},
    **dict.fromkeys(("oh", "o", "nought", "naught"), 0),
}

#: One digit, spoken: "zero", "oh", "seven".
DIGIT = rf"(?:{'|'.join(_ONES)}|oh|o|nought|naught)"
TENS = rf"(?:{'|'.join(_TENS)})"
TEENS = rf"(?:{'|'.join(_TEENS)})"
_ONE_TO_NINE = rf"(?:{'|'.join(_ONES[1:])})"
#: A number below one hundred in words.
BELOW_100 = rf"(?:{TENS}(?:[ -]{_ONE_TO_NINE}\b)?|{TEENS}|{'|'.join(_ONES)})"
_SCALE = r"(?:hundred|thousand|million|billion|trillion)"
_WRITTEN = rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?(?: {_SCALE})*"
_SPELLED = (
    # The groups are atomic, as "twenty one twenty one ..." can be divided in thousands of ways.
    rf"(?:a (?={_SCALE}\b)|\b)(?>{BELOW_100}|{_SCALE})(?:(?: and)?[ -](?>{BELOW_100}|{_SCALE})\b){{0,12}}"
    rf"(?: point(?: {DIGIT}\b){{1,8}}(?: {_SCALE})*)?"
)
#: A quantity: "forty two", "two hundred thousand", "three and a half", "2.5 million", "4,500", "a hundred".
QUANTITY = rf"(?:{_WRITTEN}|{_SPELLED})(?: and a (?:half|quarter))?\b"
#: "first" to "thirty first", "9th".
ORDINAL = rf"(?:(?:(?:twenty|thirty)[ -])?(?:{'|'.join(_ORDINALS)})|\d{{1,2}}(?:st|nd|rd|th))\b"
_YEAR_END = rf"(?:{TENS}(?:[ -]{_ONE_TO_NINE}\b)?|{TEENS}|(?:oh|o) {_ONE_TO_NINE}|hundred)\b"
#: A year: "nineteen ninety eight", "two thousand and four", "twenty twenty", "1998".
YEAR = (
    rf"(?:(?:seventeen|eighteen|nineteen|twenty)[ -]{_YEAR_END}"
    rf"|two thousand(?: (?:and )?(?:{TEENS}|{_ONE_TO_NINE}|twenty(?: {_ONE_TO_NINE})?))?\b|(?:1[5-9]|20)\d\d\b)"
)
_PIECE = rf"(?:(?:double|triple) {DIGIT}|{DIGIT}|{TENS}|{TEENS}|{_ONE_TO_NINE} hundred|\d+)\b"
_BETWEEN = r"(?:[,.;…]? |-| - )"
#: Digits read out: "five five five, zero one seven three", "eight hundred five five five oh one nine nine".
DIGITS = rf"\b{_PIECE}(?:{_BETWEEN}{_PIECE}){{1,40}}"
_SPOKEN_PIECE = rf"(?:{_PIECE}|[a-z]\b(?!'))"
_WITH_DIGIT = r"(?=[a-z-]*\d)[a-z0-9]+"
#: Digits and letters read out, or written as one: "d one two three four", "x four eight", "D123-4567".
CODE = rf"\b(?:{_SPOKEN_PIECE}(?:{_BETWEEN}{_SPOKEN_PIECE}){{1,40}}|{_WITH_DIGIT}(?:[- ]{_WITH_DIGIT}){{0,9}})"

_TOKEN = re.compile(r"[a-z]+|\d+")


def digits_of(text: str) -> str:
    """Return the digits of a spoken or written number; letters are kept.

    Example:
        >>> digits_of("eight hundred five five five, oh one double nine")
        '8005550199'
        >>> digits_of("d twenty one seven"), digits_of("(303) 555-0142")
        ('d217', '3035550142')
    """
    digits: list[str] = []
    times = 1
    for piece, after in pairwise([*_TOKEN.findall(text), ""]):
        if piece in ("double", "triple"):
            times = 2 if piece == "double" else 3
            continue
        value = _VALUES.get(piece)
        if value is None:
            digits.append("00" if piece == "hundred" else "" if piece in ("and", "dot") else piece * times)
        elif value >= 20 and 0 < _VALUES.get(after, 0) < 10:
            digits.append(str(value // 10))  # the ones follow: "twenty one"
        else:
            digits.append(str(value) * times)
        times = 1
    return "".join(digits)
