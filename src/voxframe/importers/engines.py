"""JSON of other speech engines. Each function takes the parsed document, and names its source.

`ENGINES` recognises each by the fields that only it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from voxframe._text import join_words
from voxframe.importers.payload import SpokenTurn, SpokenWord, from_turns, from_words, label, ms, number

Document: TypeAlias = Mapping[str, Any]


def whisper(document: Document) -> dict[str, Any]:
    """Read Whisper, faster-whisper, whisperX and OpenAI's verbose or diarized JSON.

    Source: `whisper/transcribe.py`, `faster_whisper/transcribe.py`, `whisperx/schema.py`, and the API reference of
    OpenAI's `/audio/transcriptions`. `avg_logprob` is no confidence and is left out.
    """
    turns = []
    for segment in document["segments"]:
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
    language = _language(document.get("language"))
    top = document.get("words")
    if top and not any(turn.words for turn in turns):
        spoken = [SpokenWord(word["word"], ms(word.get("start")), ms(word.get("end"))) for word in top]
        return from_words(spoken, **fields, **language)
    return from_turns(turns, **fields, **language)


def whisper_cpp(document: Document) -> dict[str, Any]:
    """Read the JSON of whisper.cpp, `--output-json` or `--output-json-full`.

    Source: `examples/cli/cli.cpp`. Tokens make a word until the next one that begins with a space; its confidence is
    the mean of the tokens' `p`, as Whisper's own `probability` is.
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
        speaker = label(segment.get("speaker"))
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
    return from_turns(turns, acoustic_model=model, **_language((document.get("result") or {}).get("language")))


def deepgram(document: Document) -> dict[str, Any]:
    """Read the response of Deepgram's `/v1/listen` to recorded audio. Source: its API reference."""
    results, metadata = document["results"], document.get("metadata") or {}
    several = len(results["channels"]) > 1
    fields = {"id": metadata.get("request_id"), "audio_duration": number(metadata.get("duration"))}
    best = [(channel.get("alternatives") or [{}])[0] for channel in results["channels"]]
    if not several:
        fields |= {"text": best[0].get("transcript"), "confidence": number(best[0].get("confidence"))}
    fields |= _language(results["channels"][0].get("detected_language") if results["channels"] else None)
    if results.get("utterances"):
        return from_turns(
            (
                SpokenTurn(
                    turn["transcript"],
                    ms(turn.get("start")),
                    ms(turn.get("end")),
                    label(turn.get("speaker")),
                    _deepgram_words(turn.get("words"), label(turn.get("channel")) if several else None),
                    number(turn.get("confidence")),
                    label(turn.get("channel")) if several else None,
                )
                for turn in results["utterances"]
            ),
            **fields,
        )
    words = [
        word
        for n, alternative in enumerate(best)
        for word in _deepgram_words(alternative.get("words"), str(n) if several else None)
    ]
    return from_words(_by_time(words), **fields)


def rev(document: Document) -> dict[str, Any]:
    """Read a transcript of Rev or Rev AI. Source: its API reference, `application/vnd.rev.transcript.v1.0+json`."""
    turns = []
    for monologue in document["monologues"]:
        speaker = label(monologue.get("speaker"))
        words = list[SpokenWord]()
        for element in monologue["elements"]:
            if element["type"] == "text":
                times = ms(element.get("ts")), ms(element.get("end_ts"))
                words.append(SpokenWord(element["value"], *times, number(element.get("confidence")), speaker))
            elif words and element["type"] == "punct":
                words[-1] = words[-1]._replace(text=words[-1].text + element["value"].strip())
        turns.append(_turn(words, speaker, "".join(element["value"] for element in monologue["elements"])))
    return from_turns(turns)


