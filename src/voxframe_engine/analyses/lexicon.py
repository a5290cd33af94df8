"""English words, lists of words that indicate labels, classifiers on the vectors of `voxframe.encoder`, and sentiment.

Rarity and part of speech come from a list of 27,000 words, computed from the English language model of CMU Sphinx.
Nouns and verbs are told apart by how often a word follows "the" and "a", and how often "to" and "they".

A classifier is a multinomial logistic regression, fitted on sentences that were written for this project. The weights
are in `weights.npz`; `python -m tests.benchmarks train` writes them from the sentences in
tests/engine/analyses/labelled.

The sentiment of a sentence is that of a classifier on its vector and the score of VADER (vaderSentiment), a lexicon of
rated words with rules for negation and emphasis. `confidence` is the probability of the sentiment. Without the encoder:
VADER alone, and the distance of its score from the threshold instead of a probability.

Quality of the sentiment (`python -m tests.benchmarks analyses`): 90 % of 129 sentences of calls, podcasts, meetings and
interviews right, 86 % of 78 other spoken sentences; 95 % of 104 pieces of small talk are neutral, because most training
sentences are short answers, greetings, questions and cut sentences. All were written in this project, before the
training sentences. VADER alone: 63 % of the 78. Weak on irony, on complaints without a word of feeling ("it has been
down since Sunday"), and on recognition errors.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from snowballstemmer import stemmer

from voxframe._text import FUNCTION_WORDS
from voxframe.encoder import SentenceEncoder, Vectors
from voxframe_engine.text import Sentence

#: Function words, and common words of conversation.
STOPWORDS = FUNCTION_WORDS | frozenset(
    """
    above actually afterwards against ago almost alone along already although always among another anybody anyone
    anything anyway around aside ask asked away became become behind below beside besides best better between beyond
    big billion bit bye call called cannot couple day days definitely different dot during eight eighteen eighty
    either eleven else enough etc ever everybody everyone everything exactly example far few fewer fifteen fifty
    fine first five former forty four fourteen further gave given gives gonna goodbye great guess guy guys half
    happen happened happens hear heard hello hers herself hey hi himself hour hours however huge hundred idea
    important indeed inside instead itself keep kept knew known last lately later latter least left less lets likely
    long longer looked looking lots made mainly makes making matter means million mine minute minutes moment month
    months morning mostly mr mrs myself name near nearly need needs neither new next nice nine nineteen ninety
    nobody none nor nothing nowhere number often old once ones onto open others ours ourselves outside part
    particular past per perhaps person place plenty point pretty probably question saw saying says second seem
    seemed seems seen seven seventeen seventy several show since six sixteen sixty small somebody someone sometimes
    somewhere soon sorry stuff taken takes taking talk talked talking tell tells ten theirs themselves therefore
    thinking thirteen thirty thought thousand three throughout time times today together told tomorrow tonight took
    toward towards true try trying turn turned twelve twenty twice under until upon using usually via wanna wanted
    wants ways week weeks welcome whatever whenever whether whoever whole whom whose wish within without wonderful
    word words wow wrong year years yesterday yourself yourselves
    aren't can't couldn't didn't doesn't don't hasn't haven't he's isn't it's i'd i'll i'm i've let's she's
    shouldn't that's there's they'll they're they've wasn't weren't we'd we'll we're we've what's won't wouldn't
    you'd you'll you're you've
    """.split()
)
_UNKNOWN = 6.3  # rarity of words that are not listed; those that are have less
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_REDACTED = re.compile(r"\[[A-Z]+(?:_[A-Z]+)*\]")  # placeholder of a redacted entity
_stem = stemmer("english")


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation.

    Example:
        >>> words_of("Well-known: it's 42! Since [DATE].")
        ['well-known', "it's", '42', 'since']
    """
    return [word.replace("\u2019", "'") for word in _WORD.findall(without_redacted(text).lower())]


def without_redacted(text: str) -> str:
    """Remove the placeholders of redacted entities: a "[DATE_OF_BIRTH]" is not about dates."""
    return _REDACTED.sub("", text)


@cache
def stem(word: str) -> str:
    """Return the stem of a word."""
    return str(_stem.stemWord(word.removesuffix("'s")))


def content(text: str) -> list[str]:
    """Return the stems of the content words of a text."""
    return [stem(word) for word in words_of(text) if word not in STOPWORDS and len(word) > 2]


def rarity(word: str) -> float:
    """Return -log10 of the frequency of a word in English: 1.4 for "the", 5.3 for "telescope"."""
    return _listed()[word][0] if word in _listed() else _UNKNOWN


def is_common(word: str) -> bool:
    """Return True for a word that is listed."""
    return word in _listed()


def nounness(word: str) -> float:
    """Return a positive value for words that are mostly nouns or noun modifiers, a negative one for verbs and adverbs.

    Example:
        >>> nounness("garden") > 0.5, nounness("walked") < -0.5, nounness("quickly") < -0.5
        (True, True, True)
    """
    return _listed()[word][1] if word in _listed() else -1.0 if word.endswith("ly") else 1.0


@cache
def _listed() -> dict[str, tuple[float, float]]:
    """Return rarity and nounness of the listed words."""
    text = gzip.decompress(files(__package__).joinpath("english_words.txt.gz").read_bytes()).decode()
    rows = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return {word: (float(rare), float(noun)) for word, rare, noun in rows}


class Clue(NamedTuple):
    """A word or phrase that indicates a label.

    Attributes:
        label: Text before the colon in the file: the label, and for content safety its severity.
        sign: "!" if one occurrence suffices, "?" if it counts only beside other words, else empty.
    """

    label: str
    sign: str


