"""Content safety: passages that speak of what some would not want to hear, with confidence and severity.

Labels: accidents, alcohol, company_financials, crime_violence, disasters, drugs, gambling, hate_speech, health_issues,
marijuana, negative_news, nsfw, profanity, sensitive_social_issues, terrorism, tobacco, weapons.

Method: `safety.txt` lists words for each label with the severity of what they speak of. Confidence grows with the
words in a passage of half a minute; ambiguous ones ("shot", "fire") count only beside another of the label. Profanity
is known by its own list, hate speech by what is said of a group of people. It marks what is talked about, not what is
meant by it.

Quality: precision 0.96 and recall 1.00 on 30 held-out passages, by the hand that wrote the lists; 0.93 and 0.68 on 27
of another hand; a hosted service's label was among these for 6 of 9 passages of a real interview. Weak at: what is
said without the words for it, irony, quotation, and new words.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from voxframe.local import profanity
from voxframe.local.analyses.evidence import clues, heard
from voxframe.local.analyses.passages import Sentence, joined, passages, spanned

_FILE = "safety.txt"
_STRONG, _WEAK = 1.6, 0.7  # what a word that is enough alone counts, and another
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


def content_safety(sentences: Sequence[Sentence], options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """`content_safety_labels` of the wire.

    Args:
        sentences: Of the transcript.
        options: The request's options; `content_safety_confidence`, in percent, is read.
    """
    least = ((options or {}).get("content_safety_confidence") or 50) / 100
    results = []
    weights: dict[str, Counter[str]] = defaultdict(Counter)
    free: dict[str, float] = {}
    for first, last in passages(sentences):
        span = sentences[first : last + 1]
        text = joined(span)
        labels = [label for label in judge(text) if label["confidence"] >= least]
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


def judge(text: str) -> list[dict[str, Any]]:
    """Labels of a passage, each with its confidence and severity, both 0 to 1; the surest first."""
    evidence: dict[str, dict[tuple[str, ...], tuple[str, float]]] = defaultdict(dict)
    for key, speaking in heard(text, clues(_FILE)):
        for clue in speaking:
            label, severity = clue.label.split()
            evidence[label][key] = (clue.sign, float(severity))
    for word in text.split():
        if profanity.masked(word) != word or re.search(r"^\w\*+", word):
            evidence["profanity"][word.lower(),] = ("!", 0.6)
    for match in _HATE.finditer(text.lower()):
        evidence["hate_speech"][match[0],] = ("!", 0.95)
    labels = []
    for label, words in evidence.items():
        if {sign for sign, _ in words.values()} == {"?"} and len(words) < 2:
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
