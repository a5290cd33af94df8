"""Noun phrases of a transcript, and the key phrases among them with the number and times of their occurrences.

Method: a noun phrase is a run of one to four nouns and adjectives within a sentence that ends with a noun. A classifier
of word vectors tells nouns and adjectives from interjections, discourse words and verbs; without the encoder, the words
before them in English texts do (see `lexicon`). The weight of a phrase depends on the rarity of its words in
English, on its frequency, and on its length. Of phrases that share most of their words, only the best is kept.

Quality (`python -m tests.benchmarks analyses`): on four held-out talks, 63 percent of the first ten phrases were
labelled as key phrases, and 64 percent of the labelled ones were among the fifteen (by the lexicon 65 and 69); on three
talks by another author 53 and 52 (43 and 48). On the held-out talks, yake 0.7 reached 35 and 33, because it selects
verbs and beginnings of sentences. Weak on transcripts of a few sentences.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from voxframe._text import WordDict
from voxframe.encoder import SentenceEncoder
from voxframe_engine.analyses.lexicon import (
    STOPWORDS,
    WORD_SCALE,
    classifier,
    is_common,
    nounness,
    rarity,
    stem,
    words_of,
)
from voxframe_engine.text import Sentence

_MOST = 15
_LONGEST = 4  # words
_OFTEN_USED = 2.5  # rarity of words without any weight
_COMMON = 3.0  # more common words do not indicate the subject
_NOUN, _BEFORE_NOUN = 0.0, -0.15  # minimum nounness of the last word, and of the others
_NEVER_NOUN = -0.5  # nounness up to which a word is none, whatever the classifier says
#: Names of days, months and units, which say when and how much, but not what about.
_MEASURES = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday weekend january february march april june july august
    september october november december spring summer autumn winter dollar dollars euro euros pound pounds cent cents
    percent bucks kilos miles inches feet degrees noon midnight
    """.split()
)
_CLOSING = (".", ",", ";", ":", "?", "!")
_FOLLOWS_VERB = frozenset("the a an my your his her its our their this that these those us me him them it you".split())


@dataclass(frozen=True)
class _Token:
    """A word of a sentence, normalized for comparison."""

    low: str
    stem: str
    text: str
    part: str  # "noun", "adjective" or "other"
    closes: bool  # a comma or a full stop follows


class Phrase(NamedTuple):
    """A noun phrase, with the stems of its words."""

    text: str
    stems: tuple[str, ...]


def noun_phrases(sentences: Sequence[Sentence], encoder: SentenceEncoder | None = None) -> list[list[Phrase]]:
    """Return the noun phrases of each sentence."""
    return [[_phrase(run, tokens[0]) for run in _runs(tokens)] for tokens in _tokens(sentences, encoder)]


def _phrase(run: Sequence[_Token], opening: _Token) -> Phrase:
    """Return a noun phrase. The capital with which a sentence opens is no part of it, unless it begins a name."""
    texts = [token.text for token in run]
    if run[0] is opening and not any(text[:1].isupper() for text in texts[1:]) and is_common(run[0].low):
        texts[0] = run[0].low
    return Phrase(" ".join(texts), tuple(token.stem for token in run))


def key_phrases(sentences: Sequence[Sentence], encoder: SentenceEncoder | None = None) -> dict[str, Any]:
    """Return the field `auto_highlights_result`; `rank` is the share of a phrase in the total weight."""
    words = [sentence["words"] for sentence in sentences]
    lines = list(zip(words, _tokens(sentences, encoder), strict=True))
    weights = _weights([tokens for _, tokens in lines])
    selected: list[tuple[str, ...]] = []
    for phrase in sorted(weights, key=lambda phrase: -weights[phrase]):
        if len(selected) < _MOST and weights[phrase] > 0 and not any(_alike(phrase, other) for other in selected):
            selected.append(phrase)
    total = sum(weights[phrase] for phrase in selected)
    results = []
    for phrase in selected:
        occurrences = [place for words, tokens in lines for place in _occurrences(phrase, words, tokens)]
        results.append(
            {
                "count": len(occurrences),
                "rank": round(weights[phrase] / total, 2),
                "text": occurrences[0][0],
                "timestamps": [span for _, span in occurrences],
            }
        )
    return {"status": "success", "results": results}


def _tokens(sentences: Sequence[Sentence], encoder: SentenceEncoder | None) -> list[list[_Token]]:
    """Normalize the words of each sentence. Redacted, masked and non-word tokens become empty."""
    texts = [[word["text"] for word in sentence["words"]] for sentence in sentences]
    parts = [_parts_by_lexicon(line) for line in texts] if encoder is None else _parts(texts, encoder)
    return [list(map(_token, line, kinds)) for line, kinds in zip(texts, parts, strict=True)]


