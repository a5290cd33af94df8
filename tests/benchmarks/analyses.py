"""How good the analyses of the embedded service are: `python -m tests.benchmarks analyses [--payloads DIR] [--speech]`.

Against the labelled sets in tests/engine/analyses/labelled. Those of `meaning` were written for the methods that go by
meaning, before these methods. Of the others, `dev` was used for development, `held` only for
scoring; both were written before the code, but by the same hand, which flatters methods that go by lists of words.
`fresh` was written afterwards by somebody who had seen neither the methods nor their lists, and is what to expect of
talk that nobody prepared for. `--payloads`: agreement with what a hosted service said of a real recording. `--speech`:
what is left to hear of the personal parts of data/*.flac once they were transcribed by the default engine and covered.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import labelled
from voxframe import encoder
from voxframe.encoder import SentenceEncoder
from voxframe_engine.analyses import Redaction, chapters, entities, key_phrases, labels, lexicon
from voxframe_engine.analyses.chapters import boundaries
from voxframe_engine.analyses.lexicon import stem, words_of
from voxframe_engine.text import sentences_of

Coder = SentenceEncoder | None
_SIGNS = {"+": "POSITIVE", "-": "NEGATIVE", "0": "NEUTRAL"}


def score_entities(
    half: str, style: str | None = None, names: entities.Recognizer | None = None, kinds: Sequence[str] = ()
) -> tuple[labelled.Score, float]:
    """Entities of the right kind with half of their words or more, and the share of marked words found as any kind.

    With `kinds`, only these kinds are looked at.
    """
    score, covered, marked_words = labelled.Score(), 0, 0
    for written, text, gold in labelled.marked(f"entities_{half}.txt"):
        if style not in (None, written):
            continue
        every = entities.find(labelled.words(text), names=names)
        found = [(entity.kind, set(entity.indexes)) for entity in every if not kinds or entity.kind in kinds]
        anywhere = set().union(*(places for _, places in found)) if found else set()
        for kind, places in gold:
            marked_words += len(places)
            covered += len(places & anywhere)
            same = [f for f in found if f[0] == kind and len(f[1] & places) * 2 >= len(f[1] | places)]
            (score.right if same else score.missed)[kind] += 1
            if same:
                found.remove(same[0])
        score.extra.update(kind for kind, _ in found)
    return score, covered / marked_words


def score_redaction(names: entities.Recognizer | None, name: str) -> tuple[int, int, int, int]:
    """Numbers of pieces of personal data that are covered whole, of all, of other words covered, and of all others."""
    whole = pieces = extra = others = 0
    for _, text, gold in labelled.marked(name):
        covered = {
            index
            for entity in entities.find(labelled.words(text), names=names, doubtful=True)
            for index in entity.indexes
        }
        personal = set().union(*(places for _, places in gold))
        pieces += len(gold)
        whole += sum(places <= covered for _, places in gold)
        extra += len(covered - personal)
        others += len(text.split()) - len(personal)
    return whole, pieces, extra, others


def score_sentiment(name: str = "sentiment.txt", coder: Coder = None) -> tuple[float, dict[str, float]]:
    """Share of sentences judged right; F1 of each sentiment."""
    score = labelled.Score()
    rows = list(labelled.lines(name))
    judged = lexicon.judge([row[2:] for row in rows], coder)
    for row, (found, _) in zip(rows, judged, strict=True):
        _count(score, {_SIGNS[row[0]]}, {found})
    return score.right.total() / (score.right.total() + score.missed.total()), {
        kind: score.of_kind(kind) for kind in _SIGNS.values()
    }


def _count(score: labelled.Score, gold: set[str], found: set[str]) -> None:
    score.right.update(gold & found)
    score.extra.update(found - gold)
    score.missed.update(gold - found)


def score_topics(half: str, coder: Coder = None) -> tuple[float, float, float]:
    """Share of passages whose first label is right; is right in its first level; share of empty ones left empty."""
    first, level, empty = [], [], []
    passages = [(labels.split(","), text) for labels, text in labelled.halved("topics.txt", half)]
    passages += [
        (section.topics, " ".join(section.sentences)) for talk in labelled.talks(half) for section in talk.sections
    ]
    found = labels.taxonomy_relevances([text for _, text in passages], coder)
    for (gold, _), every in zip(passages, found, strict=True):
        relevances = {label: value for label, value in every.items() if value >= labels.FLOOR}
        best = max(relevances, key=relevances.__getitem__, default="")
        if gold == ["none"]:
            empty.append(not best)
            continue
        first.append(any(f"{best}>".startswith(f"{label}>") for label in gold))
        level.append(best.split(">")[0] in {label.split(">")[0] for label in gold})
    return statistics.mean(first), statistics.mean(level), statistics.mean(empty)


def score_custom_topics(half: str, coder: Coder = None) -> labelled.Score:
    """Topics of one's own: found in the sections that are about them, and not in the others."""
    score = labelled.Score()
    rows = [line.split(" | ") for line in labelled.lines("custom_topics.txt")]
    for talk in labelled.talks(half):
        own = {topic: int(section) for title, topic, section in rows if title == talk.title}
        texts = [" ".join(section.sentences) for section in talk.sections]
        for number, found in enumerate(labels.custom_relevances(texts, list(own), coder), 1):
            _count(
                score,
                {topic for topic, about in own.items() if about == number},
                {topic for topic, value in found.items() if value >= labels.FLOOR},
            )
    return score


