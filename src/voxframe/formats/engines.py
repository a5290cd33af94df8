"""JSON of other speech engines. Each function takes the parsed document, and names its source."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeAlias

from voxframe.formats.payload import (
    SpokenTurn,
    SpokenWord,
    from_turns,
    from_words,
    in_time,
    label,
    language_fields,
    ms,
    number,
    tracked,
    turn_of,
)

Document: TypeAlias = Mapping[str, Any]

# Fields of Google's results, and of the recordings of a batch.
_RESULT = frozenset({"alternatives", "resultEndTime", "resultEndOffset", "result_end_time", "result_end_offset"})
_BATCH = frozenset({"transcript", "inlineResult", "inline_result"})
_SNAKE = re.compile(r"_([a-z])")


def deepgram(document: Document) -> dict[str, Any]:
    """Read the response of Deepgram's `/v1/listen` to recorded audio. Source: its API reference.

    Numbers of speakers begin at 0 in each channel, so with several channels speaker 1 of channel 0 is "0.1".
    """
    results, metadata = document["results"], document.get("metadata") or {}
    several = len(results["channels"]) > 1
    fields = {"id": metadata.get("request_id"), "audio_duration": number(metadata.get("duration"))}
    best = [(channel.get("alternatives") or [{}])[0] for channel in results["channels"]]
    if len(best) == 1:
        fields |= {"text": best[0].get("transcript"), "confidence": number(best[0].get("confidence"))}
    fields |= language_fields(results["channels"][0].get("detected_language") if results["channels"] else None)
    if results.get("utterances"):
        turns = []
        for turn in results["utterances"]:
            channel = label(turn.get("channel")) if several else None
            spoken = _deepgram_words(turn.get("words"), channel)
            turns.append(_turn(turn, turn["transcript"], _deepgram_speaker(turn, channel), spoken, channel))
        return from_turns(in_time(turns), **fields)
    words = [
        word
        for n, alternative in enumerate(best)
        for word in _deepgram_words(alternative.get("words"), str(n) if several else None)
    ]
    return from_words(in_time(words), **fields)


def rev(document: Document) -> dict[str, Any]:
    """Read a transcript of Rev or Rev AI. Source: its API reference, `application/vnd.rev.transcript.v1.0+json`.

    Spaces are elements of the type "punct". With the option `skip_punctuation` there are none, and spaces are added.
    Elements of the type "unknown", such as "<inaudible>", are words without times.
    """
    turns = []
    for monologue in document["monologues"]:
        name = (monologue.get("speaker_info") or {}).get("display_name")
        speaker = label(name) or label(monologue.get("speaker"))
        words, opening = list[SpokenWord](), ""
        spaced = True
        for element in monologue["elements"]:
            value = element["value"]
            if element["type"] != "punct":
                words.append(_word(element, opening + value, speaker, times=("ts", "end_ts")))
                opening, spaced = "", False
            elif value.strip():
                if words and not spaced and not value[0].isspace():
                    words[-1] = words[-1]._replace(text=words[-1].text + value.strip())
                else:  # such as an opening quotation mark
                    opening += value.strip()
                spaced = value[-1].isspace()
            else:
                spaced = True
        if opening and words:
            words[-1] = words[-1]._replace(text=f"{words[-1].text} {opening}")
        punctuated = any(element["type"] == "punct" for element in monologue["elements"])
        text = "".join(element["value"] for element in monologue["elements"]) if punctuated else None
        turns.append(turn_of(words, speaker, text)._replace(source=monologue))
    return from_turns(turns)


def aws(document: Document) -> dict[str, Any]:
    """Read the output of Amazon Transcribe: its items, or else its segments.

    A word without a speaker has that of the last item or segment of `speaker_labels` that begins no later. Source: its
    developer guide, "Data input and output".
    """
    results = document["results"]
    spoken_by = list[tuple[float, Any]]()  # the starts of items, or of segments without any, and their speakers
    for segment in (results.get("speaker_labels") or {}).get("segments") or ():
        for item in segment.get("items") or (segment,):
            spoken_by.append((float(item["start_time"]), segment.get("speaker_label")))
    spoken_by.sort(key=lambda pair: pair[0])
    channels = [
        (c.get("channel_label"), c["items"]) for c in (results.get("channel_labels") or {}).get("channels") or ()
    ]
    words = list[SpokenWord]()
    for channel, items in channels or [(None, results.get("items") or ())]:
        for item in items:
            best = item["alternatives"][0]
            if item["type"] == "punctuation":
                if words:
                    words[-1] = words[-1]._replace(text=words[-1].text + best["content"])
                continue
            speaker = item.get("speaker_label")
            if speaker is None and item.get("start_time") and spoken_by:
                before = bisect(spoken_by, float(item["start_time"]), key=lambda pair: pair[0])
                speaker = spoken_by[max(0, before - 1)][1]
            times = ms(item.get("start_time")), ms(item.get("end_time"))
            sure = number(best.get("confidence"))
            words.append(SpokenWord(best["content"], *times, sure, label(speaker), channel, item))
    text = " ".join(part["transcript"] for part in results.get("transcripts") or ())
    words = in_time(words) if channels else words
    fields = {"id": document.get("jobName"), "text": text, **language_fields(results.get("language_code"))}
    if words:
        return from_words(words, **fields)
    turns = []
    for segment in results.get("audio_segments") or ():
        times = ms(segment.get("start_time")), ms(segment.get("end_time"))
        speaker, channel = label(segment.get("speaker_label")), label(segment.get("channel_label"))
        turns.append(SpokenTurn(segment["transcript"], *times, speaker, channel=channel, source=segment))
    return from_turns(turns, **fields)


def azure(document: Document) -> dict[str, Any]:
    """Read a batch or fast transcription of Azure Speech. Source: its documentation. A tick is 100 ns."""
    if "phrases" in document:
        phrases = [(phrase, phrase) for phrase in document["phrases"]]
    else:
        phrases = [(p, p["nBest"][0]) for p in document["recognizedPhrases"] if p.get("nBest")]
    several = len({phrase.get("channel") for phrase, _ in phrases}) > 1
    turns = []
    for phrase, best in phrases:
        speaker, channel = label(phrase.get("speaker")), label(phrase.get("channel")) if several else None
        spoken = best.get("displayWords") or best.get("words") or ()
        words = []
        for word in spoken:
            text, sure = word.get("displayText") or word.get("word") or word.get("text"), number(word.get("confidence"))
            words.append(SpokenWord(text or "", *_azure_times(word), sure, speaker, channel, word))
        text = best.get("display") or best.get("text") or best.get("lexical") or ""
        sure = number(best.get("confidence"))
        turns.append(SpokenTurn(text, *_azure_times(phrase), speaker, words, sure, channel, phrase))
    duration = document.get("durationMilliseconds")
    if duration is None and document.get("durationInTicks") is not None:
        duration = document["durationInTicks"] / 10_000
    language = language_fields(phrases[0][0].get("locale") if phrases else None)
    turns = in_time(turns) if several else turns
    return from_turns(turns, audio_duration=None if duration is None else duration / 1000, **language)


def speechmatics(document: Document) -> dict[str, Any]:
    """Read a transcript of Speechmatics, format json-v2. The speaker UU is unknown.

    Source: its documentation, and `speechmatics/adapters.py` of its Python library for punctuation that attaches to the
    previous word (default), to the next, to both or to none.
    """
    words, last, opening, language = list[SpokenWord](), dict[str | None, int](), "", None
    hyphenated = False
    for item in document["results"]:
        if not item.get("alternatives"):  # such as a change of speaker
            continue
        best, channel = item["alternatives"][0], label(item.get("channel"))
        language = language or best.get("language")
        side = item.get("attaches_to", "previous") if item["type"] == "punctuation" else "none"
        before = last.get(channel)
        if side == "next":
            opening += best["content"]
        elif before is not None and side in ("previous", "both"):
            words[before] = words[before]._replace(text=words[before].text + best["content"])
            hyphenated = side == "both"
        else:
            times, sure = (ms(item.get("start_time")), ms(item.get("end_time"))), number(best.get("confidence"))
            speaker = None if best.get("speaker") == "UU" else label(best.get("speaker"))
            word = SpokenWord(opening + best["content"], *times, sure, speaker, channel, item)
            if hyphenated and before is not None:  # one word, such as "for-sure"
                confidences = [value for value in (words[before].confidence, word.confidence) if value is not None]
                text = words[before].text + word.text
                words[before] = words[before]._replace(
                    text=text, end=word.end, confidence=min(confidences, default=None)
                )
            else:
                last[channel] = len(words)
                words.append(word)
            opening, hyphenated = "", False
    job = document.get("job") or {}
    setting = ((document.get("metadata") or {}).get("transcription_config") or {}).get("language")
    fields = language_fields(language if setting == "auto" else setting)
    return from_words(words, id=job.get("id"), audio_duration=number(job.get("duration")), **fields)


def gladia(document: Document) -> dict[str, Any]:
    """Read a result of Gladia's pre-recorded API, v2. Source: its API reference."""
    result = document.get("result", document)
    transcription = result["transcription"]
    channels = (result.get("metadata") or {}).get("number_of_distinct_channels") or 1
    turns = []
    for turn in transcription.get("utterances") or ():
        speaker = label(turn.get("speaker"))
        channel = label(turn.get("channel")) if channels > 1 else None
        words = [_word(word, word["word"], speaker, channel) for word in turn.get("words") or ()]
        turns.append(_turn(turn, turn["text"], speaker, words, channel))
    duration = number((result.get("metadata") or {}).get("audio_duration"))
    languages = transcription.get("languages") or [None]
    return from_turns(
        turns,
        id=document.get("id"),
        text=transcription.get("full_transcript"),
        audio_duration=duration,
        **language_fields(languages[0]),
    )


