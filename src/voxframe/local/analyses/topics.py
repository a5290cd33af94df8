"""Topics of passages, over labels of the public IAB Content Taxonomy; and topics of one's own.

Method: `topics.txt` lists words for some 160 labels of the taxonomy's 700. A label's relevance in a passage of half a
minute grows with the words that speak for it; half of it counts for the labels above it. A label needs two different
words, or one that is enough alone, and less than the floor is not reported. Where the `semantic` extra is set up
(`semantic`), sentence embeddings take the place of the words.

Quality: the first label right for all 29 held-out passages, which were written by the hand that wrote the lists, and so
say little. On 30 passages of another hand the first label was right for 25, its first level for 26; of a hosted
service's first labels for 11 passages of an interview, 6 were among these. Topics of one's own: F1 0.92 and, of another
hand, 0.82. Embeddings were not measured here. Weak at: subjects whose words are not in the list, where it reports
nothing; words in another sense ("a grain of sand").
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from voxframe.local.analyses.english import STOPWORDS, stem, words_of
from voxframe.local.analyses.evidence import Clue, Clues, above, clues, heard, stems
from voxframe.local.analyses.passages import Sentence, joined, passages, spanned
from voxframe.local.analyses.semantic import Encode, likeness

FLOOR = 0.45
_FILE = "topics.txt"
_MOST = 10  # labels of a passage
_STRONG, _WEAK, _UP = 2.5, 1.0, 0.5  # what a word that is enough alone counts, another, and a label below
_FULL = 2.5  # evidence at which the relevance is 0.63
_CAPITAL = re.compile(r"[A-Z][a-z]+")
_WORDS = 60  # of a passage in which evidence counts as it is: more words hold more of everything


def topics(sentences: Sequence[Sentence], encode: Encode | None = None) -> dict[str, Any]:
    """`iab_categories_result` of the wire.

    Args:
        sentences: Of the transcript.
        encode: Sentence embeddings, where there are any.
    """
    return _result(sentences, clues(_FILE), encode)


def custom_topics(sentences: Sequence[Sentence], wanted: Iterable[str], encode: Encode | None = None) -> dict[str, Any]:
    """The same for topics of one's own."""
    return _result(sentences, own_clues(wanted), encode)


def relevances(text: str, known: Clues) -> dict[str, float]:
    """Relevance of each label for a text, 0 to 1; those with too little evidence are left out."""
    weight: defaultdict[str, float] = defaultdict(float)
    words: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    sure: set[str] = set()
    times: Counter[tuple[str, ...]] = Counter()
    for key, speaking in heard(text, known):
        times[key] += 1
        if times[key] > 2:
            continue  # a word that is said ten times is not ten words
        for clue in speaking:
            alone = clue.sign == "!"
            amount = (_STRONG if alone else _WEAK / math.sqrt(len(speaking))) / times[key]
            for label, share in ((clue.label, 1.0), *((upper, _UP) for upper in above(clue.label))):
                weight[label] += amount * share
                words[label].add(key)
                if alone:
                    sure.add(label)
    length = math.log(20 + len(text.split())) / math.log(_WORDS)
    return {
        label: round(1 - math.exp(-amount / length / _FULL), 5)
        for label, amount in weight.items()
        if label in sure or len(words[label]) > 1
    }


def _result(sentences: Sequence[Sentence], known: Clues, encode: Encode | None) -> dict[str, Any]:
    spans = [sentences[first : last + 1] for first, last in passages(sentences)]
    texts = [joined(span) for span in spans]
    scores = likeness(texts, _described(known), encode) if encode else [relevances(text, known) for text in texts]
    results: list[dict[str, Any]] = []
    total: defaultdict[str, float] = defaultdict(float)
    for span, text, score in zip(spans, texts, scores, strict=True):
        kept = sorted((item for item in score.items() if item[1] >= FLOOR), key=lambda item: -item[1])[:_MOST]
        for label, relevance in kept:
            total[label] += relevance
        labels = [{"relevance": relevance, "label": label} for label, relevance in kept]
        results.append({"text": text, "labels": labels, "timestamp": spanned(span)})
    greatest = max(total.values(), default=1.0)
    summary = {label: round(total[label] / greatest, 5) for label in sorted(total, key=lambda label: -total[label])}
    return {"status": "success", "results": results, "summary": summary}


def _described(known: Clues) -> dict[str, str]:
    """Each label with its words, as a text that can be compared."""
    words: defaultdict[str, list[str]] = defaultdict(list)
    for key, speaking in known.items():
        for clue in speaking:
            words[clue.label].append(" ".join(key))
    return {
        label: f"{label.replace('>', ' ').replace('&', ' ')}: {', '.join(listed)}" for label, listed in words.items()
    }


def own_clues(wanted: Iterable[str]) -> Clues:
    """What speaks for topics of one's own: the topic, its words, and all words of the labels that it comes near to."""
    own: defaultdict[tuple[str, ...], list[Clue]] = defaultdict(list)
    taxonomy = clues(_FILE)
    for topic in wanted:
        phrase = stems(topic)
        parts = {(stem(word),) for word in words_of(topic) if word not in STOPWORDS}
        near = {clue.label for key in {phrase, *parts} for clue in taxonomy.get(key, ())}
        near |= {label for label, name in _names(taxonomy).items() if parts & name}
        signs = {key: "" for key, speaking in taxonomy.items() if any(clue.label in near for clue in speaking)}
        signs |= dict.fromkeys(parts, "")
        signs[phrase] = "!"
        for key, sign in signs.items():
            own[key].append(Clue(topic, sign))
    return {key: tuple(speaking) for key, speaking in own.items()}


def _names(known: Clues) -> dict[str, set[tuple[str, ...]]]:
    """The words in the last part of each label's name."""
    labels = {clue.label for speaking in known.values() for clue in speaking}
    return {
        label: {(stem(word.lower()),) for word in _CAPITAL.findall(label.rpartition(">")[2]) if word != "And"}
        for label in labels
    }
