"""JSON with segments or words: Whisper, tools that are built on it, and others of the same form."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import Any, TypeAlias

from voxframe._text import UNSPACED
from voxframe.formats.payload import (
    WHOLE,
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
#: Fields of a document with only a text, as OpenAI returns it. A text alone may be of the interface.
_ALONE = frozenset({"text", "language", "duration", "task", "segments", "words", "chunks", "usage", "logprobs"})
UNSPACED_TEXT = re.compile(UNSPACED)


# Names of the same field in different tools, the most telling first.
_TEXT = ("punctuated_word", "text", "body", "word", "words", "transcript", "content", "sentence", "utterance", "token")
_START = tuple(
    "start start_time begin from start_ts start_offset begin_offset ts begin_time start_timestamp offset".split()
)
_END = ("end", "end_time", "stop", "to", "end_ts", "end_offset", "end_timestamp")
_LENGTH = ("duration", "dur", "length")
_MS_ENDINGS = ("ms", "millis", "millisecond", "milliseconds")
_START_MS, _END_MS, _LENGTH_MS = (
    tuple(f"{name}_{ending}" for name in names for ending in _MS_ENDINGS) for names in (_START, _END, _LENGTH)
)
_SURE = ("probability", "score", "confidence", "conf", "p")
_SPEAKER = (
    "speaker_name display_name person_name speaker speaker_label speaker_id spk spkr participant participant_id "
    "participant_role speaker_tag voice who"
).split()
_RECORDING = ("session_id", "recording", "recording_id", "audio_filepath", "audio_file", "filename", "file", "file_id")
_LANGUAGE = ("language", "language_code", "languagecode")
_NAME_TABLES = frozenset({"speakers", "speakernames", "speakermap", "speakerlabels", "participants"})
_LISTS = "segments chunks utterances items lines transcript result results word_segments words".split()
_OF_WORDS = ("words", "word_segments")
#: What a field may be of, before its name: "SegmentStartTime".
_OF = re.compile("^(?:segment|word|utterance|turn|cue|display)(?=start|end|begin|text|speaker|content|duration)")
#: Characters per second between those of speech and those of times in milliseconds that are read as seconds.
_SLOWEST, _LONGEST_S = 0.47, 1000
_LOOKED_AT = 5  # objects at the beginning of a list that show what it is


def segments(document: Document) -> Any:
    """Read segments with text and times, as Whisper and many other tools write them, or words beside or without any.

    Sources: `whisper/transcribe.py`, `faster_whisper/transcribe.py`, `whisperx/schema.py`, the API reference of
    OpenAI's `/audio/transcriptions`, `pipelines/automatic_speech_recognition.py` of transformers, the transcript tag of
    Podcasting 2.0 and SegLST of CHiME. A word belongs to the segment that contains its middle, else to the one before.
    """
    name, items = _items(document)
    by_recording: dict[str, list[Document]] = {}
    for item in items:
        recording = label(_peek(item, _found(item, _RECORDING) or ""))
        by_recording.setdefault(PurePath(recording or name or "segments").stem, []).append(item)
    if len(by_recording) > 1:  # SegLST, manifests
        return [(recording, _segments({}, "", mine)) for recording, mine in by_recording.items()]
    return _segments(document, name, items)


def _segments(document: Document, name: str, items: Sequence[Document]) -> dict[str, Any]:
    unit = _unit(items)
    turns = []
    for item in items:
        speaker = speaker_of(item)
        listed = item.get("words") if isinstance(_peek(item, "words"), list) else None
        words = [_word(word, unit, speaker) for word in listed or () if isinstance(word, Mapping)]
        text = _written(item)
        start, end = _times(item, unit)
        turns.append(SpokenTurn(str(text), start, end, speaker, words, _sure(item), label(item.get("channel")), item))
    fields = {"text": str(document.get("text") or "").strip(), "audio_duration": number(document.get("duration"))}
    fields |= language_of(document)
    beside = document.get("words") if name != "words" else ()
    words = [_word(word, unit, None) for word in beside or () if isinstance(word, Mapping)]
    if words and not turns:
        return _of_words(words, document, unit, fields)
    if words and not any(turn.words for turn in turns):
        turns = _with_words(turns, words)
    if not turns and fields["text"]:
        return from_turns([SpokenTurn(str(fields["text"]))], **fields)
    single = [len(turn.text.split()) == 1 and not UNSPACED_TEXT.search(turn.text) for turn in turns]
    are_single = len(single) > 2 and sum(single) >= 0.9 * len(single) and not any(turn.words for turn in turns)
    if name in _OF_WORDS or are_single:
        return _of_words([_as_word(turn) for turn in turns], document, unit, fields)
    return from_turns(turns, **fields)


def _of_words(words: Sequence[SpokenWord], document: Document, unit: str, fields: Document) -> dict[str, Any]:
    """Return the payload of words; if they have no speakers, these may be in a list beside them."""
    spans = [] if any(word.speaker is not None for word in words) else _who_speaks(document, unit)
    if not spans:
        return from_words(words, **fields)
    turns = [
        turn._replace(words=[word._replace(speaker=turn.speaker) for word in turn.words])
        for turn in _with_words(spans, words)
        if turn.words
    ]
    return from_turns(turns, **fields)


def _who_speaks(document: Document, unit: str, depth: int = 2) -> list[SpokenTurn]:
    """Return who speaks when: the first list of objects with speakers and times, but no texts."""
    for value in dict(document).values():
        if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            items = [dict(item) for item in value]  # not yet read
            if all(speaker_of(item) and None not in _times(item, unit) and not first(item, _TEXT) for item in items):
                return [SpokenTurn("", *_times(item, unit), speaker_of(item), source=item) for item in value]
        if isinstance(value, Mapping) and depth and (spans := _who_speaks(value, unit, depth - 1)):
            return spans
    return []


def _as_word(turn: SpokenTurn) -> SpokenWord:
    return SpokenWord(turn.text, turn.start, turn.end, turn.confidence, turn.speaker, turn.channel, turn.source)


def _written(word: Document) -> str:
    """Return the text of a word, as BBC's Kaldi writes it with punctuation and capitals if it does."""
    text, punct = str(first(word, _TEXT) or ""), _peek(word, "punct")
    return str(word["punct"]) if isinstance(punct, str) and _letters(punct) == _letters(text) else text


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def _word(word: Document, unit: str, speaker: str | None) -> SpokenWord:
    start, end = _times(word, unit)
    of_word = speaker_of(word)
    return SpokenWord(_written(word), start, end, _sure(word), of_word or speaker, None, word)