def score_safety(half: str, coder: Coder = None) -> labelled.Score:
    """Labels of passages from 50 percent confidence on."""
    score = labelled.Score()
    rows = list(labelled.halved("safety.txt", half))
    for (label, _), found in zip(rows, unsafe([text for _, text in rows], coder), strict=True):
        _count(score, {label} - {"none"}, found)
    return score


def unsafe(texts: Sequence[str], coder: Coder = None) -> list[set[str]]:
    """Labels of texts from 50 percent confidence on."""
    parts = [[one["text"] for one in labelled.sentences(text)] for text in texts]
    return [{one["label"] for one in found if one["confidence"] >= 0.5} for found in labels.judge(parts, coder)]


def score_key_phrases(half: str) -> tuple[float, float]:
    """Share of the first ten phrases that are labelled (or part of one, or hold one); share of labelled ones found."""
    precise, found = [], []
    for talk in labelled.talks(half):
        results = key_phrases.key_phrases(
            labelled.sentences(" ".join(s for part in talk.sections for s in part.sentences))
        )
        phrases = [_stems(result["text"]) for result in results["results"]]
        gold = [_stems(key) for part in talk.sections for key in part.keys]
        precise += [any(phrase <= key or key <= phrase for key in gold) for phrase in phrases[:10]]
        found += [any(key <= phrase or (phrase <= key and len(phrase) > 1) for phrase in phrases) for key in gold]
    return statistics.mean(precise), statistics.mean(found)


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words_of(text))


def score_chapters(half: str, cut: Callable[[list[str], int], Sequence[int]]) -> tuple[float, labelled.Score]:
    """Mean Pk (0 is best, what a coin gives is 0.5) over mixtures; boundaries found within one sentence."""
    errors, score = [], labelled.Score()
    for texts, begins in labelled.mixtures(half):
        found = list(cut(texts, len(begins)))
        errors.append(labelled.pk(begins, found, len(texts)))
        for begin in begins:
            near = [at for at in found if abs(at - begin) <= 1]
            (score.right if near else score.missed)["boundary"] += 1
            if near:
                found.remove(near[0])
        score.extra["boundary"] += len(found)
    return statistics.mean(errors), score


def equal(texts: list[str], cuts: int) -> list[int]:
    """Cuts at equal distances, told how many: what chapters have to be better than."""
    return [round(len(texts) * n / (cuts + 1)) for n in range(1, cuts + 1)]


