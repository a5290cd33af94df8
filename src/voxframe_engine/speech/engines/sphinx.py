"""The pocketsphinx engine with the English models that it includes. Offline, one core.

For `word_boost`, each term is added to the dictionary and to the language model as one word, with every pronunciation
that is found for it. `boost_param` sets how likely the language model expects it. A term is therefore recognized only
if the sound supports it, even if the dictionary did not contain it. No word is replaced afterwards.

A word that is not in the dictionary is split into two that are ("voxframe" is "vox" and "frame"). Otherwise it is
pronounced by two sets of rules: for English words, and for foreign names ("Marchetti"). Capitals without a vowel, and
digits, are spelled out.

Quality: of 70 terms in synthetic speech, 49 percent are recognized without a boost, 73 with `low`, 79 with `default`
and 81 with `high`. Of the other words, 26 percent are wrong without a boost, and 18, 17 and 17 with it. These are
held-out terms (`python -m tests.benchmarks boost`); for the development half the figures are 43, 69, 73 and 77 percent.
Of 17 names in the recordings of `data/`, 11, 15, 15 and 17 are recognized. In all of these together, terms that were
not spoken were inserted never with `low`, once with `default`, and twice with `high`. Weak on short terms that sound
like common words, and on names with an unusual pronunciation.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, product
from typing import TYPE_CHECKING, ClassVar

from pocketsphinx import Decoder

from voxframe_engine.speech.engines import DEFAULT_OPTIONS, EngineOptions, RecognizedWord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FRAME_MS = 10
_VARIANT = re.compile(r"\(\d+\)$")  # the dictionary numbers the pronunciations of a word
_NOT_A_WORD = ("<", "[", "+")  # silence, noise
#: Spoken form of dictionary entries that are spelled differently, by entry and pronunciation.
_SPOKEN = {
    "mr": "mister",
    "mr.": "mister",
    "mrs": "missus",
    "mrs.": "missus",
    "dr": "drive",
    "dr(2)": "doctor",
    "dr.": "drive",
    "dr.(2)": "doctor",
    "st": "street",
    "st(2)": "saint",
    "us(2)": "US",
    "ok": "okay",
    "tv": "TV",
}

# Measured: fewer words are wrong if the second pass has wider beams and keeps words of at least 2 frames, not 4.
SETTINGS = {"fwdflatbeam": 1e-72, "fwdflatwbeam": 1e-36, "fwdflatefwid": 2}


class Sphinx:
    """Recognizes clearly read or spoken English with little noise. It is not suited to telephone speech."""

    name: ClassVar[str] = "sphinx"
    model: ClassVar[str] = "sphinx_en_us"
    languages: ClassVar[frozenset[str]] = frozenset({"en", "en_us", "en_uk", "en_au"})

    def __init__(self, options: EngineOptions = DEFAULT_OPTIONS) -> None:
        self._options = options

    @cached_property
    def _decoder(self) -> Decoder:
        return Decoder(loglevel="FATAL", **SETTINGS)

    @cached_property
    def _boosted(self) -> dict[str, str]:
        return listen_for(self._decoder, self._options.boost, self._options.boost_param)

    def transcribe(self, samples: NDArray[np.int16]) -> list[RecognizedWord]:
        """Return the words of the samples."""
        boosted = self._boosted  # changes the dictionary, so it must precede decoding
        new_stream(self._decoder)
        self._decoder.start_utt()
        self._decoder.process_raw(samples.tobytes(), full_utt=True)
        self._decoder.end_utt()
        return list(with_terms(recognized_words(self._decoder), boosted))


def new_stream(decoder: Decoder) -> None:
    """Reset the noise estimate of a decoder."""
    with warnings.catch_warnings():
        # Deprecated as unnecessary, but without it the noise estimate of one stretch changes the words of the next.
        warnings.simplefilter("ignore", DeprecationWarning)
        decoder.start_stream()


def recognized_words(decoder: Decoder) -> list[RecognizedWord]:
    """Return the words of a decoder's current utterance so far."""
    return [
        RecognizedWord(
            _spoken(part.word),
            part.start_frame * _FRAME_MS,
            (part.end_frame + 1) * _FRAME_MS,
            min(1.0, max(0.0, part.prob)),
        )
        for part in decoder.seg() or ()
        if not part.word.startswith(_NOT_A_WORD)
    ]


def _spoken(entry: str) -> str:
    """Return the word of a dictionary entry: "u.s." is US, "b." the letter B, "read(2)" read."""
    if entry in _SPOKEN:
        return _SPOKEN[entry]
    word = _VARIANT.sub("", entry)
    if word in _SPOKEN:
        return _SPOKEN[word]
    if "." not in word:
        return word
    letters = word.rstrip(".").split(".")
    return "".join(letters).upper() if all(len(letter) == 1 for letter in letters) else "".join(letters)


