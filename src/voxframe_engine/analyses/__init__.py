"""Analyses of a transcript: words and sentences in, fields of the response out.

| field | file | method |
|---|---|---|
| auto_highlights_result | key_phrases | noun phrases (classifier of word vectors), weighted by rarity and frequency |
| sentiment_analysis_results | lexicon | classifier of sentence vectors |
| iab_categories_result, custom_topics_results | labels | classifier and similarity of passage vectors |
| content_safety_labels | labels | classifier of sentence vectors, with word lists |
| entities | entities | patterns over spoken and written forms, checksums, lists, a recognizer of names |
| redaction | this one | replaces what entities found |
| chapters | chapters | segmentation by coherence of sentence vectors; named by noun phrases, quotes key sentences |
| summary | chapters | key sentences, quoted; nothing is rephrased |

All are for English only. Sentence vectors come from `voxframe.encoder`; if its model is not on the machine, word lists
take its place, and one warning per process says so. Each file states its measured quality on the
project's labelled texts.

Redaction replaces words: with `hash`, each character becomes "#" and punctuation at the ends stays; with `entity_name`,
all words of an entity become one word such as "[PERSON_NAME]". Whatever the detectors miss is not redacted: see
`entities`. Never call the result complete.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from voxframe._text import ABBREVIATIONS, WordDict

if TYPE_CHECKING:
    from voxframe_engine.analyses.entities import Entity  # its patterns would double the start-up time of the server

#: Request fields that request an analysis.
OPTIONS = (
    "auto_highlights",
    "redact_pii",
    "content_safety",
    "iab_categories",
    "custom_topics",
    "sentiment_analysis",
    "auto_chapters",
    "entity_detection",
    "summarization",
)
#: Those that use the sentence encoder.
_BY_MEANING = frozenset(OPTIONS) - {"redact_pii", "entity_detection"}
#: Language codes of transcripts that can be analysed.
LANGUAGES = frozenset(("en", "en_us", "en_uk", "en_au"))
#: Fields of a transcript in another language: the interface's form of a missing analysis.
_UNAVAILABLE: dict[str, tuple[str, Any]] = {
    "auto_highlights": ("auto_highlights_result", {"status": "unavailable", "results": []}),
    "content_safety": ("content_safety_labels", {"status": "unavailable", "results": [], "summary": {}}),
    "iab_categories": ("iab_categories_result", {"status": "unavailable", "results": [], "summary": {}}),
    "custom_topics": ("custom_topics_results", {"status": "unavailable", "results": [], "summary": {}}),
    "sentiment_analysis": ("sentiment_analysis_results", None),
    "auto_chapters": ("chapters", None),
    "entity_detection": ("entities", None),
    "summarization": ("summary", None),
}
#: Value of the field `summary_method`: how `summary` was made.
KEY_SENTENCES = "key sentences, quoted"
#: Internal field, not part of the response: spans of the recording to beep out, as [start, end] in ms.
REDACTED_SPANS = "redacted_spans"


def apply(result: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Add the requested analyses to a finished transcript.

    Redaction runs first, so that no other analysis can quote redacted text.

    Args:
        result: Fields of the transcript with at least `words`. `utterances`, `sentences` and `language_code` are used
            if present.
        options: Options of the request: `content_safety_confidence`, `redact_pii_policies`, `redact_pii_sub`,
            `summary_type`, `summary_model`, `topics` and `language_code`.

    Returns:
        The transcript with the fields of the analyses, and with words, text, utterances and sentences redacted. If
        audio is redacted too, `REDACTED_SPANS` lists the spans. If the language is not one of `LANGUAGES`, the fields
        say that the analysis is unavailable.

    Raises:
        JobFailed: Redaction was requested in another language. The text would be shown unredacted otherwise.

    Example:
        >>> words = [{"text": text, "start": n, "end": n} for n, text in enumerate("I love Boston.".split())]
        >>> done = apply({"words": words}, {"sentiment_analysis": True, "redact_pii": True})
        >>> done["text"], done["sentiment_analysis_results"][0]["sentiment"]
        ('I love ######.', 'POSITIVE')
    """
    from voxframe.encoder import find as find_encoder
    from voxframe_engine.text import sentences_of

    done = dict(result)
    if not any(options.get(name) for name in OPTIONS):
        return done
    language = result.get("language_code") or "en"
    if language not in LANGUAGES:
        return done | _not_there(language, options)
    done |= _redacted(result, options)
    sentences = sentences_of(done["words"] or [])
    encoder = find_encoder() if any(options.get(name) for name in _BY_MEANING) else None
    if options.get("auto_highlights"):
        from voxframe_engine.analyses.key_phrases import key_phrases

        done["auto_highlights_result"] = key_phrases(sentences, encoder)
    if options.get("sentiment_analysis"):
        from voxframe_engine.analyses.lexicon import sentiment

        done["sentiment_analysis_results"] = sentiment(sentences, encoder)
    if options.get("content_safety"):
        from voxframe_engine.analyses.labels import content_safety

        done["content_safety_labels"] = content_safety(sentences, options, encoder)
    if options.get("iab_categories") or options.get("custom_topics"):
        from voxframe_engine.analyses.labels import custom_topics, topics

        if options.get("iab_categories"):
            done["iab_categories_result"] = topics(sentences, encoder)
        if options.get("custom_topics"):
            done["custom_topics_results"] = custom_topics(sentences, options.get("topics") or (), encoder)
    if options.get("auto_chapters"):
        from voxframe_engine.analyses.chapters import chapters

        done["chapters"] = chapters(sentences, encoder)
    if options.get("summarization"):
        from voxframe_engine.analyses.chapters import summary

        done["summary"] = summary(sentences, options, encoder)
        done["summary_method"] = KEY_SENTENCES
    return done