def is_watson(document: Document) -> bool:
    """Return True for results of IBM Watson, or for a job with them."""
    results = document.get("results")
    first = results[0] if isinstance(results, list) and results else None
    if isinstance(first, Mapping) and "results" in first:
        return is_watson(first)
    best = first.get("alternatives") if isinstance(first, Mapping) else None
    return isinstance(best, list) and bool(best) and isinstance(best[0], Mapping) and "timestamps" in best[0]


def watson(document: Document) -> dict[str, Any]:
    """Read the results of IBM Watson Speech to Text; a word has the speaker of the label with its start.

    Source: the reference of `SpeechRecognitionResults`.
    """
    if "results" in document["results"][0]:
        return watson(document["results"][0])
    speakers = {row["from"]: label(row.get("speaker")) for row in document.get("speaker_labels") or ()}
    words = list[SpokenWord]()
    for result in document["results"]:
        best = result["alternatives"][0]
        timed, sure = best.get("timestamps") or (), best.get("word_confidence") or ()
        words += [
            SpokenWord(text, ms(start), ms(end), number(confidence), speakers.get(start))
            for (text, start, end), (_, confidence) in zip(timed, sure or [("", None)] * len(timed), strict=True)
        ]
    return from_words(words)


def google(document: Document) -> Any:
    """Read a response of Google Cloud Speech-to-Text, v1 or v2, or its batch, as a list of recordings and payloads.

    A confidence of 0.0 means that it is not set. With speaker tags (v1), the last result repeats all words and is the
    only one that has them. Field names may be in camel case, as in REST, or in snake case, as in the Python library.

    Source: the references of `SpeechRecognitionResult` and, for a batch, `BatchRecognizeFileResult`.
    """
    answer = tracked(_camel_case(document.get("response", document)))
    if isinstance(answer["results"], Mapping):
        files = {
            uri: (file.get("inlineResult") or file).get("transcript") or {} for uri, file in answer["results"].items()
        }
        return [(PurePath(uri).stem, _google_file(response.get("results") or ())) for uri, response in files.items()]
    return _google_file(answer["results"])