def google(document: Document) -> dict[str, Any]:
    """Read a response of Google Cloud Speech-to-Text, v1 or v2. Source: the reference of `SpeechRecognitionResult`.

    A confidence of 0.0 means that it is not set. With speaker labels, the last result repeats all words and is the only
    one that has them.
    """
    results = [result for result in document.get("response", document)["results"] if result.get("alternatives")]
    found = [(result, result["alternatives"][0]) for result in results]
    if found and any(word.get("speakerTag") for word in found[-1][1].get("words") or ()):
        found = [found[-1]]
    turns = []
    for result, best in found:
        channel = label(result.get("channelTag"))
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
        turns.append(_turn(words, None, best.get("transcript"), number(best.get("confidence")) or None, channel))
    language = _language(found[0][0].get("languageCode") if found else None)
    if any(word.speaker for turn in turns for word in turn.words):
        return from_words([word for turn in turns for word in turn.words], **language)
    return from_turns(turns, **language)


def aws(document: Document) -> dict[str, Any]:
    """Read the output of Amazon Transcribe. Source: its developer guide, "Data input and output"."""
    results = document["results"]
    speakers = {
        item.get("start_time"): segment.get("speaker_label")
        for segment in (results.get("speaker_labels") or {}).get("segments") or ()
        for item in segment.get("items") or ()
    }
    channels = [
        (c.get("channel_label"), c["items"]) for c in (results.get("channel_labels") or {}).get("channels") or ()
    ]
    words = list[SpokenWord]()
    for channel, items in channels or [(None, results["items"])]:
        for item in items:
            best = item["alternatives"][0]
            if item["type"] == "punctuation":
                if words:
                    words[-1] = words[-1]._replace(text=words[-1].text + best["content"])
                continue
            speaker = item.get("speaker_label", speakers.get(item.get("start_time")))
            times = ms(item.get("start_time")), ms(item.get("end_time"))
            words.append(SpokenWord(best["content"], *times, number(best.get("confidence")), label(speaker), channel))
    text = " ".join(part["transcript"] for part in results.get("transcripts") or ())
    words = _by_time(words) if channels else words
    return from_words(words, id=document.get("jobName"), text=text, **_language(results.get("language_code")))


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
        words = [
            SpokenWord(
                word.get("displayText") or word.get("word") or word["text"],
                *_azure_times(word),
                number(word.get("confidence")),
                speaker,
                channel,
            )
            for word in spoken
        ]
        text = best.get("display") or best.get("text") or best.get("lexical") or ""
        turns.append(SpokenTurn(text, *_azure_times(phrase), speaker, words, number(best.get("confidence")), channel))
    duration = document.get("durationMilliseconds")
    if duration is None and document.get("durationInTicks") is not None:
        duration = document["durationInTicks"] / 10_000
    language = _language(phrases[0][0].get("locale") if phrases else None)
    return from_turns(turns, audio_duration=None if duration is None else duration / 1000, **language)


def speechmatics(document: Document) -> dict[str, Any]:
    """Read a transcript of Speechmatics, format json-v2. Source: its documentation. The speaker UU is unknown."""
    words = list[SpokenWord]()
    for item in document["results"]:
        if not item.get("alternatives"):
            continue
        best = item["alternatives"][0]
        if item["type"] == "punctuation" and words and item.get("attaches_to", "previous") != "next":
            words[-1] = words[-1]._replace(text=words[-1].text + best["content"])
            continue
        times = ms(item.get("start_time")), ms(item.get("end_time"))
        speaker = best.get("speaker")
        words.append(
            SpokenWord(
                best["content"],
                *times,
                number(best.get("confidence")),
                None if speaker == "UU" else label(speaker),
                label(item.get("channel")),
            )
        )
    job = document.get("job") or {}
    language = ((document.get("metadata") or {}).get("transcription_config") or {}).get("language")
    return from_words(words, id=job.get("id"), audio_duration=number(job.get("duration")), **_language(language))


