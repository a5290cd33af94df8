"""Numbers as they are spoken and as they are written: patterns for them, and the digits they stand for.

A library was tried first. text2num 3.1 reads quantities well, but "five five five zero one seven three" became
"5 5 5 01 7 3" and "nineteen ninety eight" "19 98", and digits read out one by one are what matters here.
"""

from __future__ import annotations

import re
from itertools import pairwise

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
    rf"(?:a (?={_SCALE}\b)|\b)(?:{BELOW_100}|{_SCALE})(?:(?: and)?[ -](?:{BELOW_100}|{_SCALE})\b){{0,12}}"
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
_WITH_DIGIT = r"(?=[a-z-]*\d)[a-z0-9]+"
#: Digits and letters read out, or written as one: "d one two three four", "x four eight", "D123-4567".
CODE = (
    rf"\b(?:(?:{_PIECE}|[a-z]\b)(?:{_BETWEEN}(?:{_PIECE}|[a-z]\b)){{1,40}}|{_WITH_DIGIT}(?:[- ]{_WITH_DIGIT}){{0,9}})"
)

_TOKEN = re.compile(r"[a-z]+|\d+")


def digits_of(text: str) -> str:
    """The digits that were read out; letters stay.

    Example:
        >>> digits_of("eight hundred five five five, oh one double nine")
        '8005550199'
        >>> digits_of("d twenty one seven"), digits_of("(303) 555-0142")
        ('d217', '3035550142')
    """
    made: list[str] = []
    times = 1
    for piece, after in pairwise([*_TOKEN.findall(text), ""]):
        if piece in ("double", "triple"):
            times = 2 if piece == "double" else 3
            continue
        value = _VALUES.get(piece)
        if value is None:
            made.append("00" if piece == "hundred" else "" if piece in ("and", "dot") else piece)
        elif value >= 20 and 0 < _VALUES.get(after, 0) < 10:
            made.append(str(value // 10))  # the ones follow: "twenty one"
        else:
            made.append(str(value) * times)
        times = 1
    return "".join(made)
