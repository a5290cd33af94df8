"""Labels of passages: topics of the public IAB Content Taxonomy, custom topics, and sensitive subjects.

Topics: a classifier on the sentence encoder gives the first level of the taxonomy, or none, for each passage of 30 s.
The deeper labels are those whose descriptions are closest, and closer than that of the first level. A custom topic is
relevant if its name is close to the passage. Without the encoder, `topics.txt` lists words for about 160 of the 700
labels: the relevance of a label grows with the matching words, and half of it counts for its ancestors. Labels below
the floor are not reported, nor those after the third unless they are clearly relevant. A text of n words gives a
relevance of at most n / (n + 1).

Quality (`python -m tests.benchmarks analyses`): on 71 passages that were written before the method, the first level is
right for 97 %; by lists of words, for 66 %. On 40 passages as people talk, with fillers and cut sentences, the first
topic is right for 39, and 4 without a topic have none. Of the 38 deeper labels of 59 shorter passages, 29 are right.
Nothing is reported for the 6 passages without a topic. Custom topics: F1 0.74 on passages that were made to share words
with other topics, 0.94 on talks by another author.

Sensitive subjects are accidents, alcohol, company_financials, crime_violence, disasters, drugs, gambling, hate_speech,
health_issues, marijuana, negative_news, nsfw, profanity, sensitive_social_issues, terrorism, tobacco and weapons. They
are found by a classifier on the sentence encoder, and `safety.txt`, which lists words for each label and severity. A
word of a list adds to the probability of its label but is not enough alone. Profanity has its own list; hate speech is
also matched by patterns about groups of people. Without the encoder, only the lists count. Labels say what is talked
about, not what is meant.

Quality: 1 % of 104 ordinary texts get a label, most of them written to sound dangerous; 98 % of 43 unsafe texts get
one, 95 % the right one. Of 20 callers and patients with acute symptoms, 18 are health_issues; of 20 texts with the same
words in another sense, none. Weak on irony, quotations and new words.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxframe.encoder import SentenceEncoder
from voxframe_engine.analyses.lexicon import (
    STOPWORDS,
    Classifier,
    Clue,
    Clues,
    ancestors,
    classifier,
    clues,
    find_clues,
    label_vectors,
    stem,
    stems,
    words_of,
)
from voxframe_engine.text import SENTENCE_END, Sentence, joined, passages, spanned
from voxframe_engine.text.formatting import masked

FLOOR = 0.45
_FILE = "topics.txt"
#: Relevance from which a label beyond the third is reported.
CLEAR = 0.8
_MOST, _MOST_CLEAR = 3, 10  # labels of a passage
_STRONG, _WEAK, _UP = 2.5, 1.0, 0.5  # weight of a word that suffices alone, of any other, and share for ancestors
_FULL = 2.5  # evidence at which the relevance is 0.63
_CAPITAL = re.compile(r"[A-Z][a-z]+")
_NONE = "none"  # label of passages without a topic
_PARENT = 0.95  # relevance of a label relative to the deeper label that is reported
_NAMED = 0.4  # cosine to its description at which a deeper label is certain
_WORSE = 0.1  # deeper labels are reported up to this distance from the closest one
_STRANGE, _ABOUT = 0.1, 0.52  # cosines of unrelated texts, and of passages entirely about a custom topic
_SHARED = 0.08  # what words that a passage shares with the name of a custom topic add at most to the cosine
_WORDS = 60  # reference length of a passage; evidence is scaled down in longer ones


def topics(sentences: Sequence[Sentence], encoder: SentenceEncoder | None = None) -> dict[str, Any]:
    """Return the field `iab_categories_result`. Without an encoder, lists of words decide."""
    return _result(sentences, lambda texts: taxonomy_relevances(texts, encoder))


def custom_topics(
    sentences: Sequence[Sentence], topics: Iterable[str], encoder: SentenceEncoder | None = None
) -> dict[str, Any]:
    """Return the field `custom_topics_results`, in the form of `iab_categories_result`."""
    names = list(dict.fromkeys(topics))
    return _result(sentences, lambda texts: custom_relevances(texts, names, encoder))


def taxonomy_relevances(texts: Sequence[str], encoder: SentenceEncoder | None = None) -> list[dict[str, float]]:
    """Return the relevances of the labels of the taxonomy for each text, 0 to 1."""
    if encoder is None or not texts:
        return [relevances(text, clues(_FILE)) for text in texts]
    vectors = encoder.encode(texts)
    levels = classifier("topics")
    labels, described = label_vectors()
    scores = []
    for text, chances, cosines in zip(texts, levels.probabilities(vectors), vectors @ described.T, strict=True):
        score: dict[str, float] = {}
        near = dict(zip(labels, cosines.tolist(), strict=True))
        for level, chance in zip(levels.labels, chances.tolist(), strict=True):
            if level == _NONE:
                continue
            score[level] = max(score.get(level, 0.0), _PARENT * chance**0.5)
            inside = {label: cosine for label, cosine in near.items() if label.startswith(f"{level}>")}
            least = max(near.get(level, 0.0), max(inside.values(), default=0.0) - _WORSE)
            for label, cosine in inside.items():
                if cosine >= least:
                    amount = chance**0.5 * min(1.0, max(0.0, cosine / _NAMED))
                    score[label] = max(score.get(label, 0.0), amount)
                    for upper in ancestors(label):
                        score[upper] = max(score.get(upper, 0.0), _PARENT * amount)
        scores.append(_limited(score, text))
    return scores


def custom_relevances(
    texts: Sequence[str], names: Sequence[str], encoder: SentenceEncoder | None = None
) -> list[dict[str, float]]:
    """Return the relevances of custom topics for each text, 0 to 1."""
    if encoder is None or not texts or not names:
        listed = own_clues(names)
        return [relevances(text, listed) for text in texts]
    vectors = encoder.encode([f"This is about {name}." for name in names])
    cosines = encoder.encode(texts) @ vectors.T
    for column, name in enumerate(names):
        rests = {at: remaining for at, text in enumerate(texts) if (remaining := _without(text, name)) is not None}
        for at, vector in zip(rests, encoder.encode(list(rests.values())), strict=True):
            cosines[at, column] = min(cosines[at, column], vector @ vectors[column] + _SHARED)
    amounts = np.clip((cosines - _STRANGE) / (_ABOUT - _STRANGE), 0, 1)
    return [
        _limited(dict(zip(names, row.tolist(), strict=True)), text) for text, row in zip(texts, amounts, strict=True)
    ]


def _without(text: str, name: str) -> str | None:
    """Return a text without the words that it shares with the name of a topic.

    Returns:
        None if there are no such words, or if a sentence has all words of a name of several, in any order. Then they
        mean the topic; otherwise they may mean anything: "Procter and Gamble" is not about gambling.
    """
    if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, 0 if name.islower() else re.IGNORECASE):
        return None
    shared = {stem(word) for word in words_of(name)} - {stem(word) for word in STOPWORDS}
    sentences = [[(word, stems(word)) for word in sentence.split()] for sentence in SENTENCE_END.split(text)]
    if len(shared) > 1 and any(shared <= {part for _, parts in words for part in parts} for words in sentences):
        return None
    words = [word for sentence in sentences for word in sentence]
    remaining = [word for word, parts in words if shared.isdisjoint(parts)]
    return " ".join(remaining) if len(remaining) < len(words) else None


def _limited(score: Mapping[str, float], text: str) -> dict[str, float]:
    """Limit relevances by the length of the text: one word says little."""
    words = len(text.split())
    return {label: round(min(amount, words / (words + 1)), 5) for label, amount in score.items()}


def relevances(text: str, listed: Clues) -> dict[str, float]:
    """Return the relevance of each label for a text, 0 to 1, without labels that have too little evidence."""
    weight: defaultdict[str, float] = defaultdict(float)
    words: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    sure: set[str] = set()
    times: Counter[tuple[str, ...]] = Counter()
    for key, matching in find_clues(text, listed):
        times[key] += 1
        if times[key] > 2:
            continue  # repetitions add no further evidence
        for clue in matching:
            alone = clue.sign == "!"
            amount = (_STRONG if alone else _WEAK / math.sqrt(len(matching))) / times[key]
            for label, share in ((clue.label, 1.0), *((upper, _UP) for upper in ancestors(clue.label))):
                weight[label] += amount * share
                words[label].add(key)
                if alone:
                    sure.add(label)
    length = math.log(20 + len(text.split())) / math.log(_WORDS)
    score = {
        label: 1 - math.exp(-amount / length / _FULL)
        for label, amount in weight.items()
        if label in sure or len(words[label]) > 1
    }
    return _limited(score, text)


def _result(sentences: Sequence[Sentence], judge: Callable[[Sequence[str]], list[dict[str, float]]]) -> dict[str, Any]:
    spans = [sentences[first : last + 1] for first, last in passages(sentences)]
    texts = [joined(span) for span in spans]
    results: list[dict[str, Any]] = []
    total: defaultdict[str, float] = defaultdict(float)
    for span, text, score in zip(spans, texts, judge(texts), strict=True):
        best = sorted((item for item in score.items() if item[1] >= FLOOR), key=lambda item: -item[1])
        best = best[:_MOST] + [item for item in best[_MOST:_MOST_CLEAR] if item[1] >= CLEAR]
        for label, relevance in best:
            total[label] += relevance
        labels = [{"relevance": relevance, "label": label} for label, relevance in best]
        results.append({"text": text, "labels": labels, "timestamp": spanned(span)})
    greatest = max(total.values(), default=1.0)
    summary = {label: round(total[label] / greatest, 5) for label in sorted(total, key=lambda label: -total[label])}
    return {"status": "success", "results": results, "summary": summary}


def own_clues(names: Iterable[str]) -> Clues:
    """Return the words that indicate custom topics: the topic, its words, and all words of related taxonomy labels."""
    by_word: defaultdict[tuple[str, ...], list[Clue]] = defaultdict(list)
    taxonomy = clues(_FILE)
    for topic in names:
        phrase = stems(topic)
        parts = {(stem(word),) for word in words_of(topic) if word not in STOPWORDS}
        near = {clue.label for key in {phrase, *parts} for clue in taxonomy.get(key, ())}
        near |= {label for label, name in _names(taxonomy).items() if parts & name}
        signs = {key: "" for key, matching in taxonomy.items() if any(clue.label in near for clue in matching)}
        signs |= dict.fromkeys(parts, "")
        signs[phrase] = "!"
        for key, sign in signs.items():
            by_word[key].append(Clue(topic, sign))
    return {key: tuple(matching) for key, matching in by_word.items()}


def _names(listed: Clues) -> dict[str, set[tuple[str, ...]]]:
    """Return the words in the last part of the name of each label."""
    labels = {clue.label for matching in listed.values() for clue in matching}
    return {
        label: {(stem(word.lower()),) for word in _CAPITAL.findall(label.rpartition(">")[2]) if word != "And"}
        for label in labels
    }


_SAFETY_FILE = "safety.txt"
_STRONG_WORD, _WEAK_WORD = 1.6, 0.7  # weight of a word that suffices alone, and of any other
_LISTED = 0.4  # share of the confidence of the lists that adds to a probability
_TOGETHER = 0.8  # share of the probability of all other labels that adds to the most probable one
_SURE = frozenset({"hate_speech", "profanity"})  # whose words are enough alone
_CUT = 0.6  # sum of evidence that is reported with a confidence of one half
_LEVELS = ("low", "medium", "high")

_GROUP = (
    r"(?:immigrants|migrants|foreigners|refugees|muslims|jews|christians|blacks|whites|asians|arabs|mexicans|gypsies|gays"
    r"|homosexuals|women|men|people like (?:them|that)|those people|these people|they)"
)
_VILE = r"(?:animals|vermin|rats|cockroaches|parasites|scum|filth|savages|subhuman|a disease|a plague|monkeys|apes)"
_HATE = re.compile(
    rf"\b{_GROUP} are (?:all |just |nothing but |such )*{_VILE}\b"
    rf"|\bi (?:hate|despise|loathe) (?:all |those |these |the )*(?!they\b){_GROUP}\b"
    rf"|\b{_GROUP} (?:should|must|need to|ought to) (?:all )?be "
    r"(?:wiped out|shot|killed|exterminated|gassed|deported|sterilized|sent to the camps|hanged)\b"
)


def content_safety(
    sentences: Sequence[Sentence], options: Mapping[str, Any] | None = None, encoder: SentenceEncoder | None = None
) -> dict[str, Any]:
    """Return the field `content_safety_labels`, for the option `content_safety_confidence` (percent)."""
    least = ((options or {}).get("content_safety_confidence") or 50) / 100
    results = []
    weights: dict[str, Counter[str]] = defaultdict(Counter)
    free: dict[str, float] = {}
    spans = list(passages(sentences))
    judged = judge([[sentence["text"] for sentence in sentences[first : last + 1]] for first, last in spans], encoder)
    for (first, last), chances in zip(spans, judged, strict=True):
        span = sentences[first : last + 1]
        text = joined(span)
        labels = [label for label in chances if label["confidence"] >= least]
        for label in labels:
            name, level = label["label"], _LEVELS[min(2, int(label["severity"] * 3))]
            weights[name][level] += label["confidence"] * len(text)
            free[name] = free.get(name, 1.0) * (1 - label["confidence"])
        if labels:
            results.append(
                {
                    "text": text,
                    "labels": labels,
                    "sentences_idx_start": first,
                    "sentences_idx_end": last,
                    "timestamp": spanned(span),
                }
            )
    return {
        "status": "success",
        "results": results,
        "summary": {label: round(1 - chance, 5) for label, chance in free.items()},
        "severity_score_summary": {label: _shares(counts) for label, counts in weights.items()},
    }


def judge(texts: Sequence[Sequence[str]], encoder: SentenceEncoder | None = None) -> list[list[dict[str, Any]]]:
    """Return the labels of passages, given as sentences, with confidence and severity (0 to 1), the surest first."""
    if encoder is None:
        return [_by_words(" ".join(parts)) for parts in texts]
    model = classifier("safety")
    no_label = model.labels.index("none")
    joined = [" ".join(parts) for parts in texts]
    flat = [part for parts in texts for part in parts]
    rows = model.probabilities(encoder.encode([*joined, *flat])) if joined else np.zeros((0, 0))
    evidence = [_evidence(text, model, no_label, row) for text, row in zip([*joined, *flat], rows, strict=True)]
    of_parts = iter(evidence[len(joined) :])
    judged = []
    for parts, about in zip(texts, evidence, strict=False):
        closest = [next(of_parts) for _ in parts]
        best = {label: max(scores[label] for scores in closest) for label in about}
        judged.append({label: max(amount, (amount + best[label]) / 2) for label, amount in about.items()})
    return [
        sorted(
            (
                {
                    "label": label,
                    "confidence": round(min(1.0, 0.5 * amount / _CUT), 5),
                    "severity": _severity(label, text),
                }
                for label, amount in labels.items()
            ),
            key=lambda label: -label["confidence"],
        )
        for labels, text in zip(judged, joined, strict=True)
    ]


def _evidence(text: str, model: Classifier, no_label: int, chances: NDArray[np.float64]) -> dict[str, float]:
    """Return the evidence for each label in a text, from the classifier and the lists."""
    labels = {label: float(chance) for label, chance in zip(model.labels, chances, strict=True) if label != "none"}
    first = max(labels, key=labels.__getitem__)
    labels[first] += _TOGETHER * (1 - float(chances[no_label]) - labels[first])
    for listed in _by_words(text):
        name, confidence = listed["label"], listed["confidence"]
        labels[name] = max(labels[name] + _LISTED * confidence, confidence if name in _SURE else 0.0)
    return labels


def _severity(label: str, text: str) -> float:
    """Return the severity by the lists; for a text without a word of the label's lists, its lowest."""
    listed = {clue["label"]: clue["severity"] for clue in _by_words(text, alone=True)}
    lowest = [float(name.split()[1]) for name in _severities() if name.split()[0] == label]
    severity: float = listed.get(label, min(lowest, default=0.5))
    return severity


