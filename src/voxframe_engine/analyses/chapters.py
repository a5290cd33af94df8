"""Chapters, which are topic segments with gist, headline and summary, and the summary of a whole transcript.

Chapters: sentences are compared by their words and topics (`rows`), and by meaning if there is an encoder.
Dynamic programming finds the segmentation with the most coherent chapters. Each boundary has a cost, which grows with
the length of the text and is lower if the speaker announces a new subject ("let us talk about money"). In recordings of
five minutes or more, no chapter is shorter than a minute. The gist is the noun phrase that is closest in meaning to the
chapter, the headline up to three, and the summary quotes key sentences. All are empty if the chapter has none.

Quality (`python -m tests.benchmarks analyses`): Pk 0.05 (0 is perfect, chance is 0.5) on 30 texts from talks by another
author, 85 of 89 boundaries found, none wrong; by words alone, Pk 0.19. A talk of 11 minutes about two subjects gets two
chapters. Weak on gradual topic shifts.

Summary, in five types and three models: the text is divided into chapters, so that every subject is covered. In each,
the most representative sentences are quoted. The models differ in the selection: `informative` takes the most
representative ones, `conversational` at least one per speaker, with speaker labels, and what people say of themselves,
`catchy` prefers short and emotional ones. No quoted sentence begins with a reference to an earlier one.

Quality: of the sentences selected in the sections of eight talks, 53 percent are labelled as belonging in a summary (38
in the half used for development, 67 in the other); of first sentences 50, of random sentences 32. On three talks by
another author 52, of first sentences 59. Models and types were not evaluated.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxframe.encoder import SentenceEncoder, Vectors
from voxframe_engine.analyses.key_phrases import Phrase, noun_phrases, weight
from voxframe_engine.analyses.lexicon import STOPWORDS, clues, find_clues, judge, nounness, rarity, stem, words_of
from voxframe_engine.text import Sentence, joined, spanned

Matrix = NDArray[np.float64]

_WEIGHTLESS = 2.5  # words up to this rarity have no weight
_LABEL = 1.5  # weight of a word for the topic that it indicates


def term_weights(text: str) -> dict[str, float]:
    """Return the stems of content words, weighted by frequency times rarity."""
    weights: defaultdict[str, float] = defaultdict(float)
    for word in words_of(text):
        if word not in STOPWORDS and len(word) > 2:
            weights[stem(word)] += max(0.0, rarity(word) - _WEIGHTLESS)
    return weights


def rows(texts: Sequence[str], *, labels: bool = True) -> Matrix:
    """Return one vector per text, of unit length or zero: its terms and, with `labels`, the topics they indicate.

    Topics make sentences similar that share no word: "tomato" and "compost" both indicate gardening.
    """
    described = []
    for text in texts:
        weights = dict(term_weights(text))
        for _, matching in find_clues(text, clues("topics.txt")) if labels else ():
            for clue in matching:
                name = f"#{clue.label.split('>')[0]}"
                amount = _LABEL * (2.0 if clue.sign == "!" else 1 / math.sqrt(len(matching)))
                weights[name] = weights.get(name, 0.0) + amount
        described.append(weights)
    columns = {name: at for at, name in enumerate(dict.fromkeys(name for weights in described for name in weights))}
    matrix = np.zeros((len(texts), max(1, len(columns))))
    for at, weights in enumerate(described):
        for name, amount in weights.items():
            matrix[at, columns[name]] = amount
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: Matrix = matrix / np.where(lengths == 0, 1.0, lengths)
    return unit


_EARLY = 0.6  # bonus of the first sentence, decreasing to 0; the words give up to 1
_FILLED = 0.7  # factor for each filler within a sentence
_OPENING = re.compile(
    r"^(?:(?:and|so|but|well|now|yeah|yes|no(?=,)|okay|ok|right|um|uh|oh|hey|like(?=,)|you know|i mean|i think|"
    r"of course|finally|again|basically|anyway|actually)\b,? )+",
    re.IGNORECASE,
)
_MANNERS = re.compile(
    r"(?:good (?:morning|evening|afternoon|night)|hello|hi|thanks?|welcome|goodbye|bye)\b", re.IGNORECASE
)
#: Words that stand for something said before, if no noun is before them in the sentence.
_REFERS = frozenset(
    """
    it it's its it'll they they're they'd they've they'll them their he he's he'd he'll him his she she's she'd she'll
    her this those these both neither ones such same
    """.split()
)
#: Words that stand for something said before if a sentence begins with them.
_GOES_ON = frozenset(
    "that that's that'd that'll which because then than otherwise therefore instead especially except".split()
)
_FILLER = re.compile(
    r"\b(?:um+|uh+|er+m?|you know|i mean|i don't know|kind of|sort of|or something|or whatever)\b"
    r"|, like\b|\blike,|\b(\w+),? \1\b",
    re.IGNORECASE,
)
_LEAST_WORDS = 4  # words
#: Words that cannot end a sentence: it was cut.
_HANGING = frozenset("the a an my your our their and or but because if than whether although as of".split())
_SAME = 0.6  # cosine above which two sentences are near-duplicates


def stands_alone(text: str) -> bool:
    """Return True for a whole statement that needs nothing of what came before it."""
    quote = quoted(text)
    words = words_of(quote)
    if quote.endswith("?") or not is_whole(quote):
        return False
    refers = next((at for at, word in enumerate(words) if word in _REFERS), len(words))
    named = next((at for at, word in enumerate(words) if word not in STOPWORDS and nounness(word) > 0), len(words))
    return named < refers and words[0] not in _GOES_ON and not _FILLER.match(quote)


def is_whole(text: str) -> bool:
    """Return True for a sentence of several words, without fillers, that was not cut off."""
    words = words_of(_FILLER.sub("", text))
    ends = text.endswith((".", "?", "!")) and not text.endswith("..")
    return ends and len(words) >= _LEAST_WORDS and words[-1] not in _HANGING


def scores(texts: Sequence[str]) -> list[float]:
    """Score how representative each sentence is of all of them, lowered for sentences that are hard to quote."""
    weights = term_weights(joined([{"text": text} for text in texts]))
    values = []
    for text in texts:
        length = max(1, len(words_of(text)))
        value = sum(weights.get(term, 0.0) ** 0.5 for term in term_weights(text)) / length**0.5
        value *= 0.5 if length < 5 or _MANNERS.match(text) else 1.0
        value *= _FILLED ** len(_FILLER.findall(quoted(text)))
        values.append(value)
    greatest = max(values, default=0.0) or 1.0
    return [value / greatest + _EARLY * (1 - at / len(values)) for at, value in enumerate(values)]


def choose(texts: Sequence[str], count: int, values: Sequence[float] | None = None) -> list[int]:
    """Return the indexes of the sentences to quote, in order: those that stand alone, without near-duplicates."""
    ranking = scores(texts) if values is None else values
    selected: list[int] = []
    for at in sorted(filter(lambda at: stands_alone(texts[at]), range(len(texts))), key=lambda at: -ranking[at]):
        if len(selected) == count:
            break
        vector, *neighbours = rows([texts[n] for n in (at, *selected)], labels=False)
        if all(vector @ other < _SAME for other in neighbours):
            selected.append(at)
    return sorted(selected)


def quoted(text: str) -> str:
    """Return a sentence without its opening filler words."""
    remaining = _OPENING.sub("", text.replace("so, well,", "so well,"))
    remaining = remaining or text
    return remaining[:1].upper() + remaining[1:]


_SHORTEST = 4  # sentences
_LONG_MS, _LEAST_MS = 300_000, 60_000  # chapters of recordings this long have at least this duration
_PRICE = 1.8  # cost of a boundary in a short text
_WORDS_PRICE = 0.3  # the same without an encoder
_SHORT = 30  # sentences; in longer texts the cost grows with the root of the length
_STEEPEST = 3.0  # times _SHORT, from where the cost does not grow any more
_ANNOUNCED = 0.5  # discount of an announced boundary
_WORDS = 0.5  # weight of common words beside common meaning
_AROUND = 0.5  # share of the neighbours in the vector of a sentence
_OFTEN, _SPECIFIC = 0.08, 0.05  # added to the cosine of a phrase that is repeated, or has several words
_FAR = 0.25  # a phrase with a lower cosine to a chapter does not name its subject
_MOST_NAMED = 3  # phrases of a headline
_COMMON = 0.8  # share of the mean of all sentences that is removed, so that unrelated sentences have a cosine of 0
_MOST_UNITS = 1200  # longer texts are grouped by two or more sentences, because the work grows with the square
_MOST_BULLETS, _MOST_QUOTED = 8, 7  # parts of a bulleted summary; sentences of a paragraph
_TOLD = 1.3  # factor for sentences about the speaker or the listener
_FIRST_PERSON = re.compile(r"\b(?:i|we|you|my|our|your)\b", re.IGNORECASE)
_LIVELY_WORDS = 14  # longest lively sentence
_ANNOUNCES = re.compile(
    r"^(?:(?:and|so|but|well|now|okay|right|then),? )*(?:let us|let's|we will|we'll|i want to|i'd like to) (?:now )?"
    r"(?:talk about|turn to|move on|move to|come to|speak about|start with|switch to)\b"
    r"|^(?:moving on|turning to|next up|(?:the|our) next (?:question|topic|point|guest)|another (?:question|topic))\b",
    re.IGNORECASE,
)


def chapters(sentences: Sequence[Sentence], encoder: SentenceEncoder | None = None) -> list[dict[str, Any]]:
    """Return the field `chapters`: in order, they cover all sentences. Without an encoder, only words are compared.

    Gist and headline are empty for a chapter without a noun phrase that says what it is about, and the summary is empty
    for one without a sentence that can be quoted.
    """
    texts = [sentence["text"] for sentence in sentences]
    raw = encoder.encode(texts) if encoder and texts else None
    vectors = None if raw is None else _contrasted(raw)
    phrases = _phrases(sentences, encoder)
    starts = [sentence["start"] for sentence in sentences]
    end = max((sentence["end"] for sentence in sentences), default=0)
    bounds = [0, *_boundaries(texts, vectors, [*starts, end]), len(sentences)]
    result = []
    for first, last in pairwise(bounds):
        quotable = texts[first:last]
        if not quotable:
            continue
        values = scores(quotable)
        if vectors is not None:
            part = vectors[first:last]
            values = [value + float(bonus) for value, bonus in zip(values, part @ part.mean(axis=0), strict=True)]
        quotes = choose(quotable, min(4, 1 + len(quotable) // 4), values)
        about = subjects(phrases[first:last], None if raw is None else raw[first:last], encoder)
        result.append(
            {
                "summary": " ".join(quoted(quotable[at]) for at in quotes),
                "gist": listed(about[:1]),
                "headline": listed(about[:_MOST_NAMED]),
                **spanned(sentences[first:last]),
            }
        )
    return result


def boundaries(texts: Sequence[str], encoder: SentenceEncoder | None = None) -> list[int]:
    """Return the indexes of the sentences that start a new chapter, except the first sentence."""
    vectors = _contrasted(encoder.encode(texts)) if encoder and texts else None
    return _boundaries(texts, vectors, [0] * (len(texts) + 1))


def _phrases(sentences: Sequence[Sentence], encoder: SentenceEncoder | None) -> list[list[Phrase]]:
    """Return the noun phrases of each sentence; none of an exclamation, an answer of a few words, or a cut sentence."""
    lines = noun_phrases(sentences, encoder)
    return [line if is_whole(sentence["text"]) else [] for line, sentence in zip(lines, sentences, strict=True)]


def subjects(
    lines: Sequence[Sequence[Phrase]], vectors: Vectors | None = None, encoder: SentenceEncoder | None = None
) -> list[str]:
    """Return the noun phrases that say what sentences are about, the best first, without a word in common.

    Args:
        vectors: Vectors of the sentences. The phrases closest in meaning to all of them come first. None: the most
            frequent ones that have rare words.
    """
    counts = Counter(phrase.stems for line in lines for phrase in line)
    texts = {phrase.stems: phrase.text for line in reversed(lines) for phrase in reversed(line)}
    if vectors is None or encoder is None or not texts:
        values = {
            stems: weight([rarity(word.lower()) for word in text.split()], counts[stems])
            for stems, text in texts.items()
        }
    else:
        centre = vectors.mean(axis=0)
        closeness = encoder.encode(list(texts.values())) @ (centre / np.linalg.norm(centre))
        near = {stems: float(value) for stems, value in zip(texts, closeness, strict=True)}
        values = {
            stems: value + _OFTEN * math.log(counts[stems]) + _SPECIFIC * (len(stems) > 1)
            for stems, value in near.items()
            if value >= _FAR
        }
    selected: list[tuple[str, ...]] = []
    for stems in sorted(values, key=lambda stems: -values[stems]):
        if not any(
            stem.startswith(two) or two.startswith(stem) for other in selected for stem in stems for two in other
        ):
            selected.append(stems)
    return [texts[stems] for stems in selected]


def listed(phrases: Sequence[str]) -> str:
    """Return phrases as one phrase: "Roof tiles, rain and moss"."""
    text = ", ".join(phrases[:-1]) + " and " * (len(phrases) > 1) + "".join(phrases[-1:])
    return text[:1].upper() + text[1:]


def _contrasted(vectors: Vectors) -> Vectors:
    """Return vectors of sentences among their neighbours, without what all sentences have in common."""
    mixed = vectors.copy()
    mixed[1:] += _AROUND * vectors[:-1]
    mixed[:-1] += _AROUND * vectors[1:]
    mixed -= _COMMON * mixed.mean(axis=0)
    unit: Vectors = mixed / np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), 1e-9)
    return unit


def _boundaries(texts: Sequence[str], vectors: Vectors | None, times: Sequence[int]) -> list[int]:
    size = -(-len(texts) // _MOST_UNITS) or 1
    units = [" ".join(texts[at : at + size]) for at in range(0, len(texts), size)]
    words = rows(units)
    alike = words @ words.T
    if vectors is not None:
        means = np.stack([vectors[at : at + size].mean(axis=0) for at in range(0, len(texts), size)])
        alike = _WORDS * alike + means @ means.T
    np.fill_diagonal(alike, 0.0)
    price = _WORDS_PRICE if vectors is None else _PRICE * min(max(1.0, len(units) / _SHORT), _STEEPEST) ** 0.5
    prices = np.array([price - _ANNOUNCED * bool(_ANNOUNCES.search(unit)) for unit in units])
    starts = np.array([*times[:-1:size], times[-1]])
    least = _LEAST_MS if starts[-1] - starts[0] >= _LONG_MS else 0
    return [at * size for at in _cut(alike, prices, starts, least)]


def _cut(alike: Matrix, prices: Matrix, times: NDArray[np.int64], least: int) -> list[int]:
    """Find the best boundaries by dynamic programming over the start of the last chapter.

    The value of a chapter is the mean, over its sentences, of the sum of their similarities to all others in it.
    """
    count = len(alike)
    sums = np.zeros((count + 1, count + 1))
    sums[1:, 1:] = alike.cumsum(axis=0).cumsum(axis=1)
    corners = sums.diagonal()
    best = np.full(count + 1, -np.inf)
    best[0] = 0.0
    before = np.zeros(count + 1, np.int64)
    for end in range(1, count + 1):
        starts = np.flatnonzero(times[end] - times[: max(0, end - _SHORTEST + 1)] >= least)
        if len(starts):
            lengths = end - starts
            inside = corners[end] - 2 * sums[starts, end] + corners[starts]
            values = best[starts] + inside / lengths - prices[starts]
            before[end] = starts[np.argmax(values)]
            best[end] = values.max()
    cuts, end = [], count
    while end > 0:
        end = int(before[end])
        cuts.append(end)
    return [cut for cut in reversed(cuts) if cut]


def summary(
    sentences: Sequence[Sentence],
    options: Mapping[str, Any] | None = None,
    encoder: SentenceEncoder | None = None,
) -> str:
    """Return the field `summary`, for the options `summary_type` and `summary_model`."""
    if not sentences:
        return ""
    kind = (options or {}).get("summary_type") or "bullets"
    model = (options or {}).get("summary_model") or "informative"
    if kind == "gist" or (kind == "headline" and model == "informative"):
        about = _named(sentences, kind, model, encoder)
        if about:
            return about
    if kind in ("gist", "headline"):
        return _quotes(sentences, 1, model)[0].rstrip(".")
    if kind == "paragraph":
        return " ".join(_quotes(sentences, min(_MOST_QUOTED, 2 + len(sentences) // 12), model))
    each = 1 if kind == "bullets" else 3
    quotes = [_quotes(part, each, model, least=0) for part in _parts(sentences, encoder)]
    return "\n".join(f"- {' '.join(lines)}" for lines in quotes if lines) or f"- {_quotes(sentences, 1, model)[0]}"


def _named(sentences: Sequence[Sentence], kind: str, model: str, encoder: SentenceEncoder | None) -> str:
    """Return noun phrases as gist or headline; empty if there are none.

    The informative gist names one subject, the catchy one the two best, the conversational one that of each speaker.
    """
    phrases = _phrases(sentences, encoder)
    vectors = encoder.encode([sentence["text"] for sentence in sentences]) if encoder else None

    def about(places: Sequence[int]) -> list[str]:
        return subjects([phrases[at] for at in places], None if vectors is None else vectors[places], encoder)

    every = about(range(len(sentences)))
    if kind == "headline":
        return listed(every[:_MOST_NAMED])
    if model == "catchy":
        return listed(every[:2])
    speakers = {sentence.get("speaker"): None for sentence in sentences} if model == "conversational" else {}
    named = {
        speaker: about([at for at, sentence in enumerate(sentences) if sentence.get("speaker") == speaker])[:1]
        for speaker in speakers
        if speaker is not None
    }
    each = [f"{speaker}: {listed(phrase)}" for speaker, phrase in named.items() if phrase]
    return "; ".join(each) or listed(every[:1])


def _parts(sentences: Sequence[Sentence], encoder: SentenceEncoder | None) -> list[Sequence[Sentence]]:
    """Divide into chapters, or into equal parts if there is only one subject; at most `_MOST_BULLETS` parts."""
    cuts = [0, *boundaries([sentence["text"] for sentence in sentences], encoder), len(sentences)]
    least = min(3, len(sentences) // 4) or 1
    while len(cuts) - 1 < least:  # halve the longest
        at = max(range(len(cuts) - 1), key=lambda n: cuts[n + 1] - cuts[n])
        cuts.insert(at + 1, (cuts[at] + cuts[at + 1]) // 2)
    while len(cuts) - 1 > _MOST_BULLETS:  # join the shortest to the one after it
        at = min(range(1, len(cuts) - 1), key=lambda n: cuts[n + 1] - cuts[n - 1])
        del cuts[at]
    return [sentences[first:last] for first, last in pairwise(cuts)]


def _quotes(sentences: Sequence[Sentence], count: int, model: str, least: int = 1) -> list[str]:
    """Return the sentences to quote, in order. At least `least`, if need be one that does not stand alone."""
    texts = [sentence["text"] for sentence in sentences]
    values = scores(texts)
    ranking = _VALUES[model](sentences, values) if model in _VALUES else values
    indexes = choose(texts, count, ranking) or sorted(range(len(texts)), key=lambda at: -ranking[at])[:least]
    return [_said(sentences[at], model) for at in indexes]


def _said(sentence: Sentence, model: str) -> str:
    text = quoted(sentence["text"])
    return f"{sentence['speaker']}: {text}" if model == "conversational" and sentence.get("speaker") else text


def _conversational(sentences: Sequence[Sentence], values: list[float]) -> list[float]:
    """Raise the score of what people say of themselves, and double that of the best sentence of each speaker."""
    values = [
        value * (_TOLD if _FIRST_PERSON.search(sentence["text"]) else 1.0)
        for sentence, value in zip(sentences, values, strict=True)
    ]
    best: dict[Any, int] = {}
    for at, sentence in enumerate(sentences):
        speaker = sentence.get("speaker")
        if speaker not in best or values[at] > values[best[speaker]]:
            best[speaker] = at
    return [value * 2 if at in best.values() else value for at, value in enumerate(values)]


def _catchy(sentences: Sequence[Sentence], values: list[float]) -> list[float]:
    """Raise the score of short and emotional sentences."""
    lively = []
    for sentence, value in zip(sentences, values, strict=True):
        ((label, confidence),) = judge([sentence["text"]])
        short = 1.5 if len(words_of(sentence["text"])) <= _LIVELY_WORDS else 0.6
        lively.append(value * short * (1 + confidence if label != "NEUTRAL" else 1.0))
    return lively


_VALUES: dict[str, Callable[[Sequence[Sentence], list[float]], list[float]]] = {
    "conversational": _conversational,
    "catchy": _catchy,
}
