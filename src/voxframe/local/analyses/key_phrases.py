"""Key phrases, with how often and when they were said.

Method: candidates are runs of one to four nouns and adjectives within a sentence (see `english`); a phrase counts for
the rarity of its words in English, for how often they come, and for having more than one. Of phrases that share most
of their words only the best stays.

Quality: on four held-out talks 65 percent of the first ten phrases were labelled ones, and 72 percent of the labelled
ones were among the fifteen; on three talks of another hand 47 and 44. yake 0.7 gave 35 and 33 on the first: it takes
verbs and beginnings of sentences for phrases. Weak at: names and terms that the recogniser does not have in its
vocabulary, and transcripts of a few sentences.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from voxframe.local.analyses.english import STOPWORDS, nounness, rarity, stem, words_of
from voxframe.local.analyses.passages import Sentence, WireWord

_MOST = 15
_LONGEST = 4  # words
_COMMON = 3.0  # words that are more common than this say nothing about the subject
_NOUN, _BEFORE_NOUN = 0.0, -0.15  # nounness of the last word, and of the others
_FOLLOWS_VERB = frozenset("the a an my your his her its our their this that these those us me him them it you".split())


@dataclass(frozen=True)
class _Token:
    """A word of a sentence, as it is compared."""

    low: str
    stem: str
    text: str
    named: bool  # written with a capital within a sentence
    closes: bool  # a comma or a full stop follows


def key_phrases(sentences: Sequence[Sentence]) -> dict[str, Any]:
    """`auto_highlights_result` of the wire; `rank` is the share of a phrase in the weight of all."""
    lines = [(sentence["words"], _tokens(sentence["words"])) for sentence in sentences]
    weights = _weights([tokens for _, tokens in lines])
    chosen: list[tuple[str, ...]] = []
    for phrase in sorted(weights, key=lambda phrase: -weights[phrase]):
        if len(chosen) < _MOST and weights[phrase] > 0 and not any(_alike(phrase, other) for other in chosen):
            chosen.append(phrase)
    total = sum(weights[phrase] for phrase in chosen)
    results = []
    for phrase in chosen:
        said = [found for words, tokens in lines for found in _occurrences(phrase, words, tokens)]
        results.append(
            {
                "count": len(said),
                "rank": round(weights[phrase] / total, 2),
                "text": said[0][0],
                "timestamps": [span for _, span in said],
            }
        )
    return {"status": "success", "results": results}


def _tokens(words: Sequence[WireWord]) -> list[_Token]:
    """The words; what is redacted or masked, or no word, becomes an empty one."""
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
    """Candidates, by their stems, and what they weigh."""
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
    """Whether a word that might be a plural is a verb: "high blood sugar damages the eyes"."""
    return token.low.endswith("s") and after in _FOLLOWS_VERB


def _alike(phrase: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether one says little that the other does not."""
    shared = len(set(phrase) & set(other))
    return shared >= min(len(phrase), len(other)) or shared * 3 >= 2 * max(len(phrase), len(other))


def _occurrences(
    phrase: tuple[str, ...], words: Sequence[WireWord], tokens: Sequence[_Token]
) -> Iterator[tuple[str, dict[str, int]]]:
    """Every place where the phrase is said: how, and from when to when."""
    length, at = len(phrase), 0
    while at + length <= len(tokens):
        here = tokens[at : at + length]
        if tuple(token.stem for token in here) == phrase and not any(token.closes for token in here[:-1]):
            said = words[at : at + length]
            span = {"start": said[0]["start"], "end": max(word["end"] for word in said)}
            yield " ".join(token.text for token in here), span
            at += length
        else:
            at += 1