def score_summaries(half: str, rank: Callable[[list[str]], Sequence[float]]) -> float:
    """Share of the sentences chosen of a section that are labelled as belonging in a summary."""
    right = [
        part.told[at]
        for talk in labelled.talks(half)
        for part in talk.sections
        for at in sorted(range(len(part.told)), key=lambda at: -rank(part.sentences)[at])[: sum(part.told)]
    ]
    return statistics.mean(right)


def first_ones(texts: list[str]) -> list[float]:
    """The sentences as they come: what summaries have to be better than."""
    return [-float(at) for at in range(len(texts))]


def compare(payloads: Path, coder: Coder = None) -> Iterator[str]:
    """Agreement with the example answers of a hosted service for one recording of 281 s."""
    said = json.loads((payloads / "transcripts" / "completed.json").read_text("utf-8"))["words"]
    answers = {
        name: json.loads((payloads / "analyses" / f"{name}-response.json").read_text("utf-8"))
        for name in ("sentiment-analysis", "entity-detection", "topic-detection", "content-moderation", "key-phrases")
    }
    rated = answers["sentiment-analysis"]["sentiment_analysis_results"]
    same = [
        judged[0] == item["sentiment"]
        for judged, item in zip(lexicon.judge([item["text"] for item in rated], coder), rated, strict=True)
    ]
    yield f"sentiment: the same for {statistics.mean(same):.2f} of {len(same)} sentences"
    theirs = Counter((e["entity_type"], _stems(e["text"])) for e in answers["entity-detection"]["entities"])
    ours = Counter((e.kind, _stems(e.text)) for e in entities.find(said, names=entities.load_recognizer()))
    yield (
        f"entities: {(theirs & ours).total()} the same, {(theirs - ours).total()} only theirs, "
        f"{(ours - theirs).total()} only ours"
    )
    agreed = []
    for result in answers["topic-detection"]["iab_categories_result"]["results"]:
        (found,) = labels.taxonomy_relevances([result["text"]], coder)
        sure = {label for label, value in found.items() if value >= labels.FLOOR}
        agreed.append(max(result["labels"], key=lambda label: label["relevance"])["label"] in sure)
    yield f"topics: their first label among ours for {sum(agreed)} of {len(agreed)} passages"
    agreed = []
    for result in answers["content-moderation"]["content_safety_labels"]["results"]:
        (found_labels,) = unsafe([result["text"]], coder)
        agreed.append(result["labels"][0]["label"] in found_labels)
    yield f"content safety: their label among ours for {sum(agreed)} of {len(agreed)} passages"
    theirs_keys = [_stems(r["text"]) for r in answers["key-phrases"]["auto_highlights_result"]["results"]]
    ours_keys = [_stems(r["text"]) for r in key_phrases.key_phrases(sentences_of(said))["results"]]
    common = sum(any(a <= b or b <= a for b in ours_keys) for a in theirs_keys)
    yield f"key phrases: {common} of their {len(theirs_keys)} among our {len(ours_keys)}"


def hear(name: str) -> tuple[float, float, list[str]]:
    """Share of a recording's personal time that is covered, of other speech that is covered too, and what is left."""
    from voxframe_engine.transcription import run_job

    truth = [
        word
        for turn in json.loads((labelled.DATA / f"{name}.json").read_text("utf-8"))["turns"]
        for word in turn["words"]
    ]
    plain = [re.sub(r"\W", "", word["text"]).lower() for word in truth]
    result = run_job(labelled.DATA / f"{name}.flac", {"dual_channel": name == "call"})
    spans = Redaction(
        result["words"], entities.find(result["words"], names=entities.load_recognizer(), doubtful=True)
    ).spans
    personal: set[int] = set()
    left = []
    for row in labelled.lines("recordings.txt"):
        recording, kind, phrase = row.split(" | ")
        parts = phrase.lower().split()
        for at in range(len(plain) - len(parts) + 1 if recording == name else 0):
            if plain[at : at + len(parts)] == parts:
                here = range(at, at + len(parts))
                personal.update(here)
                shares = [_covered(truth[n], spans) for n in here]
                left += [f"{phrase} ({kind})"] if statistics.mean(shares) < 0.5 else []
    times = [(n in personal, _covered(word, spans), word["end_ms"] - word["start_ms"]) for n, word in enumerate(truth)]
    inside, outside = (
        [(share * time, time) for is_in, share, time in times if is_in == wanted] for wanted in (True, False)
    )
    hidden, lost = (sum(part) / sum(whole) for part, whole in (zip(*side, strict=True) for side in (inside, outside)))
    return hidden, lost, left


