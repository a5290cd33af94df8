"""How words are said that an engine is to listen for: from a dictionary of pronunciations, else by rules.

A word that the dictionary has not is taken apart into two that it has ("voxframe" is "vox" and "frame"), or said by its
letters, in two ways: as English words are, and as names from elsewhere are ("Marchetti"). Capitals without a vowel, and
digits, are said one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice, product

#: The phones of a dictionary's entry, such as "read" or "read(2)"; None where it has none.
Lookup = Callable[[str], str | None]

#: Pronunciations of a term at most.
MOST = 6
_SHORTEST = 3  # letters of a part of a compound
_DIGITS = "zero one two three four five six seven eight nine".split()
_WORD = re.compile(r"[A-Za-z']+|\d")


def _rules(text: str) -> dict[str, str]:
    entries = (entry.strip().partition("=") for entry in text.split(","))
    return {letters: phones for letters, _, phones in entries}


#: Letters and their sounds in any word; the longest at a place count. "^" and "$": only there in the word.
_LETTERS = _rules(
    """
    ^kn=N, ^wr=R, ^ps=S, ^x=Z, ^wh=W, ^gn=N, ^mc=M AH K, ^tch=CH, tch=CH, ch=CH, sch=SH, sh=SH, th=TH, ph=F, gh=,
    ght=T, ck=K, dg=JH, ng$=NG, ngs$=NG Z, nk=NG K, qu=K W, q=K, x=K S, sci=S AY, tion=SH AH N, sion=ZH AH N,
    cian=SH AH N, cious=SH AH S, tious=SH AH S, ce=S EH, ci=S IH, cy=S IY, ce$=S, ge$=JH, gy=JH IY, mb$=M,
    ture=CH ER, ee=IY, ea=IY, oo=UW, oa=OW, ou=AW, ow=OW, oi=OY, oy=OY, ai=EY, ay=EY, au=AO, aw=AO, ew=Y UW, ie$=IY,
    ey$=IY, igh=AY, eau=OW, ar=AA R, er=ER, ir=ER, or=AO R, ur=ER, yr=IH R, our=AO R, arr=EH R, er$=ER, ers$=ER Z,
    or$=ER, le$=AH L, les$=AH L Z, re$=ER, ism$=IH Z AH M, a=AE, e=EH, i=IH, o=AA, u=AH, y=IH, ^y=Y, y$=IY, a$=AH,
    i$=IY, o$=OW, u$=UW, e$=, es$=Z, s$=Z, ss=S, ^a=AH, us$=AH S, b=B, c=K, d=D, f=F, g=G, h=HH, j=JH, k=K, l=L,
    m=M, n=N, p=P, r=R, s=S, t=T, v=V, w=W, z=Z
    """
)
#: What differs in names from elsewhere.
_ELSEWHERE = _rules(
    """
    a=AA, e=EH, i=IY, o=OW, u=UW, y=IY, ^a=AA, e$=EY, ce=CH EH, ci=CH IY, ch=K, j=Y, ei=AY, ie=IY, ea=EY AH,
    oa=OW AH, er=EH R, ir=IY R, ur=UH R, w=V, gh=G, gn=N Y, gli=L Y IY, tt=T, zz=T S, ai=AY, ou=UW, s$=S, es$=EH S,
    z=Z, cc=CH, sch=SH, qu=K
    """
)
#: A vowel before one consonant and a final e.
_LONG = {"a": "EY", "e": "IY", "i": "AY", "o": "OW", "u": "UW", "y": "AY"}
_SOFT = {"c": "S", "g": "JH"}  # that consonant


def pronunciations(term: str, lookup: Lookup) -> list[str]:
    """Ways to say a word or phrase, as phones of the ARPAbet, the likeliest first; none for what has no sound.

    Args:
        term: The word or phrase.
        lookup: The dictionary; it has letters as "a.", "b.", ...

    Example:
        >>> pronunciations("river bank", {"river": "R IH V ER", "bank": "B AE NG K"}.get)
        ['R IH V ER B AE NG K']
    """
    spoken = [_of_word(word, lookup) for word in _WORD.findall(term.replace("\u2019", "'"))]
    spoken = [ways for ways in spoken if ways]
    return list(dict.fromkeys(" ".join(parts) for parts in islice(product(*spoken), MOST))) if spoken else []


def _of_word(word: str, lookup: Lookup) -> list[str]:
    if word.isdigit():
        return _known(_DIGITS[int(word)], lookup)
    low = word.lower().strip("'")
    letters = [lookup(f"{letter}.") for letter in low if letter.isalpha()]
    spelled = [" ".join(letter for letter in letters if letter)] if any(letters) else []
    if found := _known(low, lookup):
        return [*spelled, *found] if word.isupper() and 1 < len(word) < 4 else found
    if not re.search("[aeiouy]", low):
        return spelled
    made = _inflected(low, lookup) or _compound(low, lookup) or [_by_rules(low, {}), _by_rules(low, _ELSEWHERE)]
    return [*spelled, *made] if len(low) < 5 else made


def _known(word: str, lookup: Lookup) -> list[str]:
    """The pronunciations that the dictionary has."""
    return list(_entries(word, lookup))


def _entries(word: str, lookup: Lookup) -> Iterator[str]:
    for entry in (word, *(f"{word}({number})" for number in range(2, 5))):
        phones = lookup(entry)
        if not phones:
            return
        yield phones


def _inflected(word: str, lookup: Lookup) -> list[str]:
    """A known word with an ending: "dashboards", "Okafor's"."""
    stem = word.removesuffix("s").removesuffix("'")
    return [f"{phones} Z" for phones in _known(stem, lookup)] if stem != word and len(stem) >= _SHORTEST else []


def _compound(word: str, lookup: Lookup) -> list[str]:
    """Two known words that make it up, the most even cut first."""
    cuts = sorted(range(_SHORTEST, len(word) - _SHORTEST + 1), key=lambda at: abs(2 * at - len(word)))
    for at in cuts:
        first, second = lookup(word[:at]), lookup(word[at:])
        if first and second:
            return [f"{first} {second}"]
    return []


def _by_rules(word: str, other: dict[str, str]) -> str:
    """The word by its letters."""
    rules = {**_LETTERS, **other}
    word = re.sub(r"([bdfgklmnprt])\1", r"\1", word) if not other else word
    sounds: list[str] = []
    at = 0
    while at < len(word):
        magic = None if other else re.match(r"([aeiouy])([bcdfgklmnpstvz])e$", word[at:])
        if magic:
            sounds += [_LONG[magic[1]], _SOFT.get(magic[2], rules[magic[2]])]
            break
        for length in range(min(5, len(word) - at), 0, -1):
            part = word[at : at + length]
            first, last = at == 0, at + length == len(word)
            keys = ([f"^{part}"] if first else []) + ([f"{part}$"] if last else []) + [part]
            sound = next((rules[key] for key in keys if key in rules), None)
            if sound is not None:
                sounds += sound.split()
                at += length
                break
        else:
            at += 1  # a letter that is none of the alphabet
    return " ".join(sound for place, sound in enumerate(sounds) if place == 0 or sound != sounds[place - 1])
