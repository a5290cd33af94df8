"""Key phrases, with the number and times of their occurrences.

Method: candidates are runs of one to four nouns and adjectives within a sentence (see `english_lexicon`). The weight of
a phrase depends on the rarity of its words in English, on its frequency, and on its length. Of phrases that share most
of their words, only the best is kept.

Quality: on four held-out talks, 65 percent of the first ten phrases were labelled as key phrases, and 72 percent of the
labelled ones were among the fifteen; on three talks by another author 47 and 44. On the held-out talks, yake 0.7
reached 35 and 33, because it selects verbs and beginnings of sentences. Weak on names and terms outside the
recognizer's vocabulary, and on transcripts of a few sentences.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from voxframe._text import WordDict
from voxframe_engine.analyses.english_lexicon import STOPWORDS, nounness, rarity, stem, words_of
from voxframe_engine.text.sentences import Sentence

_MOST = 15
_LONGEST = 4  # words
_COMMON = 3.0  # more common words do not indicate the subject
_NOUN, _BEFORE_NOUN = 0.0, -0.15  # minimum nounness of the last word, and of the others
_FOLLOWS_VERB = frozenset("the a an my your his her its our their this that these those us me him them it you".split())


@dataclass(frozen=True)
class _Token:
    """A word of a sentence, normalized for comparison."""

    low: str
    stem: str
    text: str
    named: bool  # written with a capital within a sentence
    closes: bool  # a comma or a full stop follows


def key_phrases(sentences: Sequence[Sentence]) -> dict[str, Any]:
    """Return the field `auto_highlights_result`; `rank` is the share of a phrase in the total weight."""
    lines = [(sentence["words"], _tokens(sentence["words"])) for sentence in sentences]
    weights = _weights([tokens for _, tokens in lines])
    chosen: list[tuple[str, ...]] = []
    for phrase in sorted(weights, key=lambda phrase: -weights[phrase]):
        if len(chosen) < _MOST and weights[phrase] > 0 and not any(_alike(phrase, other) for other in chosen):
            chosen.append(phrase)
    total = sum(weights[phrase] for phrase in chosen)
    results = []
    for phrase in chosen:
        occurrences = [found for words, tokens in lines for found in _occurrences(phrase, words, tokens)]
        results.append(
            {
                "count": len(occurrences),
                "rank": round(weights[phrase] / total, 2),
                "text": occurrences[0][0],
                "timestamps": [span for _, span in occurrences],
            }
        )
    return {"status": "success", "results": results}


def _tokens(words: Sequence[WordDict]) -> list[_Token]:
    """Normalize the words. Redacted, masked and non-word tokens become empty."""
    tokens = []
    for at, word in enumerate(words):
        read = words_of(word["text"]) if not set("#*[") & set(word["text"]) else []
        low = read[0] if len(read) == 1 else ""
        text = word["text"].strip('.,;:?!"()')
        named = at > 0 and text[:1].isupper() and not low.startswith("i'")
        tokens.append(
            _Token(low, stem(low) if low else "", text, named, word["text"].endswith((".", ",", ";", ":", "?", "!")))
        )
    return tokens


def _weights(lines: Sequence[Sequence[_Token]]) -> dict[tuple[str, ...], float]:
    """Return the candidates as tuples of stems, with their weights."""
    counts: Counter[tuple[str, ...]] = Counter()
    within: Counter[str] = Counter()
    rare: dict[str, float] = {}
    for tokens in lines:
        for phrase in _candidates(tokens):
            counts[tuple(token.stem for token in phrase)] += 1
            for token in phrase:
                within[token.stem] += 1
                rare[token.stem] = min(rarity(token.low), rare.get(token.stem, math.inf))
    weights = {}
    for parts, count in counts.items():
        words = sum((rare[part] - 2.5) * (1 + math.log(within[part])) for part in parts)
        alone = 0.5 if len(parts) == 1 else 1.0
        weights[parts] = alone * words / math.sqrt(len(parts)) * (1 + 0.5 * math.log(count))
    return weights


def _candidates(tokens: Sequence[_Token]) -> Iterator[list[_Token]]:
    run: list[_Token] = []
    for at, token in enumerate(tokens):
        if _belongs(token):
            run.append(token)
        after = tokens[at + 1].low if at + 1 < len(tokens) else ""
        if not _belongs(token) or token.closes or at + 1 == len(tokens):
            if len(run) > 1 and not run[-1].closes and _is_verb(run[-1], after if run[-1] is token else token.low):
                run.pop()
            while run and not run[-1].named and nounness(run[-1].low) <= _NOUN:
                run.pop()
            if 0 < len(run) <= _LONGEST:
                yield run
            run = []


def _belongs(token: _Token) -> bool:
    low = token.low
    if len(low) < 3 or any(letter.isdigit() for letter in low):
        return False
    return token.named or (low not in STOPWORDS and rarity(low) > _COMMON and nounness(low) > _BEFORE_NOUN)


def _is_verb(token: _Token, after: str) -> bool:
    """Return True if a word that looks like a plural is a verb: "high blood sugar damages the eyes"."""
    return token.low.endswith("s") and after in _FOLLOWS_VERB


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
