"""JSON of Whisper and of tools that are built on it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from voxframe.importers.payload import (
    SpokenTurn,
    SpokenWord,
    from_turns,
    from_words,
    label,
    language_fields,
    ms,
    number,
)

Document: TypeAlias = Mapping[str, Any]


def whisper(document: Document) -> dict[str, Any]:
    """Read Whisper, faster-whisper, whisperX and OpenAI's verbose or diarized JSON.

    Source: `whisper/transcribe.py`, `faster_whisper/transcribe.py`, `whisperx/schema.py`, and the API reference of
    OpenAI's `/audio/transcriptions`. `avg_logprob` is no confidence and is left out. OpenAI lists words beside the
    segments or without any; a word belongs to the segment that contains its middle, else to the one before.
    """
    turns = []
    for segment in document.get("segments") or ():
        speaker = label(segment.get("speaker"))
        words = [
            SpokenWord(
                word["word"],
                ms(word.get("start")),
                ms(word.get("end")),
                number(word.get("probability", word.get("score"))),
                label(word.get("speaker", speaker)),
            )
            for word in segment.get("words") or ()
        ]
        turns.append(SpokenTurn(segment["text"], ms(segment.get("start")), ms(segment.get("end")), speaker, words))
    fields = {"text": (document.get("text") or "").strip(), "audio_duration": number(document.get("duration"))}
    language = language_fields(document.get("language"))
    beside = [
        SpokenWord(word["word"], ms(word.get("start")), ms(word.get("end")), number(word.get("probability")))
        for word in document.get("words") or ()
    ]
    if beside and not turns:
        return from_words(beside, **fields, **language)
    if beside and not any(turn.words for turn in turns):
        turns = _with_words(turns, beside)
    return from_turns(turns, **fields, **language)


def _with_words(turns: Sequence[SpokenTurn], words: Sequence[SpokenWord]) -> list[SpokenTurn]:
    """Give each word to the last turn that starts before its middle."""
    starts = [turn.start or 0 for turn in turns]
    found: list[list[SpokenWord]] = [[] for _ in turns]
    for word in words:
        start = word.start or 0
        middle = (start + (start if word.end is None else word.end)) / 2
        found[max(bisect_right(starts, middle) - 1, 0)].append(word)
    return [turn._replace(words=mine) for turn, mine in zip(turns, found, strict=True)]


def whisper_cpp(document: Document) -> dict[str, Any]:
    """Read the JSON of whisper.cpp, `--output-json` or `--output-json-full`.

    Source: `examples/cli/cli.cpp`. Tokens make a word until the next one that begins with a space; its confidence is
    the mean of the tokens' `p`, as Whisper's own `probability` is. The speaker "?" is unknown.
    """
    turns = []
    for segment in document["transcription"]:
        runs: list[list[Document]] = []
        for token in segment.get("tokens") or ():
            if token["text"].startswith("[_"):  # a mark, such as [_BEG_]
                continue
            if token["text"].startswith(" ") or not runs:
                runs.append([])
            runs[-1].append(token)
        speaker = None if segment.get("speaker") == "?" else label(segment.get("speaker"))
        words = [
            SpokenWord(
                "".join(token["text"] for token in run),
                _offset(run[0], "from"),
                _offset(run[-1], "to"),
                sum(token["p"] for token in run) / len(run) if all("p" in token for token in run) else None,
                speaker,
            )
            for run in runs
            if "".join(token["text"] for token in run).strip()
        ]
        turns.append(SpokenTurn(segment["text"], _offset(segment, "from"), _offset(segment, "to"), speaker, words))
    model = (document.get("model") or {}).get("type")
    return from_turns(turns, acoustic_model=model, **language_fields((document.get("result") or {}).get("language")))


def _offset(value: Document, name: str) -> int | None:
    return (value.get("offsets") or {}).get(name)


def is_whisper(document: Document) -> bool:
    """Return True for segments, also without any, and for words of OpenAI without segments."""
    if segments := document.get("segments"):
        return isinstance(segments, list) and isinstance(segments[0], Mapping) and "text" in segments[0]
    words = document.get("words")
    spoken = isinstance(words, list) and bool(words) and isinstance(words[0], Mapping) and "word" in words[0]
    return "text" in document and (spoken or (segments == [] and "language" in document))


def is_whisper_cpp(document: Document) -> bool:
    """Return True for segments with offsets, or without any segment."""
    segments = document.get("transcription")
    if not isinstance(segments, list):
        return False
    return "result" in document if not segments else isinstance(segments[0], Mapping) and "offsets" in segments[0]