def gladia(document: Document) -> dict[str, Any]:
    """Read a result of Gladia's pre-recorded API, v2. Source: its API reference."""
    result = document.get("result", document)
    found = result["transcription"]
    channels = (result.get("metadata") or {}).get("number_of_distinct_channels") or 1
    turns = []
    for turn in found.get("utterances") or ():
        speaker = label(turn.get("speaker"))
        channel = label(turn.get("channel")) if channels > 1 else None
        words = [
            SpokenWord(w["word"], ms(w.get("start")), ms(w.get("end")), number(w.get("confidence")), speaker, channel)
            for w in turn.get("words") or ()
        ]
        times = ms(turn.get("start")), ms(turn.get("end"))
        turns.append(SpokenTurn(turn["text"], *times, speaker, words, number(turn.get("confidence")), channel))
    duration = number((result.get("metadata") or {}).get("audio_duration"))
    languages = found.get("languages") or [None]
    return from_turns(
        turns,
        id=document.get("id"),
        text=found.get("full_transcript"),
        audio_duration=duration,
        **_language(languages[0]),
    )


def _has(*paths: str) -> Callable[[Document], bool]:
    """Return a test of a document for fields, such as "results.channels"; `*` is the first item of a list."""
    return lambda document: all(_at(document, path.split(".")) is not None for path in paths)


def _at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        if name == "*":
            value = value[0] if isinstance(value, list) and value else None
        else:
            value = value.get(name) if isinstance(value, Mapping) else None
    return value


#: Each format by name: how to recognise it, and how to read it. The first that is recognised is read.
ENGINES: dict[str, tuple[Callable[[Document], bool], Callable[[Document], dict[str, Any]]]] = {
    "whisper.cpp": (_has("transcription.*.offsets"), whisper_cpp),
    "deepgram": (_has("results.channels"), deepgram),
    "rev": (_has("monologues"), rev),
    "aws": (_has("results.items"), aws),
    "azure": (lambda d: _has("recognizedPhrases")(d) or _has("phrases", "combinedPhrases")(d), azure),
    "speechmatics": (_has("results.*.type", "job"), speechmatics),
    "google": (lambda d: any(_has(f"{at}results.*.alternatives")(d) for at in ("", "response.")), google),
    "gladia": (lambda d: any(_has(f"{at}transcription.full_transcript")(d) for at in ("", "result.")), gladia),
    "whisper": (_has("segments.*.text"), whisper),
}


def _language(value: Any) -> dict[str, Any]:
    """Return a language code as `language_code`; a name, such as "english", as `language`."""
    if not value or not isinstance(value, str):
        return {}
    is_code = len(value) <= 3 or "-" in value or "_" in value
    return {"language_code": value.lower().replace("-", "_")} if is_code else {"language": value}


def _offset(value: Document, name: str) -> int | None:
    return (value.get("offsets") or {}).get(name)


def _deepgram_words(words: Sequence[Document] | None, channel: str | None) -> list[SpokenWord]:
    return [
        SpokenWord(
            word.get("punctuated_word") or word["word"],
            ms(word.get("start")),
            ms(word.get("end")),
            number(word.get("confidence")),
            label(word.get("speaker")),
            channel,
        )
        for word in words or ()
    ]


def _azure_times(value: Document) -> tuple[int | None, int | None]:
    """Return start and end in milliseconds."""
    for unit, size in (("Milliseconds", 1), ("InTicks", 10_000)):
        if value.get(f"offset{unit}") is not None:
            start, length = value[f"offset{unit}"] / size, value.get(f"duration{unit}")
            return round(start), None if length is None else round(start + length / size)
    return None, None


def _turn(
    words: Sequence[SpokenWord],
    speaker: str | None,
    text: str | None = None,
    confidence: float | None = None,
    channel: str | None = None,
) -> SpokenTurn:
    """Return a turn with the times of its first and last word."""
    start, end = (words[0].start, words[-1].end) if words else (None, None)
    return SpokenTurn(text or join_words(word.text for word in words), start, end, speaker, words, confidence, channel)


def _by_time(words: Sequence[SpokenWord]) -> list[SpokenWord]:
    return sorted(words, key=lambda word: word.start or 0)