def _not_there(language: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of analyses that are not available in the language of the transcript."""
    if options.get("redact_pii"):
        from voxframe_engine import JobFailed

        raise JobFailed(
            f"PII can be redacted in English only, and the language is {language!r}. Send redact_pii false for a "
            "transcript without redaction."
        )
    return {name: value for option, (name, value) in _UNAVAILABLE.items() if options.get(option)}


def _redacted(result: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Detect entities and apply redaction. Entities are detected in the original text and quoted in redacted form."""
    wants_entities, wants_redaction = bool(options.get("entity_detection")), bool(options.get("redact_pii"))
    if not (wants_entities or wants_redaction):
        return {}
    from voxframe_engine.analyses import entities

    words = result["words"] or []
    language = result.get("language_code") or options.get("language_code")
    recognizer = entities.load_recognizer()
    detected = entities.find(words, language, recognizer) if wants_entities else []
    hidden = entities.find(words, language, recognizer, doubtful=True) if wants_redaction else []
    cover = Redaction(words, hidden, options.get("redact_pii_policies"), options.get("redact_pii_sub"))
    changed: dict[str, Any] = {}
    if wants_entities:
        changed["entities"] = []
        for entity in detected:
            spoken = [words[index] for index in entity.indexes]
            fields = entities.to_dict(entity, words)
            changed["entities"].append({**fields, "text": cover.quote(spoken)} if cover.touches(spoken) else fields)
    if wants_redaction:
        changed["words"] = cover.words(words)
        changed["text"] = " ".join(word["text"] for word in changed["words"])
        for name in ("utterances", "sentences"):
            if result.get(name):
                changed[name] = [cover.line(line) for line in result[name]]
        if options.get("redact_pii_audio"):
            changed[REDACTED_SPANS] = [list(span) for span in cover.spans]
    return changed


_PAD_MS = 60  # tolerance for errors in word times
_EDGES = re.compile(r"^(?P<open>[\"'(\[]*)(?P<word>.*?)(?P<close>[.,;:?!\"')\]]*)$", re.DOTALL)
_Key = tuple[Any, int, int, str]


class Redaction:
    """The entities to redact, and the substitution.

    Args:
        words: Words of the transcript.
        found: Detected entities.
        policies: Kinds to redact; None or empty means all.
        substitute: `hash`, or `entity_name` (also spelled `entity_type`).
    """

    def __init__(
        self,
        words: Sequence[WordDict],
        entities: Iterable[Entity],
        policies: Collection[str] | None = None,
        substitute: str | None = None,
    ) -> None:
        self._named = substitute in ("entity_name", "entity_type")
        redacted = [entity for entity in entities if not policies or entity.kind in policies]
        self._marks: dict[_Key, tuple[int, str]] = {
            _key(words[index]): (number, entity.kind)
            for number, entity in enumerate(redacted)
            for index in entity.indexes
        }
        times = [(words[index]["start"], words[index]["end"]) for entity in redacted for index in _ends(entity)]
        pairs = zip(times[::2], times[1::2], strict=True)
        self.spans = _merged((first[0] - _PAD_MS, max(first[1], last[1]) + _PAD_MS) for first, last in pairs)
        """Spans of the recording to beep out, in ms, in order."""

    def words(self, words: Sequence[WordDict]) -> list[WordDict]:
        """Return the words, redacted. They may be those of the transcript or any part of it, such as an utterance."""
        result: list[WordDict] = []
        positions: dict[int, int] = {}  # position of each entity's word; words of other channels may lie between
        for word in words:
            number, kind = self._marks.get(_key(word), (None, ""))
            if number is None:
                result.append(word)
            elif not self._named:
                result.append({**word, "text": _hashed(word["text"])})
            elif number in positions:
                result[positions[number]] = _joined(result[positions[number]], word)
            else:
                positions[number] = len(result)
                opening, _, closing = _parts(word["text"])
                result.append({**word, "text": f"{opening}[{kind.upper()}]{closing}"})
        return result

    def line(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Return an utterance or sentence with its words and text redacted."""
        words = self.words(line["words"])
        return {**line, "words": words, "text": " ".join(word["text"] for word in words)}

    def quote(self, words: Sequence[WordDict]) -> str:
        """Return the words of an entity, redacted, without punctuation around them."""
        return " ".join(word["text"] for word in self.words(words)).strip(" .,;:?!\"'()")

    def touches(self, words: Iterable[WordDict]) -> bool:
        """Return True if any of the words is redacted."""
        return any(_key(word) in self._marks for word in words)


def _key(word: WordDict) -> _Key:
    return word.get("channel"), word["start"], word["end"], word["text"]


def _ends(entity: Entity) -> tuple[int, int]:
    return entity.indexes[0], entity.indexes[-1]


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((max(0, start), end))
    return merged


def _parts(text: str) -> tuple[str, str, str]:
    """Split a word into opening punctuation, the word, and closing punctuation. Punctuation alone counts as a word."""
    match = _EDGES.match(text)
    if match is None or not match["word"]:
        return "", text, ""
    return match["open"], match["word"], match["close"]


def _hashed(text: str) -> str:
    opening, word, closing = _parts(text)
    if f"{word}." in ABBREVIATIONS and closing.startswith("."):  # the full stop would seem to end a sentence
        word, closing = f"{word}.", closing[1:]
    return opening + "#" * len(word) + closing


def _joined(first: WordDict, word: WordDict) -> WordDict:
    """Extend the one-word form of an entity by another of its words."""
    label, _, _ = first["text"].rpartition("]")
    return {**first, "text": f"{label}]{_parts(word['text'])[2]}", "end": max(first["end"], word["end"])}