_LONGEST = 3  # words of a clue
#: Clues by their stems.
Clues = Mapping[tuple[str, ...], tuple[Clue, ...]]


@cache
def clues(file: str) -> Clues:
    """Read a file with lines of the form `label: word, !word, ?word phrase`."""
    by_word: dict[tuple[str, ...], tuple[Clue, ...]] = {}
    for line in files(__package__).joinpath(file).read_text("utf-8").splitlines():
        label, colon, listed = line.partition(": ")
        if line.startswith("#") or not colon:
            continue
        for entry in listed.split(","):
            term = entry.strip()
            sign = term[0] if term[0] in "!?" else ""
            key = stems(term.removeprefix(sign))
            by_word[key] = (*by_word.get(key, ()), Clue(label, sign))
    return by_word


def stems(text: str) -> tuple[str, ...]:
    """Return the stems of all words of a text."""
    return tuple(stem(word) for word in words_of(text))


def find_clues(text: str, listed: Clues) -> Iterator[tuple[tuple[str, ...], tuple[Clue, ...]]]:
    """Yield every match in a text, the longest at each position, repeated matches included."""
    parts = stems(text)
    at = 0
    while at < len(parts):
        for length in range(min(_LONGEST, len(parts) - at), 0, -1):
            key = parts[at : at + length]
            if key in listed:
                yield key, listed[key]
                at += length - 1
                break
        at += 1


def ancestors(label: str) -> Iterable[str]:
    """Return the ancestors of a hierarchical label: "Sports" of "Sports>Soccer"."""
    levels = label.split(">")
    return (">".join(levels[:depth]) for depth in range(1, len(levels)))


#: Constant column beside the vectors.
BIAS = 0.3
#: Mean length of the vectors of words: classifiers of words are trained with vectors divided by it.
WORD_SCALE = 7.4
_FILE = "weights.npz"


class Classifier(NamedTuple):
    """A classifier of sentence vectors.

    Attributes:
        weights: One row per column of the vectors and one for the constant; one column per label.
    """

    labels: Sequence[str]
    weights: NDArray[Any]

    def probabilities(self, vectors: Vectors) -> NDArray[np.float64]:
        """Return the probability of each label, one row per vector."""
        scores = vectors.astype(np.float64) @ self.weights[:-1] + BIAS * self.weights[-1]
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: NDArray[np.float64] = odds / odds.sum(axis=1, keepdims=True)
        return shares


@cache
def classifier(name: str) -> Classifier:
    """Return a classifier: "topics", "sentiment", "safety", "parts" (of speech) or "names"."""
    stored = _stored()
    return Classifier([str(label) for label in stored[f"{name}_labels"]], stored[name].astype(np.float64))


@cache
def label_vectors() -> tuple[Sequence[str], Vectors]:
    """Return the labels of the taxonomy, and one vector per label."""
    stored = _stored()
    return [str(label) for label in stored["taxonomy_labels"]], stored["taxonomy"].astype(np.float32)


@cache
def _stored() -> Mapping[str, NDArray[Any]]:
    with np.load(io.BytesIO(files(__package__).joinpath(_FILE).read_bytes())) as archive:
        return dict(archive)


_POSITIVE, _NEGATIVE = 0.3, -0.05
_WORDS = 0.3  # scale of the score by rated words beside the vectors, by cross-validation


def sentiment(sentences: Sequence[Sentence], encoder: SentenceEncoder | None = None) -> list[dict[str, Any]]:
    """Return the field `sentiment_analysis_results`. Without an encoder, rated words decide."""
    results = []
    judged = judge([sentence["text"] for sentence in sentences], encoder)
    for sentence, (label, confidence) in zip(sentences, judged, strict=True):
        result = {
            "text": sentence["text"],
            "start": sentence["start"],
            "end": sentence["end"],
            "sentiment": label,
            "confidence": confidence,
            "speaker": sentence.get("speaker"),
        }
        results.append({**result, "channel": sentence["channel"]} if "channel" in sentence else result)
    return results


def judge(texts: Sequence[str], encoder: SentenceEncoder | None = None) -> list[tuple[str, float]]:
    """Return the sentiment of each text and its confidence, 0 to 1."""
    if encoder is None:
        return [_by_words(text) for text in texts]
    model = classifier("sentiment")
    chances = model.probabilities(features(texts, encoder))
    return [(model.labels[int(row.argmax())], round(float(row.max()), 5)) for row in chances]


def features(texts: Sequence[str], encoder: SentenceEncoder) -> Vectors:
    """Return the input of the classifier: the vector of each text, and its score by rated words as the last column."""
    scores = np.array([_score(text) for text in texts], np.float32).reshape(-1, 1)
    return np.hstack([encoder.encode([without_redacted(text) for text in texts]), _WORDS * scores])


def _by_words(text: str) -> tuple[str, float]:
    score = _score(text)
    if score >= _POSITIVE:
        return "POSITIVE", _share(score - _POSITIVE, 1 - _POSITIVE)
    if score <= _NEGATIVE:
        return "NEGATIVE", _share(_NEGATIVE - score, 1 + _NEGATIVE)
    return "NEUTRAL", _share(min(_POSITIVE - score, score - _NEGATIVE), (_POSITIVE - _NEGATIVE) / 2)


def _score(text: str) -> float:
    score: float = _analyser().polarity_scores(without_redacted(text))["compound"]
    return score


def _share(distance: float, greatest: float) -> float:
    return round(0.5 + 0.5 * min(1.0, distance / greatest), 5)


@cache
def _analyser() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()