def _items(document: Document) -> tuple[str, Sequence[Document]]:
    """Return the segments of a document, and their field: the first list of objects with texts and times."""
    name = "segments"
    if not isinstance(_peek(document, name), list):
        names = [at for at in _lists(document) if is_spoken(_peek(document, at)) and not _is_native(document, at)]
        with_speakers = (at for at in names if at not in _OF_WORDS and speaker_of(dict(_peek(document, at)[0])))
        name = next(with_speakers, next(iter(names), ""))
    return name, [item for item in document.get(name) or () if isinstance(item, Mapping)]


def _lists(document: Document) -> list[str]:
    """Return the fields that may have what was said: those of common names, then others than those of the interface."""
    others = (name for name in document if name not in _LISTS and name not in WHOLE)
    return [*_LISTS, *sorted(others, key=lambda name: "segment" not in name.casefold())]


def is_spoken(value: Any) -> bool:
    """Return True for a list of objects with a text and a time."""
    items = value[:_LOOKED_AT] if isinstance(value, list) else []
    if not items or not all(isinstance(item, Mapping) for item in items):
        return False
    item = items[0]
    names = {_plain(name) for item in items for name in item}  # whisperX gives no times to numbers
    timed = {_plain(name) for name in (*_START, *_END, *_START_MS, "audio_filepath")}  # a manifest has lengths only
    if "words" in item and "id" not in item and not names & timed and not _is_native(item, "words"):
        return is_spoken(_peek(item, "words"))
    return bool(names & {*map(_plain, _TEXT)}) and (
        bool(names & timed) or isinstance(_peek(item, "timestamp"), list | tuple)
    )


