"""`word_boost` with pocketsphinx: words and phrases that its recogniser is to listen for.

Method: each term becomes a word of the dictionary and of the language model, a phrase as one word, said in each of the
ways that `pronunciation` finds; `boost_param` is how often the model expects it. So a term is heard where the sound
speaks for it, whether the recogniser knew the word or not, and nothing is put in its place afterwards.

Quality: of 70 terms that synthetic voices say, 49 percent are heard without; with `low` 73, `default` 79, `high` 81; of
the other words 26 percent are wrong without, 18, 17 and 17 with it (`python -m tests.benchmarks boost`, the half that
was not looked at; in the other 43, 69, 73 and 77 percent). Of 17 names in the recordings of `data/` 11, 15, 15 and 17.
Heard where nobody said it: none with `low`, one with `default`, two with `high` in all of these. Weak at: short terms
that sound like common words, and names said unlike they are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pocketsphinx import Decoder

from voxframe.local.engines import Heard
from voxframe.local.engines.pronunciation import pronunciations

_MARK = "boosted:"  # no word of the dictionary begins like that
#: How often a term is expected, beside a word of which the language model knows nothing.
WEIGHTS = {"low": 1.0, "default": 10.0, "high": 100.0}


def listen_for(decoder: Decoder, terms: Sequence[str], strength: str = "default") -> dict[str, str]:
    """Teach a decoder to hear terms. What cannot be said, such as other scripts, is left out.

    Args:
        decoder: The decoder, before it hears anything.
        terms: Words and phrases, in the spelling they are to be written in.
        strength: "low", "default" or "high".

    Returns:
        The term for each entry of the dictionary that stands for one.
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
        decoder.add_word(entry, phones, number == len(spoken))  # the last one: the search is built anew
    return entries


def as_said(heard: Iterable[Heard], entries: Mapping[str, str]) -> Iterator[Heard]:
    """Words with the terms in place of their entries; a phrase becomes its words, which share its time by length.

    Example:
        >>> [word[:3] for word in as_said([Heard("boosted:0", 0, 900, 1.0)], {"boosted:0": "river bank"})]
        [('river', 0, 500), ('bank', 500, 900)]
    """
    for word in heard:
        texts = entries.get(word.text, word.text).split()
        letters, done = sum(map(len, texts)), 0
        length = word.end_ms - word.start_ms
        for text in texts:
            begin, done = done, done + len(text)
            start, end = (word.start_ms + length * part // letters for part in (begin, done))
            yield Heard(text, start, end, word.confidence)
