"""Content safety: passages about sensitive subjects, with confidence and severity.

Labels: accidents, alcohol, company_financials, crime_violence, disasters, drugs, gambling, hate_speech, health_issues,
marijuana, negative_news, nsfw, profanity, sensitive_social_issues, terrorism, tobacco, weapons.

Method: a classifier on the sentence encoder, and `safety.txt`, which lists words for each label and severity. A word of
a list adds to the probability of its label but is not enough alone. Profanity has its own list; hate speech is also
matched by patterns about groups of people. Without the encoder, only the lists count. Labels say what is talked about,
not what is meant.

Quality (`python -m tests.benchmarks analyses`): 1 % of 104 ordinary texts get a label, most of them written to sound
dangerous; 98 % of 43 unsafe texts get one, 95 % the right one. Of 20 callers and patients with acute symptoms, 18 are
health_issues; of 20 texts with the same words in another sense, none. Weak on irony, quotations and new words.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxframe.encoder import SentenceEncoder
from voxframe_engine.analyses.lexicon_scoring import Classifier, classifier, clues, find_clues
from voxframe_engine.text.formatting import masked
from voxframe_engine.text.sentences import Sentence, joined, passages, spanned

_FILE = "safety.txt"
_STRONG, _WEAK = 1.6, 0.7  # weight of a word that suffices alone, and of any other
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
    lowest = [float(name.split()[1]) for name in _names() if name.split()[0] == label]
    severity: float = listed.get(label, min(lowest, default=0.5))
    return severity


@cache
def _names() -> list[str]:
    return sorted({clue.label for matching in clues(_FILE).values() for clue in matching})


def _by_words(text: str, *, alone: bool = False) -> list[dict[str, Any]]:
    """Return the labels of a passage by lists of words. With `alone`, ambiguous words count without others."""
    evidence: dict[str, dict[tuple[str, ...], tuple[str, float]]] = defaultdict(dict)
    for key, matching in find_clues(text, clues(_FILE)):
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
        amounts = [(_STRONG if sign == "!" else _WEAK, severity) for sign, severity in words.values()]
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