def _is_native(document: Document, name: str) -> bool:
    """Return True for words and turns of the interface: a text and times in milliseconds.

    Without an id, turns that have no words are of another tool, and whole numbers are seconds if more than one letter
    is said in each.
    """
    items = _peek(document, name)
    if name not in ("words", "utterances") or not is_spoken(items) or "text" not in items[0]:
        return False
    rows = [item for item in items if isinstance(item, Mapping)]
    times = [[item.get(side) for side in ("start", "end")] for item in rows]
    if any(isinstance(time, float) and not time.is_integer() for pair in times for time in pair):
        return False
    if "id" in document:
        return True
    spans = [
        (end - start, len(str(row.get("text") or "")))
        for row, (start, end) in zip(rows, times, strict=True)
        if isinstance(start, int | float) and isinstance(end, int | float)
    ]
    is_slow = 0 < sum(length for length, _ in spans) < sum(letters for _, letters in spans)
    return not is_slow and "words" in (name, *items[0])


def language_of(document: Document) -> dict[str, Any]:
    """Return the language that a document states, as fields of a payload."""
    return language_fields(first(document, _LANGUAGE))


def first(item: Document, names: Sequence[str]) -> Any:
    """Return the first of some fields that an object has, or None."""
    name = _found(item, names)
    return None if name is None else item[name]


def _found(item: Document, names: Sequence[str]) -> str | None:
    """Return the field of an object with one of some names: as it is, in camel case or in capitals."""
    ranks = _ranks(tuple(names))
    fields = [name for name in item if _plain(name) in ranks and _is_value(_peek(item, name))]
    return min(fields, key=lambda name: ranks[_plain(name)], default=None)


@lru_cache
def _ranks(names: tuple[str, ...]) -> dict[str, int]:
    return {_plain(name): rank for rank, name in reversed(list(enumerate(names)))}


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    """Return the name of a field without case, blanks, hyphens and underscores, and without what it is of."""
    return _OF.sub("", re.sub(r"[\s_-]", "", name).casefold())


def _peek(item: Document, name: str) -> Any:
    """Return a field without remembering that it was read."""
    return dict.get(item, name) if isinstance(item, dict) else item.get(name)


def _is_value(value: Any) -> bool:
    return value is not None and not isinstance(value, list)


def speaker_of(item: Document) -> str | None:
    """Return the speaker of an object, in any of the common spellings."""
    value = first(item, _SPEAKER)
    return label(first(value, ("name", "display_name", "label", "id", "@id")) if isinstance(value, Mapping) else value)


def names_beside(document: Document) -> dict[str, str]:
    """Return names by label, from a table beside what was said: an object, or a list of objects."""
    names = {}
    for field, table in dict(document).items():
        if _plain(field) not in _NAME_TABLES:
            continue
        pairs = list(table.items()) if isinstance(table, Mapping) else []
        if isinstance(table, list):
            rows = [dict(row) for row in table if isinstance(row, Mapping)]  # it stays in `extra` as it is
            pairs = [(first(row, ("id", "label", "speaker", "speaker_id", "spk", "key")), row) for row in rows]
            pairs += [] if rows else list(enumerate(table))
        for key, value in pairs:
            name = first(dict(value), ("name", "display_name")) if isinstance(value, Mapping) else value
            if key is not None and isinstance(name, str) and name.strip():
                names[str(key)] = name
    return names


def _sure(item: Document) -> float | None:
    value = first(item, _SURE)
    return number(value) if isinstance(value, int | float | str) else None


