"""How well the analyses that go by meaning do on the texts labelled for them, beside the lists of words.

The texts are those of tests/engine/analyses/labelled/*_meaning.txt, written before the methods. Figures are of the held
halves. `python -m tests.benchmarks analyses` prints them with all others.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from tests.benchmarks import labelled
from tests.benchmarks.analyses import Coder, score_entities, score_redaction, score_sentiment, unsafe
from voxframe_engine import RequestRefused
from voxframe_engine.analyses import chapters, labels, lexicon
from voxframe_engine.analyses.entities import load_recognizer
from voxframe_engine.answers import Line, LLMQuestion, LLMRequest, Source, from_text
from voxframe_engine.answers.extractive import NOTHING_FITS, ExtractiveAnswerer
from voxframe_engine.text import Sentence, sentences_of


def score_levels(half: str, coder: Coder) -> tuple[float, float]:
    """Share of passages whose first level is right; share of passages without a topic left without one."""
    if half == "spoken":
        parts = (line.split(" | ") for line in labelled.lines("topics_spoken.txt"))
    else:
        parts = labelled.halved("topics_meaning.txt", half)
    rows = [(labels.split(","), text) for labels, text in parts]
    right, empty = [], []
    for (gold, _), found in zip(rows, labels.taxonomy_relevances([text for _, text in rows], coder), strict=True):
        kept = {label: value for label, value in found.items() if value >= labels.FLOOR}
        best = max(kept, key=kept.__getitem__, default="none").split(">")[0]
        (empty if gold == ["none"] else right).append(best in gold)
    return statistics.mean(right), statistics.mean(empty)


def score_custom(half: str, coder: Coder) -> labelled.Score:
    """Custom topics found in passages about them, and not in passages that share a word with them."""
    score = labelled.Score()
    for line in labelled.lines("custom_topics_meaning.txt"):
        name, about, text = line.split(" | ")
        if name.startswith(f"{half} "):
            name = name.removeprefix(f"{half} ")
            (found,) = labels.custom_relevances([text], [name], coder)
            is_found = found.get(name, 0.0) >= labels.FLOOR
            counter = {(True, "yes"): score.right, (True, "no"): score.extra, (False, "yes"): score.missed}
            counter.get((is_found, about), labelled.Counter())[name] += 1
    return score


def score_unsafe(half: str, coder: Coder) -> tuple[float, float, float]:
    """Shares of ordinary texts with a label, of unsafe texts with any label, and of unsafe texts with the right one."""
    rows = [(set(labels.split(",")), text) for labels, text in labelled.halved("safety_meaning.txt", half)]
    found = unsafe([text for _, text in rows], coder)
    pairs = [(gold, labels) for (gold, _), labels in zip(rows, found, strict=True)]
    return (
        statistics.mean(bool(labels) for gold, labels in pairs if gold == {"none"}),
        statistics.mean(bool(labels) for gold, labels in pairs if gold != {"none"}),
        statistics.mean(bool(labels & gold) for gold, labels in pairs if gold != {"none"}),
    )


def score_patients(coder: Coder) -> tuple[float, float]:
    """Shares of acute symptoms labelled health_issues, and of similar ordinary talk without a label."""
    rows = [line.split(" | ") for line in labelled.lines("safety_patients.txt")]
    found = list(zip((gold for gold, _ in rows), unsafe([text for _, text in rows], coder), strict=True))
    return (
        statistics.mean(gold in labels for gold, labels in found if gold != "none"),
        statistics.mean(not labels for gold, labels in found if gold == "none"),
    )


def talks(half: str) -> Iterator[tuple[list[Sentence], list[int], list[list[str]]]]:
    """Sentences of each talk with their times, the sentences that begin its sections, and words for their headlines."""
    made: list[tuple[int, list[str], list[int], list[list[str]]]] = []
    for line in labelled.lines("talks_meaning.txt"):
        if line.startswith("= "):
            made += [(int(line.split()[-1]), [], [], [])] if f"[{half}]" in line else []
            wanted = f"[{half}]" in line
        elif wanted and line.startswith("- "):
            made[-1][2].append(len(made[-1][1]))
            made[-1][3].append(line[2:].split(", "))
        elif wanted:
            made[-1][1].append(line)
    for pace, texts, begins, words in made:
        spoken = [
            word | {"start": n * pace, "end": n * pace + pace - 20}
            for n, word in enumerate(labelled.words(" ".join(texts)))
        ]
        yield sentences_of(spoken), begins, words


def score_talks(half: str, coder: Coder) -> tuple[int, int, int, int]:
    """Numbers of sections, of chapters, of boundaries within one sentence, and of headlines that name a subject."""
    sections = found = right = named = 0
    for sentences, begins, words in talks(half):
        starts = [sentence["start"] for sentence in sentences]
        made = chapters.chapters(sentences, coder)
        places = [starts.index(chapter["start"]) for chapter in made]
        sections, found = sections + len(begins), found + len(made)
        right += sum(any(abs(place - begin) <= 1 for place in places) for begin in begins[1:])
        for place, chapter in zip(places, made, strict=True):
            about = words[max(n for n, begin in enumerate(begins) if begin <= place + 1)]
            named += any(word in chapter["headline"].lower().replace(",", "").split() for word in about)
    return sections, found, right, named


def score_questions(half: str, every: int = 1) -> tuple[int, int, int, int]:
    """Numbers of questions answered with the right sentence, of such questions, of questions refused, and of such.

    Args:
        half: "tune" or "held".
        every: Ask only each second, third, ... question.
    """
    ((sentences, _, _),) = talks(half)
    rows = [line.split(" | ") for line in labelled.lines("questions_meaning.txt")]
    asked = [row[1:] for row in rows if row[0] == half][::every]
    return _score_answers([Line(sentence["text"]) for sentence in sentences], asked)


def score_conversations(name: str = "answers_dev.txt") -> tuple[int, int, int, int]:
    """The same for the conversations that the answerer was developed with, or for others (answers_fresh.txt, ...)."""
    scores = (_score_answers(*part) for part in conversations(name))
    right, whole, refused, others = (sum(column) for column in zip(*scores, strict=True))
    return right, whole, refused, others


def conversations(name: str) -> list[tuple[list[Line], list[list[str]]]]:
    """Sentences of each conversation, and its questions, with words of their answers or "-" if there is none."""
    parts: list[tuple[list[Line], list[list[str]]]] = []
    for line in labelled.lines(name):
        if line.startswith("= "):
            parts.append(([], []))
        elif line.startswith("? "):
            parts[-1][1].append(line[2:].split(" | "))
        else:
            parts[-1][0].extend(from_text(line[2:]).lines if line.startswith("> ") else [Line(line)])
    return parts


def _score_answers(lines: list[Line], questions: list[list[str]]) -> tuple[int, int, int, int]:
    # In one request the sentences are encoded once. Its questions share the size of the output.
    asked = tuple(LLMQuestion(question) for question, *_ in questions)
    llm_request = LLMRequest("question-answer", questions=asked, max_output_size=1000 * len(asked))
    answers = ExtractiveAnswerer().answer(llm_request, [Source(lines)]).response
    right, refused = [], []
    for (_, *gold), answered in zip(questions, answers, strict=True):
        said = answered["answer"]
        if gold == ["-"]:
            refused.append(said == NOTHING_FITS)
        else:
            right.append(any(one.lower() in said.lower() for one in gold))
    return sum(right), len(right), sum(refused), len(refused)


def score_tasks(name: str) -> tuple[int, int]:
    """Number of prompts that are answered if quoting can answer them, and refused otherwise; and of all prompts."""
    right = []
    for line in labelled.lines(name):
        can, _, prompt = line.partition(" ")
        try:
            ExtractiveAnswerer().answer(LLMRequest("task", prompt=prompt), [Source([Line("The budget is small.")])])
            right.append(can == "yes")
        except RequestRefused:
            right.append(can == "no")
    return sum(right), len(right)


def report(coder: Coder) -> Iterator[str]:
    """Figures, one line per analysis."""
    right, empty = score_levels("held", coder)
    yield f"topics: first level {right:.2f}, empty left empty {empty:.2f}"
    right, empty = score_levels("spoken", coder)
    yield f"topics of spoken passages: first level {right:.2f}, empty left empty {empty:.2f}"
    yield f"custom topics: {score_custom('held', coder)}"
    for name in ("meaning", "spoken"):
        right, kinds = score_sentiment(f"sentiment_{name}.txt", coder)
        yield f"sentiment, {name}: {right:.2f} right; F1 " + ", ".join(f"{kind} {f1:.2f}" for kind, f1 in kinds.items())
    small_talk = lexicon.judge(list(labelled.lines("small_talk.txt")), coder)
    yield f"sentiment, small talk: {statistics.mean(label == 'NEUTRAL' for label, _ in small_talk):.2f} neutral"
    if coder is not None:
        counts = {"talk": score_questions("held")}
        counts |= {
            name: score_conversations(f"answers_{name}.txt")
            for name in ("fresh", "kinds", "long", "held", "interview", "zoo", "details", "unseen")
        }
        for name, (answered, whole, refused, others) in counts.items():
            yield f"answerer, {name}: {answered} of {whole} questions right, {refused} of {others} unanswerable refused"
        for name in ("meaning", "fresh"):
            right, whole = score_tasks(f"tasks_{name}.txt")
            yield f"answerer, tasks {name}: {right} of {whole} prompts rightly answered or refused"
    sections, made, begun, named = score_talks("held", coder)
    yield f"chapters of an 11-minute talk: {made} for {sections} subjects, {begun} boundaries right, {named} headlines"
    names = None if coder is None else load_recognizer()
    rare, _ = score_entities("meaning_held", names=names, kinds=("person_name", "organization"))
    for kind in ("person_name", "organization"):
        whole = rare.right[kind] + rare.missed[kind]
        yield f"rare names, {kind}: {rare.right[kind]} of {whole} found, {rare.extra[kind]} superfluous"
    for half, kinds in (("products", ("person_name", "organization")), ("places", ("location",))):
        score, _ = score_entities(f"{half}_held", names=names, kinds=kinds)
        yield f"names in talk about {half}: precision {score.precision:.2f}, recall {score.recall:.2f}"
    for name in ("meaning", "held"):
        covered, pieces, extra, others = score_redaction(names, f"redaction_{name}.txt")
        yield f"redaction, {name}: {covered} of {pieces} pieces of personal data, {extra} of {others} other words"
    ill, well = score_patients(coder)
    yield f"content safety: {ill:.2f} of acute symptoms are health_issues, {well:.2f} of similar talk has no label"
    false, found, exact = score_unsafe("held", coder)
    yield f"content safety: {false:.3f} of ordinary texts labelled, {found:.2f} of unsafe ones, {exact:.2f} right"