@cache
def _severities() -> list[str]:
    return sorted({clue.label for matching in clues(_SAFETY_FILE).values() for clue in matching})


def _by_words(text: str, *, alone: bool = False) -> list[dict[str, Any]]:
    """Return the labels of a passage by lists of words. With `alone`, ambiguous words count without others."""
    evidence: dict[str, dict[tuple[str, ...], tuple[str, float]]] = defaultdict(dict)
    for key, matching in find_clues(text, clues(_SAFETY_FILE)):
        for clue in matching:
            label, severity = clue.label.split()
            evidence[label][key] = (clue.sign, float(severity))
    for word in text.split():
        if masked(word) != word or re.search(r"^\w\*+", word):
            evidence["profanity"][word.lower(),] = ("!", 0.6)
    for match in _HATE.finditer(text.lower()):
        evidence["hate_speech"][match[0],] = ("!", 0.95)
    labels = []
    for label, words in evidence.items():
        if not alone and {sign for sign, _ in words.values()} == {"?"} and len(words) < 2:
            continue
        amounts = [(_STRONG_WORD if sign == "!" else _WEAK_WORD, severity) for sign, severity in words.values()]
        amount = sum(weight for weight, _ in amounts)
        labels.append(
            {
                "label": label,
                "confidence": round(1 - math.exp(-amount), 5),
                "severity": round(sum(weight * severity for weight, severity in amounts) / amount, 5),
            }
        )
    return sorted(labels, key=lambda label: -label["confidence"])


def _shares(counts: Counter[str]) -> dict[str, float]:
    total = sum(counts.values())
    return {level: round(counts[level] / total, 5) for level in _LEVELS}
