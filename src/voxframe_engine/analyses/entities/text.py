"""Consecutive words as one text for patterns, which maps a match back to its words; numbers, and series of characters.

Digits read out one by one are the common case. text2num 3.1 reads quantities well, but turns "five five five zero one
seven three" into "5 5 5 01 7 3" and "nineteen ninety eight" into "19 98".

Series of digits and letters are found whatever they identify: "0 2 0, 7 9 4 6", "plus 3 5 1, um, 9 1 2", "CLM dash 7 7
0 4", "KD68 WFJ", "Kilo Delta six eight", "S-Z-C-Z-E-P" and "capital T, r, e, e, hash, 4" are each one series.
Hesitations, commas, and the words for signs may stand within it.
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


_NATO = frozenset(
    """
    alpha alfa bravo charlie delta echo foxtrot golf hotel india juliet juliett kilo lima mike november oscar papa
    quebec romeo sierra tango uniform victor whiskey whisky xray x-ray yankee zulu
    """.split()
) | {"x ray"}
#: Words for signs and for upper case; they may also begin a series.
_SIGNS = frozenset("dash hyphen slash stroke underscore hash star asterisk plus capital uppercase lowercase".split())
_FILLERS = frozenset("um uh er erm uhm hmm then space dot point lower upper case big small little".split())
#: Groups of capitals that are words of their own before a number.
_ACRONYMS = frozenset(
    """
    US USA UK EU UN NHS SSN VIN PIN ID CVV CVC IBAN BIC PO TV AM PM AD BC BCE CE OK MP CEO DOB IP URL SMS PDF CV HR IT
    AI ISO RFC BBC ITV CNN NBC ABC IRS FBI CIA NASA NATO DVD CD PC USB GPS ATM VAT PE AND THE OF TO IN ON IS OR MY NO
    """.split()
)
_SPELLED_CUE = re.compile(
    r"\b(?:s s n|v i n|p i n|c v [vc]|i ?d|d o b|p o|w w w|h t t p s?|u s a?|u k|[ap] m|t v|n h s|i p|i b a n)\b"
)
_UNIT = re.compile(
    r" ?(?:%|percent|per cent|dollars?|euros?|pounds?|bucks|cents?|pence|people|men|women|kids|children|times|miles"
    r"|feet|foot|inch(?:es)?|degrees|(?:second|minute|hour|day|week|month|year|night|mile|metre|meter|litre|liter|gram"
    r"|kilo|point|item|page|room|bedroom)s?|o'?clock|[ap]\.? ?m\b|million|billion|thousand|hundred|of the|out of|or|kg"
    r"|km|cm|mm|mg|ml)\b"
)
_SPELLED_CASE = re.compile(r"\b(?:capital|upper ?case|lower ?case|underscore)\b")
_AS_IN = re.compile(r"[, ]+(?:as in|for|like) (?P<word>[a-z]+)\b")
_LETTERS = re.compile(r"[a-z](?:-[a-z]){2,}$")
_NUMBER_WORD = re.compile(rf"(?:{BELOW_100}|hundred)$")
_DIGIT_WORD = re.compile(rf"(?:{DIGIT}|\d)$")
_CODE_WORD = re.compile(r"\+?[a-z0-9]+(?:[-/][a-z0-9]+)*$")
_MEASURE = re.compile(
    r"\d+(?:st|nd|rd|th|k|m|mm|cm|km|kg|mg|g|ml|l|am|pm|x|gb|mb|tb|k?hz|mhz|ghz|p|fps|mph|kw|bn|h|hrs?|mins?|secs?"
    r"|ish|s)$"
)
_DATE = re.compile(r"(?:19|20)\d\d-(?:19|20)?\d\d(?:-\d\d)?$|\d{1,2}/\d{1,2}(?:/\d{2,4})?$|\d-\d$")
#: Words after "a" and "i" that show that they are words too.
_WORD_AFTER = {
    "a": re.compile(r" (?!(?:and|then|is|for|but|so|that's|it's|my|the|with|or|you|okay|thanks|thank|yes)\b)[a-z]{2}"),
    "i": re.compile(
        r"(?:'| (?:am|was|do|did|don't|think|have|had|can|could|will|would|believe|guess|know|want|need|said|mean|hope"
        r"|see|got|get|just|also|really|always|never)\b)"
    ),
}
_EDGE = " \"'()[]"


class Series(NamedTuple):
    """A series of digits and letters.

    Attributes:
        start: Index of its first character.
        end: Index after its last character.
        value: Its digits and letters, without the words for signs.
        certain: True if its form alone shows that it is read out or a code. Otherwise it needs a cue before it.
    """

    start: int
    end: int
    value: str
    certain: bool

    @property
    def spells(self) -> bool:
        """True if it has letters only, as a name that is spelled."""
        return self.value.isalpha()


class _Item(NamedTuple):
    start: int
    end: int
    sort: str  # "digit", "number", "letter", "letters", "spelled", "nato", "code", "sign" or "filler"
    value: str
    after: str  # punctuation after it


def series(run: WordRun, cuts: Sequence[int] = ()) -> Iterator[Series]:
    """Yield all series of a run that have at least two digits or letters, in order. No series goes on past a cut."""
    items: list[_Item] = []
    for item in [*_items(run), None]:
        if item and (not items or (_goes_on(items, item, run) and not _is_cut(cuts, items[-1].start, item.start))):
            items.append(item)
            continue
        yield from _series(run, items)
        items = [item] if item else []


def _is_cut(cuts: Sequence[int], start: int, end: int) -> bool:
    """Return True if a cut is after `start`, at most at `end`."""
    return bisect_right(cuts, start) < bisect_right(cuts, end)


def _items(run: WordRun) -> Iterator[_Item | None]:
    """Yield the items of the text, and None for each other word."""
    cues = {at for match in _SPELLED_CUE.finditer(run.low) for at in range(*match.span())}
    shouted = run.text.isupper()
    end = 0
    for word in re.finditer(r"\bx ray\b|\S+", run.low):
        if word.start() < end:
            continue
        text = word[0].strip(_EDGE).rstrip(".,;:!?…\"')]")
        start = word.start() + word[0].find(text)
        end = start + len(text)
        sort, value = ("", "") if not text or start in cues else _sort(text, run.text[start:end], shouted)
        if word[0] in ("-", "\u2013", "#"):
            sort, value, end = "sign", "", word.end()
        if sort == "letter":
            named = _AS_IN.match(run.low, end)
            if named and named["word"].startswith(value):
                end = named.end()
        after = re.compile(r"[^\s\w]*").match(run.low, end)
        yield _Item(start, end, sort, value, after[0] if after else "") if sort else None


def _sort(low: str, text: str, shouted: bool) -> tuple[str, str]:
    if low in ("double", "triple"):
        return "sign", low
    if _DIGIT_WORD.match(low):
        return "digit", low
    if _NUMBER_WORD.match(low) or low.isdecimal():
        return "number", low.replace("-", " ")
    if len(low) == 1 and low.isalpha():
        return "letter", low
    if low in _NATO:
        return "nato", low[0]
    if low in _SIGNS:
        return "sign", ""
    if low in _FILLERS:
        return "filler", ""
    if _LETTERS.match(low):
        return "spelled", low.replace("-", "")
    if text.isalpha() and text.isupper() and 2 <= len(text) <= 6 and not shouted and text not in _ACRONYMS:
        return "letters", low
    if _is_code(low, text):
        return "code", re.sub(r"\W", "", low)
    return "", ""


def _is_code(low: str, text: str) -> bool:
    """Return True for a word of digits with hyphens or with capitals: "1-800-555-0199", "KD68"."""
    if not _CODE_WORD.match(low) or not any(c.isdecimal() for c in low) or _MEASURE.match(low) or _DATE.match(low):
        return False
    letters = re.sub(r"[^a-z]", "", text)
    return not letters or (text == low and all(len(part) <= 3 for part in re.findall("[a-z]+", text)))


def _goes_on(items: list[_Item], item: _Item, run: WordRun) -> bool:
    last = items[-1]
    if re.search(r"[?!:;]", last.after):
        return False
    if last.after == ".":  # the next sentence goes on with single digits
        return item.sort == last.sort == "digit" and not _UNIT.match(run.low, item.end)
    return True


def _series(run: WordRun, items: list[_Item]) -> Iterator[Series]:
    """Yield the series of adjacent items, without articles, fillers and counted quantities at its ends."""
    items = _with_letter_o(items)
    if sum(item.sort == "nato" for item in items) == 1:  # "hotel 5" is no code
        at = next(at for at, item in enumerate(items) if item.sort == "nato")
        yield from _series(run, items[:at])
        items = items[at + 1 :]
    while items and (_is_loose(items[0], first=True) or _is_first_word(run, items)):
        items = items[1:]
    while items and (_is_loose(items[-1], first=False) or _is_last_word(run, items) or _is_counted(run, items[-1])):
        items = items[:-1]
    meaningful = [item for item in items if item.value not in ("", "double", "triple")]
    if not meaningful:
        return
    value = _value(items)
    if len(value) < 2:
        return
    certain = _is_certain(run.text[items[0].start : items[-1].end], items, meaningful, value)
    commas = [at for at, item in enumerate(items[:-1], 1) if item.after]
    if commas and not certain:  # a part may be a code: "AB12 CDF, F for Freddie"
        for first, end in pairwise([0, *commas, len(items)]):
            yield from (part for part in _series(run, items[first:end]) if part.certain)
    yield Series(items[0].start, items[-1].end, value, certain)


def _is_loose(item: _Item, *, first: bool) -> bool:
    """Return True for a hesitation, or a sign at the end; at the start a sign may belong to the series: "plus 44"."""
    return item.sort == "filler" or (item.sort == "sign" and not first)


def _is_first_word(run: WordRun, items: list[_Item]) -> bool:
    """Return True for "a" and "I" before a series, if they may be words."""
    item, after = items[0], items[1:3]
    if not _is_article(item) or (len(after) == 2 and all(one.sort == "letter" for one in after)):
        return False
    if not after or not run.text[item.start].isupper() or item.after:
        return True
    return after[0].sort != "letter" and (item.value == "i" or run.opens_sentence(item.start))


def _is_last_word(run: WordRun, items: list[_Item]) -> bool:
    """Return True for "a" and "I" after a series, unless they end a spelled word: "K O W A L S K I"."""
    item, before = items[-1], items[-3:-1]
    if not _is_article(item):
        return False
    spelled = len(before) == 2 and all(one.sort == "letter" and not one.after for one in before)
    return not spelled or _WORD_AFTER[item.value].match(run.low, item.end) is not None


def _is_article(item: _Item) -> bool:
    return item.sort == "letter" and item.value in ("a", "i") and item.end - item.start == 1


def _with_letter_o(items: list[_Item]) -> list[_Item]:
    """Return the items with "o" as a letter if no digit is beside it: "J O H N", but "4 O 7"."""
    result = list(items)
    spoken = [at for at, item in enumerate(items) if item.sort not in ("sign", "filler")]
    for place, at in enumerate(spoken):
        if items[at].value == "o" and items[at].sort == "digit":
            beside = [
                next((items[n].sort for n in side if items[n].value != "o"), "letter")
                for side in (reversed(spoken[:place]), spoken[place + 1 :])
            ]
            if len(spoken) > 1 and all(sort in ("letter", "letters", "nato") for sort in beside):
                result[at] = items[at]._replace(sort="letter")
    return result


def _value(items: list[_Item]) -> str:
    """Return the digits and letters of items; "o" is a nought only among digits."""
    parts: list[str] = []
    words: list[str] = []
    for item in items:
        if item.sort not in ("letter", "nato", "spelled", "letters"):
            words.append(item.value)
            continue
        times = {"double": 2, "triple": 3}.get(words[-1], 1) if words else 1
        parts += [digits_of(" ".join(words[: -1 if times > 1 else None])), item.value * times]
        words = []
    return "".join([*parts, digits_of(" ".join(words))])


def _is_counted(run: WordRun, item: _Item) -> bool:
    return item.sort in ("digit", "number") and not item.after and _UNIT.match(run.low, item.end) is not None


def _is_certain(text: str, items: list[_Item], meaningful: list[_Item], value: str) -> bool:
    """Return True if a series is surely no quantity, list of numbers, or name of a thing."""
    sorts = [item.sort for item in meaningful]
    if {*sorts} <= {"digit", "number"} and is_counting([digits_of(item.value) for item in meaningful]):
        return False
    digits = sum(c.isdecimal() for c in value)
    letters = len(value) - digits
    # A spelling alphabet, upper case that is said, and letters with hyphens are only used to spell.
    if sorts.count("nato") >= 2 and (digits or sorts.count("nato") >= 4):
        return True
    if len(value) >= 3 and _SPELLED_CASE.search(text.lower()):
        return True
    if not digits:
        return any(item.sort == "spelled" and len(item.value) >= 4 for item in meaningful)
    # Digits read out one by one; fewer than seven without a letter may be scores, and noughts and ones are bits.
    if sorts.count("digit") >= 4 and not counts_up(value):
        alone = sorts.count("digit") == len(sorts) and not letters
        is_list = len(meaningful) > 2 and all("," in item.after for item in meaningful[:-1]) and not letters
        return (not alone and not is_list) or (
            alone and digits >= 7 and not set(value) <= {"0", "1"} and not is_in_pairs(text)
        )
    # Signs: "CLM dash 7 7 0 4".
    if any(item.sort == "sign" and item.value == "" for item in items[1:]) and len(value) >= 5 and digits >= 3:
        return True
    # Commas part the numbers of a list, but also the groups of a phone number.
    if any("," in item.after for item in items[:-1]):
        return digits >= 7 and (letters > 0 or _has_phone_groups([item.value for item in meaningful]))
    if not letters:
        return digits >= 7 and not re.fullmatch(r"(?:19|20)\d\d(?: (?:19|20)\d\d)*|[\d ]+000|\D*", text)
    # Capitals and digits: "KD68 WFJ". Lower case may be a word and a number.
    if not any(c.isupper() for c in text):
        return False
    changes = sum(one.isdecimal() != two.isdecimal() for one, two in pairwise(value))
    if (
        "code" in sorts
        and changes >= 2
        and len(value) >= 6
        and (digits >= 3 or len(meaningful) == 1 or "letters" in sorts)
    ):
        return True
    return digits >= 5 and sorts[0] != "number"


def _has_phone_groups(groups: list[str]) -> bool:
    shape = [len(group) for group in groups if group.isdecimal()]
    is_phone = len(shape) == len(groups) and shape in ([3, 4], [3, 3, 4], [4, 3, 4], [4, 3, 3], [3, 4, 4], [1, 3, 3, 4])
    return is_phone and (len(groups) > 2 or not re.match("19|20", groups[-1]))


def is_in_pairs(text: str) -> bool:
    """Return True for pairs of digits between commas, such as the scores of a match: "6 4, 3 6, 7 6"."""
    parts = [digits_of(part) for part in text.lower().split(",")]
    return len(parts) > 1 and not parts[0].startswith("0") and all(len(part) == 2 for part in parts)


def is_counting(numbers: Sequence[str]) -> bool:
    """Return True for at least three numbers of which some have two digits, such as "8 9 10 11"."""
    steps = {int(two) - int(one) for one, two in pairwise(numbers)}
    return len(numbers) > 2 and steps in ({1}, {-1}) and any(len(number) > 1 for number in numbers)


def counts_up(value: str) -> bool:
    """Return True for "1 2 3 4", "5 4 3 2 1" and "a b c d e"."""
    steps = {ord(two) - ord(one) for one, two in pairwise(value)}
    return len(steps) == 1 and steps <= {1, -1}
