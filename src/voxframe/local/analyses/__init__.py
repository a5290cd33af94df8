"""Analyses of a transcript, one a file: words and sentences in, fields of the wire out.

| field | file | method |
|---|---|---|
| auto_highlights_result | key_phrases | runs of nouns, weighed by how rare and how frequent their words are |
| sentiment_analysis_results | sentiment | VADER on each sentence |
| iab_categories_result, custom_topics_results | topics | lists of words a label, or sentence embeddings |
| content_safety_labels | content_safety | lists of words a label, with severities |
| entities | entities | patterns over spoken and written forms, checks, lists |
| redaction | redaction | covers what entities found |
| chapters | chapters | the cuts between which sentences hold together best; quoted |
| summary | summary | chosen sentences, quoted |

English only, and by rules and lists rather than by models: each file says how good it was on the project's labelled
sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Request fields that ask for an analysis.
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
#: Language codes of transcripts that can be analysed.
LANGUAGES = frozenset(("en", "en_us", "en_uk", "en_au"))
#: What the fields hold where the transcript turns out to be in another language: the interface's "not there".
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
#: Field of the result that is not of the wire: stretches of the recording to cover, as [start, end] in milliseconds.
REDACTED_SPANS = "redacted_spans"


def apply(result: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Add to a finished recognition whatever analyses were asked for.

    Where PII is redacted, it is redacted first, so that no other analysis can quote it.

    Args:
        result: Result fields of the wire with at least `words`; `utterances`, `sentences` and `language_code` are
            read where they are there.
        options: The request's options. `content_safety_confidence`, `redact_pii_policies`, `redact_pii_sub`,
            `summary_type`, `summary_model`, `topics` and `language_code` are read.

    Returns:
        The result with the fields of the analyses, and with redacted words, text, utterances and sentences. Where
        audio is to be redacted too, `REDACTED_SPANS` says where. Where the result says that it is in a language that
        is not among `LANGUAGES`, the fields say that there is no analysis.

    Raises:
        JobFailed: PII was to be redacted in a language in which that cannot be done: it would be shown otherwise.

    Example:
        >>> words = [{"text": text, "start": n, "end": n} for n, text in enumerate("I love Boston.".split())]
        >>> done = apply({"words": words}, {"sentiment_analysis": True, "redact_pii": True})
        >>> done["text"], done["sentiment_analysis_results"][0]["sentiment"]
        ('I love ######.', 'POSITIVE')
    """
    from voxframe.local.analyses.passages import sentences_of

    done = dict(result)
    if not any(options.get(name) for name in OPTIONS):
        return done
    language = result.get("language_code") or "en"
    if language not in LANGUAGES:
        return done | _not_there(language, options)
    done |= _redacted(result, options)
    sentences = sentences_of(done["words"] or [])
    if options.get("auto_highlights"):
        from voxframe.local.analyses.key_phrases import key_phrases

        done["auto_highlights_result"] = key_phrases(sentences)
    if options.get("sentiment_analysis"):
        from voxframe.local.analyses.sentiment import sentiment

        done["sentiment_analysis_results"] = sentiment(sentences)
    if options.get("content_safety"):
        from voxframe.local.analyses.content_safety import content_safety

        done["content_safety_labels"] = content_safety(sentences, options)
    if options.get("iab_categories") or options.get("custom_topics"):
        from voxframe.local.analyses import topics
        from voxframe.local.analyses.semantic import encoder

        encode = encoder()
        if options.get("iab_categories"):
            done["iab_categories_result"] = topics.topics(sentences, encode)
        if options.get("custom_topics"):
            done["custom_topics_results"] = topics.custom_topics(sentences, options.get("topics") or (), encode)
    if options.get("auto_chapters"):
        from voxframe.local.analyses.chapters import chapters

        done["chapters"] = chapters(sentences)
    if options.get("summarization"):
        from voxframe.local.analyses.summary import summary

        done["summary"] = summary(sentences, options)
    return done


def _not_there(language: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a transcript in a language that cannot be analysed."""
    if options.get("redact_pii"):
        from voxframe.local.failed import JobFailed

        raise JobFailed(
            f"PII can be redacted in English only, and the language is {language!r}. Leave redact_pii off to have the "
            "transcript with everything in it."
        )
    return {name: value for option, (name, value) in _UNAVAILABLE.items() if options.get(option)}


def _redacted(result: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Entities, and whatever redaction changes. Entities are sought in what was said, and quoted as it is redacted."""
    wants_entities, wants_redaction = bool(options.get("entity_detection")), bool(options.get("redact_pii"))
    if not (wants_entities or wants_redaction):
        return {}
    from voxframe.local.analyses import entities
    from voxframe.local.analyses.redaction import Redaction

    words = result["words"] or []
    found = entities.find(words, result.get("language_code") or options.get("language_code"))
    cover = Redaction(
        words,
        found if wants_redaction else (),
        options.get("redact_pii_policies"),
        options.get("redact_pii_sub"),
    )
    changed: dict[str, Any] = {}
    if wants_entities:
        changed["entities"] = []
        for entity in found:
            said = [words[place] for place in entity.places]
            shown = entities.wire(entity, words)
            changed["entities"].append({**shown, "text": cover.quote(said)} if cover.touches(said) else shown)
    if wants_redaction:
        changed["words"] = cover.words(words)
        changed["text"] = " ".join(word["text"] for word in changed["words"])
        for name in ("utterances", "sentences"):
            if result.get(name):
                changed[name] = [cover.line(line) for line in result[name]]
        if options.get("redact_pii_audio"):
            changed[REDACTED_SPANS] = [list(span) for span in cover.spans]
    return changed