_MARK = "boosted:"  # no dictionary entry starts like this
#: Weight of a term in the language model, relative to an unknown word.
WEIGHTS = {"low": 1.0, "default": 10.0, "high": 100.0}


def listen_for(decoder: Decoder, terms: Sequence[str], strength: str = "default") -> dict[str, str]:
    """Add terms to a decoder. Terms without a pronunciation, such as those in other scripts, are ignored.

    Args:
        decoder: The decoder, before it processes any sound.
        terms: Words and phrases, spelled as they should appear.
        strength: "low", "default" or "high".

    Returns:
        The term for each dictionary entry that was added.
    """
    model = decoder.get_lm("_default")
    ways = {" ".join(term.split()): pronunciations(term, decoder.lookup_word) for term in terms}
    entries: dict[str, str] = {}
    spoken: list[tuple[str, str]] = []
    for term, said in ways.items():
        entry = f"{_MARK}{len(entries)}"
        for number, phones in enumerate(said, 1):
            spoken.append((entry if number == 1 else f"{entry}({number})", phones))
        if said:
            model.add_word(entry, WEIGHTS[strength])
            entries[entry] = term
    for number, (entry, phones) in enumerate(spoken, 1):
        decoder.add_word(entry, phones, number == len(spoken))  # rebuild the search after the last one
    return entries


def with_terms(words: Iterable[RecognizedWord], entries: Mapping[str, str]) -> Iterator[RecognizedWord]:
    """Yield words with the terms in place of their dictionary entries. The words of a phrase share its time by length.

    Example:
        >>> [word[:3] for word in with_terms([RecognizedWord("boosted:0", 0, 900, 1.0)], {"boosted:0": "river bank"})]
        [('river', 0, 500), ('bank', 500, 900)]
    """
    for word in words:
        texts = entries.get(word.text, word.text).split()
        letters, done = sum(map(len, texts)), 0
        length = word.end_ms - word.start_ms
        for text in texts:
            begin, done = done, done + len(text)
            start, end = (word.start_ms + length * part // letters for part in (begin, done))
            yield RecognizedWord(text, start, end, word.confidence)


#: Returns the phones of a dictionary entry such as "read" or "read(2)", or None.
Lookup = Callable[[str], str | None]

#: Maximum number of pronunciations of a term.
MOST = 6
_SHORTEST = 3  # letters of a part of a compound
_DIGITS = "zero one two three four five six seven eight nine".split()
_WORD = re.compile(r"[A-Za-z']+|\d")


def _rules(text: str) -> dict[str, str]:
    entries = (entry.strip().partition("=") for entry in text.split(","))
    return {letters: phones for letters, _, phones in entries}


#: Letters and their sounds; the longest match is used. "^" matches only at the start of a word, "$" only at the end.
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
#: Differences in foreign names.
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
    """Return the pronunciations of a word or phrase as ARPAbet phones, the likeliest first. Empty if it has no sound.

    Args:
        term: The word or phrase.
        lookup: The dictionary. It contains letters as "a.", "b.", ...

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
    return list(_entries(word, lookup))


def _entries(word: str, lookup: Lookup) -> Iterator[str]:
    for entry in (word, *(f"{word}({number})" for number in range(2, 5))):
        phones = lookup(entry)
        if not phones:
            return
        yield phones


def _inflected(word: str, lookup: Lookup) -> list[str]:
    """Return pronunciations of a known word with an ending: "dashboards", "Okafor's"."""
    stem = word.removesuffix("s").removesuffix("'")
    return [f"{phones} Z" for phones in _known(stem, lookup)] if stem != word and len(stem) >= _SHORTEST else []


def _compound(word: str, lookup: Lookup) -> list[str]:
    """Return the pronunciation of two known words that form this one; splits near the middle are tried first."""
    cuts = sorted(range(_SHORTEST, len(word) - _SHORTEST + 1), key=lambda at: abs(2 * at - len(word)))
    for at in cuts:
        first, second = lookup(word[:at]), lookup(word[at:])
        if first and second:
            return [f"{first} {second}"]
    return []


def _by_rules(word: str, other: dict[str, str]) -> str:
    """Return the pronunciation of a word by letter-to-sound rules."""
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
            at += 1  # a letter without a rule
    return " ".join(sound for place, sound in enumerate(sounds) if place == 0 or sound != sounds[place - 1])