def _token(text: str, part: str) -> _Token:
    low = _low(text)
    stripped = text.strip('.,;:?!"()')
    return _Token(low, stem(low) if low else "", stripped, part if _may_name(low) else "other", text.endswith(_CLOSING))


def _low(text: str) -> str:
    """Return a word in lower case without punctuation; an empty string if it is redacted, masked or no word."""
    read = words_of(text) if not set("#*[") & set(text) else []
    return read[0] if len(read) == 1 else ""


def _may_name(low: str) -> bool:
    """Return True for a word that is rare enough to say something about a subject."""
    if len(low) < 3 or any(letter.isdigit() for letter in low):
        return False
    return low not in STOPWORDS and low not in _MEASURES and rarity(low) > _COMMON


def _parts(lines: Sequence[Sequence[str]], encoder: SentenceEncoder) -> list[list[str]]:
    """Return the part of speech of each word by its vector in its sentence. What is rarely a noun is none."""
    model = classifier("parts")
    parts = []
    for line, vectors in zip(lines, encoder.words(lines), strict=True):
        best = model.probabilities(vectors / WORD_SCALE).argmax(axis=1)
        rare = [nounness(_low(text)) <= _NEVER_NOUN for text in line]
        parts.append(["other" if no else model.labels[at] for at, no in zip(best, rare, strict=True)])
    return parts


def _parts_by_lexicon(line: Sequence[str]) -> list[str]:
    """Return the part of speech that each word has most often. A capital within a sentence makes a name, a noun."""
    parts = []
    for at, text in enumerate(line):
        low = _low(text)
        after = _low(line[at + 1]) if at + 1 < len(line) else ""
        if at > 0 and text[:1].isupper() and not low.startswith("i'"):
            parts.append("noun")
        elif nounness(low) <= _BEFORE_NOUN or (low.endswith("s") and after in _FOLLOWS_VERB):
            parts.append("other")  # "high blood sugar damages the eyes"
        else:
            parts.append("noun" if nounness(low) > _NOUN else "adjective")
    return parts


def _weights(lines: Sequence[Sequence[_Token]]) -> dict[tuple[str, ...], float]:
    """Return the candidates as tuples of stems, with their weights."""
    counts: Counter[tuple[str, ...]] = Counter()
    within: Counter[str] = Counter()
    rare: dict[str, float] = {}
    for tokens in lines:
        for phrase in _runs(tokens):
            counts[tuple(token.stem for token in phrase)] += 1
            for token in phrase:
                within[token.stem] += 1
                rare[token.stem] = min(rarity(token.low), rare.get(token.stem, math.inf))
    return {
        parts: weight([(rare[part] - _OFTEN_USED) * (1 + math.log(within[part])) for part in parts], count)
        for parts, count in counts.items()
    }


def weight(amounts: Sequence[float], count: int) -> float:
    """Return the weight of a phrase by the amounts of its words and its number of occurrences."""
    alone = 0.5 if len(amounts) == 1 else 1.0
    return alone * sum(amounts) / math.sqrt(len(amounts)) * (1 + 0.5 * math.log(count))


def _runs(tokens: Sequence[_Token]) -> Iterator[list[_Token]]:
    """Yield the noun phrases of a sentence."""
    run: list[_Token] = []
    for at, token in enumerate(tokens):
        if token.part != "other":
            run.append(token)
        if token.part == "other" or token.closes or at + 1 == len(tokens):
            while run and run[-1].part != "noun":
                run.pop()
            if 0 < len(run) <= _LONGEST:
                yield run
            run = []


def _alike(phrase: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return True if two phrases share most of their words."""
    shared = len(set(phrase) & set(other))
    return shared >= min(len(phrase), len(other)) or shared * 3 >= 2 * max(len(phrase), len(other))


def _occurrences(
    phrase: tuple[str, ...], words: Sequence[WordDict], tokens: Sequence[_Token]
) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the text and time span of every occurrence of a phrase."""
    length, at = len(phrase), 0
    while at + length <= len(tokens):
        here = tokens[at : at + length]
        if tuple(token.stem for token in here) == phrase and not any(token.closes for token in here[:-1]):
            occurrences = words[at : at + length]
            span = {"start": occurrences[0]["start"], "end": max(word["end"] for word in occurrences)}
            yield " ".join(token.text for token in here), span
            at += length
        else:
            at += 1