def _google_file(results: Sequence[Document]) -> dict[str, Any]:
    pairs = [(result, result["alternatives"][0]) for result in results if result.get("alternatives")]
    if pairs and any(word.get("speakerTag") for word in pairs[-1][1].get("words") or ()):
        pairs = [pairs[-1]]
    several = len({result.get("channelTag") for result, _ in pairs}) > 1
    turns = []
    for result, best in pairs:
        channel = label(result.get("channelTag")) if several else None
        words = []
        for word in best.get("words") or ():
            start, end = (ms(word.get(f"{side}Time", word.get(f"{side}Offset"))) for side in ("start", "end"))
            speaker = label(word.get("speakerLabel") or word.get("speakerTag") or None)
            sure = number(word.get("confidence")) or None
            words.append(SpokenWord(word["word"], start, end, sure, speaker, channel, word))
        sure = number(best.get("confidence")) or None
        turns.append(turn_of(words, None, best.get("transcript"), sure, channel)._replace(source=result))
    language = language_fields(pairs[0][0].get("languageCode") if pairs else None)
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
    return isinstance(results, list) and any(
        isinstance(result, Mapping) and result.keys() & _RESULT for result in results
    )


def _word(
    word: Document, text: str, speaker: str | None, channel: str | None = None, times: Sequence[str] = ("start", "end")
) -> SpokenWord:
    """Return a word with its confidence, and its times in seconds from fields of these names."""
    start, end = (ms(word.get(name)) for name in times)
    return SpokenWord(text, start, end, number(word.get("confidence")), speaker, channel, word)


def _turn(
    turn: Document, text: str, speaker: str | None, words: Sequence[SpokenWord], channel: str | None
) -> SpokenTurn:
    """Return a turn with its confidence and times, in seconds."""
    start, end = ms(turn.get("start")), ms(turn.get("end"))
    return SpokenTurn(text, start, end, speaker, words, number(turn.get("confidence")), channel, turn)


def _deepgram_words(words: Sequence[Document] | None, channel: str | None) -> list[SpokenWord]:
    return [
        _word(word, word.get("punctuated_word") or word["word"], _deepgram_speaker(word, channel), channel)
        for word in words or ()
    ]


def _deepgram_speaker(value: Document, channel: str | None) -> str | None:
    speaker = label(value.get("speaker"))
    return speaker if channel is None or speaker is None else f"{channel}.{speaker}"


def _azure_times(value: Document) -> tuple[int | None, int | None]:
    """Return start and end in milliseconds."""
    for unit, size in (("Milliseconds", 1), ("InTicks", 10_000)):
        if value.get(f"offset{unit}") is not None:
            start, length = value[f"offset{unit}"] / size, value.get(f"duration{unit}")
            return round(start), None if length is None else round(start + length / size)
    return None, None