def _covered(word: dict[str, Any], spans: Sequence[tuple[int, int]]) -> float:
    start, end = word["start_ms"], word["end_ms"]
    return sum(max(0, min(end, b) - max(start, a)) for a, b in spans) / max(1, end - start)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all figures."""
    from tests.benchmarks import meaning

    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks analyses", description=__doc__.splitlines()[0])
    parser.add_argument("--payloads", type=Path, help="folder of example payloads")
    parser.add_argument("--speech", action="store_true", help="transcribe and cover the recordings of data/ too")
    asked = parser.parse_args(arguments)
    for title, coder in (("by meaning", encoder.load()), ("by lists of words", None)):
        print(f"\n== {title}")
        print("\n".join(meaning.report(coder)))
        _print_older(coder)
        if asked.payloads:
            print("\na hosted service's answers")
            print("\n".join(compare(asked.payloads, coder)))
    for name in ("call", "interview", "panel") if asked.speech else ():
        hidden, lost, left = hear(name)
        print(f"\n{name}: {hidden:.2f} of the personal time covered, {lost:.2f} of the rest; left: {', '.join(left)}")


def _print_older(coder: Coder) -> None:
    for name in ("sentiment.txt", "sentiment_fresh.txt"):
        right, kinds = score_sentiment(name, coder)
        print(f"{name}: {right:.2f} right; F1 " + ", ".join(f"{kind} {f1:.2f}" for kind, f1 in kinds.items()))
    for half in (*labelled.HALVES, labelled.FRESH):
        print(f"\n{half}")
        print(
            "topics: first label {:.2f}, first level {:.2f}, empty left empty {:.2f}".format(*score_topics(half, coder))
        )
        print(f"custom topics: {score_custom_topics(half, coder)}")
        print(f"content safety: {score_safety(half, coder)}")
        for name, cut in (("ours", lambda texts, _: boundaries(texts, coder)), ("equal lengths, count told", equal)):
            error, found = score_chapters(half, cut)
            print(f"chapters, {name}: Pk {error:.3f}; boundaries {found}")
        if coder is None:
            _print_by_words(half)


def _print_by_words(half: str) -> None:
    for style, name in ((None, "all"), ("w", "written"), ("s", "as the engine writes")):
        score, covered = score_entities(half, style)
        print(f"entities, {name}: {score}; {covered:.2f} of their words found")
    print("  kinds below 1: " + ", ".join(_below(score_entities(half)[0])))
    print("key phrases: {:.2f} of the first ten, {:.2f} of the labelled ones".format(*score_key_phrases(half)))
    print(
        f"summaries: {score_summaries(half, chapters.scores):.2f} of the chosen sentences; "
        f"the first sentences {score_summaries(half, first_ones):.2f}; "
        f"any sentences {statistics.mean(score_summaries(half, _any(seed)) for seed in range(20)):.2f}"
    )


def _below(score: labelled.Score) -> list[str]:
    kinds = sorted({*score.right, *score.extra, *score.missed})
    return [f"{kind} {score.of_kind(kind):.2f}" for kind in kinds if score.of_kind(kind) < 1]


def _any(seed: int) -> Callable[[list[str]], list[float]]:
    chance = random.Random(seed)
    return lambda texts: [chance.random() for _ in texts]