def _times(item: Document, unit: str) -> tuple[int | None, int | None]:
    """Return start and end of an object in milliseconds."""
    pair = item.get("timestamp", item.get("timestamps"))
    if isinstance(pair, list | tuple) and len(pair) == 2:
        start, end = pair
    else:
        start, end = first(item, _START), first(item, _END)
        length = first(item, _LENGTH) if end is None and isinstance(start, int | float) else None
        end = start + length if isinstance(length, int | float) else end
    begin, stop = _ms(first(item, _START_MS), start, unit), _ms(first(item, _END_MS), end, unit)
    length = first(item, _LENGTH_MS) if stop is None and begin is not None else None
    return begin, begin + round(length) if begin is not None and isinstance(length, int | float) else stop


def _ms(exact: Any, value: Any, unit: str) -> int | None:
    """Return a time in milliseconds, given as such or in a unit."""
    milliseconds = exact if exact is not None else value if unit == "ms" else None
    return ms(value) if milliseconds is None else round(float(milliseconds))


def _unit(items: Sequence[Document]) -> str:
    """Return the unit of the times of segments; see `unit_of`."""
    spans = []
    for item in items:
        start, end = (None if (n := _found(item, names)) is None else _peek(item, n) for names in (_START, _END))
        text = next((_peek(item, n) for n in _TEXT if isinstance(_peek(item, n), str)), "")
        spans.append((text, start, end))
    return unit_of(spans)


def unit_of(spans: Iterable[tuple[str, Any, Any]]) -> str:
    """Return "ms" if whole numbers as seconds would mean speech that is a hundred times too slow, else "s".

    Args:
        spans: Text, start and end of rows.
    """
    letters, length, last = 0, 0.0, 0.0
    for text, start, end in spans:
        if any(isinstance(time, str) or (isinstance(time, float) and time % 1 > 0) for time in (start, end)):
            return "s"
        if isinstance(start, int | float) and isinstance(end, int | float) and math.isfinite(end - start):
            letters, length, last = letters + len(text), length + end - start, max(last, end)
    return "ms" if length > 0 and last > _LONGEST_S and letters / length < _SLOWEST else "s"


def _with_words(turns: Sequence[SpokenTurn], words: Sequence[SpokenWord]) -> list[SpokenTurn]:
    """Give each word to the last turn that starts before its middle."""
    starts = [turn.start or 0 for turn in turns]
    by_turn: list[list[SpokenWord]] = [[] for _ in turns]
    for word in words:
        start = word.start or 0
        middle = (start + (start if word.end is None else word.end)) / 2
        by_turn[max(bisect_right(starts, middle) - 1, 0)].append(word)
    return [turn._replace(words=mine) for turn, mine in zip(turns, by_turn, strict=True)]


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
                source=run[0],
            )
            for run in runs
            if "".join(token["text"] for token in run).strip()
        ]
        times = _offset(segment, "from"), _offset(segment, "to")
        turns.append(SpokenTurn(segment["text"], *times, speaker, words, source=segment))
    model = (document.get("model") or {}).get("type")
    return from_turns(turns, acoustic_model=model, **language_fields((document.get("result") or {}).get("language")))


def _offset(value: Document, name: str) -> int | None:
    return (value.get("offsets") or {}).get(name)


def is_whisper(document: Document) -> bool:
    """Return True for segments or words as Whisper names them, also without any."""
    segments, words = document.get("segments"), document.get("words")
    if segments:
        return isinstance(segments, list) and isinstance(segments[0], Mapping) and "text" in segments[0]
    if isinstance(words, list) and words:
        return "text" in document and is_spoken(words) and "word" in words[0]
    return segments == [] and "text" in document and "language" in document


def is_segments(document: Document) -> bool:
    """Return True for a list of objects with texts and times, for a text alone, and for OpenAI's empty answers."""
    if any(is_spoken(_peek(document, name)) and not _is_native(document, name) for name in _lists(document)):
        return True
    lists = [value for name in _LISTS if isinstance(value := document.get(name), list)]
    return isinstance(document.get("text"), str) and {"text"} < document.keys() <= _ALONE and not any(lists)


def is_whisper_cpp(document: Document) -> bool:
    """Return True for segments with offsets, or without any segment."""
    segments = document.get("transcription")
    if not isinstance(segments, list):
        return False
    return "result" in document if not segments else isinstance(segments[0], Mapping) and "offsets" in segments[0]
