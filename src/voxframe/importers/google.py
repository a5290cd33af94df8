"""JSON of Google Cloud Speech-to-Text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeAlias

from voxframe.importers.payload import (
    SpokenWord,
    from_turns,
    from_words,
    in_time,
    label,
    language_fields,
    ms,
    number,
    turn_of,
)

Document: TypeAlias = Mapping[str, Any]
_RESULT = frozenset({"alternatives", "resultEndTime", "resultEndOffset", "result_end_time", "result_end_offset"})
_BATCH = frozenset({"transcript", "inlineResult", "inline_result"})
_SNAKE = re.compile(r"_([a-z])")


def google(document: Document) -> Any:
    """Read a response of Google Cloud Speech-to-Text, v1 or v2, or its batch, as a list of recordings and payloads.

    A confidence of 0.0 means that it is not set. With speaker tags (v1), the last result repeats all words and is the
    only one that has them. Field names may be in camel case, as in REST, or in snake case, as in the Python library.

    Source: the references of `SpeechRecognitionResult` and, for a batch, `BatchRecognizeFileResult`.
    """
    answer = _camel_case(document.get("response", document))
    if isinstance(answer["results"], Mapping):
        files = {
            uri: (file.get("inlineResult") or file).get("transcript") or {} for uri, file in answer["results"].items()
        }
        return [(PurePath(uri).stem, _google_file(found.get("results") or ())) for uri, found in files.items()]
    return _google_file(answer["results"])


def _google_file(results: Sequence[Document]) -> dict[str, Any]:
    found = [(result, result["alternatives"][0]) for result in results if result.get("alternatives")]
    if found and any(word.get("speakerTag") for word in found[-1][1].get("words") or ()):
        found = [found[-1]]
    several = len({result.get("channelTag") for result, _ in found}) > 1
    turns = []
    for result, best in found:
        channel = label(result.get("channelTag")) if several else None
        words = [
            SpokenWord(
                word["word"],
                ms(word.get("startTime", word.get("startOffset"))),
                ms(word.get("endTime", word.get("endOffset"))),
                number(word.get("confidence")) or None,
                label(word.get("speakerLabel") or word.get("speakerTag") or None),
                channel,
            )
            for word in best.get("words") or ()
        ]
        turns.append(turn_of(words, None, best.get("transcript"), number(best.get("confidence")) or None, channel))
    language = language_fields(found[0][0].get("languageCode") if found else None)
    turns = in_time(turns) if several else turns
    if any(word.speaker for turn in turns for word in turn.words):
        return from_words([word for turn in turns for word in turn.words], **language)
    return from_turns(turns, **language)


def _camel_case(value: Any) -> Any:
    """Return a document with the names of its fields in camel case. Names with other characters, as in URIs, stay."""
    if isinstance(value, Mapping):
        return {
            _SNAKE.sub(lambda m: m[1].upper(), name) if name.isidentifier() else name: _camel_case(inner)
            for name, inner in value.items()
        }
    return [_camel_case(inner) for inner in value] if isinstance(value, list) else value


def is_google(document: Document) -> bool:
    """Return True for results with alternatives, or with only an end if nothing was said, or for those of a batch."""
    answer = document.get("response", document)
    results = answer.get("results") if isinstance(answer, Mapping) else None
    if isinstance(results, Mapping):
        return any(isinstance(file, Mapping) and file.keys() & _BATCH for file in results.values())
    return isinstance(results, list) and any(isinstance(one, Mapping) and one.keys() & _RESULT for one in results)
