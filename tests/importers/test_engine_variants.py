"""Less common documents of engines, as their documentation, their source code or their libraries describe them."""

import json
from contextlib import suppress
from typing import Any

import pytest

import voxframe
from voxframe.errors import PayloadError, PayloadWarning
from voxframe.importers import converted

_N = None
_Rows = list[tuple[Any, ...]]


def _read(document: Any) -> dict[str, Any]:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    payload: dict[str, Any] = json.loads(converted(data, "talk.json"))
    voxframe.tables(payload)
    return payload


def _words(document: Any) -> _Rows:
    fields = ("text", "start", "end", "confidence", "speaker")
    return [tuple(word[field] for field in fields) for word in _read(document)["words"]]


def _turns(document: Any) -> _Rows:
    fields = ("text", "start", "end", "speaker")
    return [tuple(turn[field] for field in fields) for turn in _read(document)["utterances"]]


def _spoken(text: str, start: float, end: float, **fields: Any) -> dict[str, Any]:
    return {"word": text, "start": start, "end": end, **fields}


@pytest.mark.parametrize("segments", [{}, {"segments": None}])
def test_words_of_openai_without_segments(segments: dict[str, Any]) -> None:
    """With `timestamp_granularities=["word"]` there are no segments; some servers state a probability.

    Source: https://platform.openai.com/docs/api-reference/audio/verbose-json-object
    """
    words = [_spoken("Hi", 0.5, 0.75), _spoken("there", 0.75, 1.25, probability=0.5)]
    document = {"task": "transcribe", "language": "english", "duration": 2.5, "text": "Hi there.", "words": words}
    assert _words({**document, **segments}) == [("Hi", 500, 750, _N, _N), ("there", 750, 1250, 0.5, _N)]


def test_words_of_openai_belong_to_segments() -> None:
    """A word belongs to the segment in which its middle lies, also if it begins before it."""
    words = [_spoken("Hi", 0.0, 0.5), _spoken("Bye", 0.9, 1.5)]
    segments = [
        {"id": n, "seek": 0, "start": n, "end": n + 1, "text": text} for n, text in enumerate((" Hi.", " Bye."))
    ]
    found = _read({"text": "Hi. Bye.", "language": "english", "segments": segments, "words": words})
    assert [[word["text"] for word in turn["words"]] for turn in found["utterances"]] == [["Hi"], ["Bye"]]


@pytest.mark.parametrize(
    "document",
    [
        {"text": "", "segments": [], "language": "en"},
        {"result": {"language": "en"}, "transcription": []},
        {"format": "2.9", "metadata": {"type": "transcription"}, "results": []},
        {"results": [{"resultEndOffset": "1s", "languageCode": "en-US"}], "metadata": {"totalBilledDuration": "1s"}},
        {"metadata": {"request_id": "d"}, "results": {"channels": []}},
        {"jobName": "j", "status": "COMPLETED", "results": {"transcripts": [{"transcript": ""}], "items": []}},
        {"source": "a.wav", "combinedRecognizedPhrases": [], "recognizedPhrases": []},
        {"monologues": []},
        {"result": {"transcription": {"full_transcript": "", "languages": [], "utterances": []}}},
    ],
)
def test_recordings_without_speech(document: dict[str, Any]) -> None:
    """A transcript in which nothing was said is empty."""
    assert _words(document) == []
    assert _read(document)["text"] == ""


def test_whisper_writes_not_a_number() -> None:
    """Python's JSON may contain NaN, as for the `avg_logprob` of an empty segment."""
    segment = b'{"id": 0, "seek": 0, "start": 0.0, "end": 1.0, "text": " a", "avg_logprob": NaN, "words": '
    words = b'[{"word": " a", "start": 0.0, "end": 1.0, "probability": NaN}]}'
    assert _words(b'{"text": " a", "language": "en", "segments": [' + segment + words + b"]}") == [
        ("a", 0, 1000, _N, _N)
    ]


def test_whisper_cpp_splits_characters() -> None:
    """Tokens of older versions of whisper.cpp hold single bytes of a character; "?" is no speaker.

    Source: https://github.com/ggml-org/whisper.cpp/issues/1798 and `examples/cli/cli.cpp`.
    """
    tokens = b", ".join(
        b'{"text": "%s", "offsets": {"from": %d, "to": %d}, "p": 0.5}' % (text, at, at + 50)
        for at, text in ((0, b"\xe4"), (50, b"\xbd\xa0"))
    )
    segment = (
        b'{"offsets": {"from": 0, "to": 100}, "text": "\xe4\xbd\xa0", "speaker": "?", "tokens": [' + tokens + b"]}"
    )
    document = b'{"result": {"language": "zh"}, "transcription": [' + segment + b"]}"
    assert _words(document) == [("\u4f60", 0, 100, 0.5, _N)]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_json_of_windows_tools(encoding: str) -> None:
    """JSON may begin with a byte order mark, as the files of PowerShell do."""
    document = {
        "text": " Zo\u00eb",
        "language": "en",
        "segments": [{"id": 0, "start": 0, "end": 1, "text": " Zo\u00eb"}],
    }
    assert _turns(json.dumps(document, ensure_ascii=False).encode(encoding)) == [("Zo\u00eb", 0, 1000, _N)]


def test_speakers_of_channels_of_deepgram() -> None:
    """Numbers of speakers begin at 0 in each channel; utterances of channels are in the order of time.

    Source: https://developers.deepgram.com/docs/multichannel and https://developers.deepgram.com/docs/utterances
    """
    said = {0: _spoken("later", 2, 3, speaker=0, confidence=0.9), 1: _spoken("first", 0, 1, speaker=0, confidence=0.9)}
    channels = [{"alternatives": [{"transcript": word["word"], "words": [word]}]} for word in said.values()]
    results: dict[str, Any] = {"channels": channels}
    expected = [("first", 0, 1000, "1.0"), ("later", 2000, 3000, "0.0")]
    assert _turns({"metadata": {"request_id": "d"}, "results": results}) == expected
    results["utterances"] = [
        {**{name: word[name] for name in ("start", "end", "speaker")}, "channel": n, "transcript": word["word"]}
        | {"words": [word]}
        for n, word in said.items()
    ]
    assert _turns({"metadata": {"request_id": "d"}, "results": results}) == expected


def _element(value: str, kind: str = "text") -> dict[str, Any]:
    return {"type": kind, "value": value}


def test_punctuation_of_rev() -> None:
    """An opening mark belongs to the next word; "unknown" elements are words; without punctuation, spaces are added.

    Source: https://docs.rev.ai/api/asynchronous/reference, "Get Transcript By Id", with and without `skip_punctuation`.
    """
    punctuated = [
        _element("said"),
        _element(", ", "punct"),
        _element('"', "punct"),
        _element("Go"),
        _element("!", "punct"),
    ]
    punctuated += [_element('"', "punct"), _element(" ", "punct"), _element("<inaudible>", "unknown")]
    info = {"id": "1", "display_name": "Ann"}
    document = {"monologues": [{"speaker": 1, "speaker_info": info, "elements": punctuated}]}
    assert _turns(document) == [('said, "Go!" <inaudible>', _N, _N, "Ann")]
    assert [word[0] for word in _words(document)] == ["said,", '"Go!"', "<inaudible>"]
    plain = [_element("Hello"), _element("World"), _element("<inaudible>", "unknown")]
    assert _turns({"monologues": [{"speaker": 1, "elements": plain}]}) == [("Hello World <inaudible>", _N, _N, "1")]


@pytest.mark.parametrize(
    "word",
    [
        {"word": "Hi", "startTime": "0.500s", "endTime": "1.5s", "speakerTag": 1},
        {"word": "Hi", "start_time": "0.500s", "end_time": "1.5s", "speaker_tag": 1},
        {"word": "Hi", "startOffset": "0.500s", "endOffset": "1.5s", "speakerLabel": "1"},
        {"word": "Hi", "startTime": {"nanos": 500_000_000}, "endTime": {"seconds": "1", "nanos": 500_000_000}}
        | {"speakerTag": 1},
    ],
)
def test_times_of_google(word: dict[str, Any]) -> None:
    """Times are text with "s" (REST), or seconds and nanoseconds (Node.js); the Python library writes snake case.

    Source: https://cloud.google.com/speech-to-text/docs/reference/rest/v1/speech/recognize#WordInfo and
    https://cloud.google.com/speech-to-text/v2/docs/reference/rest/v2/projects.locations.recognizers/recognize#WordInfo
    """
    results = [{"alternatives": [{"transcript": "Hi", "confidence": 0.5, "words": [word]}, {"transcript": "High"}]}]
    assert _words({"results": results}) == [("Hi", 500, 1500, _N, "1")]


def test_channels_of_google_are_in_order() -> None:
    """Results of several channels are sorted by time; the only channel of a recording is left out.

    Source: https://cloud.google.com/speech-to-text/docs/multi-channel
    """
    results = [
        {"channelTag": tag, "alternatives": [{"transcript": text, "words": [{"word": text, "startTime": start}]}]}
        for tag, text, start in ((1, "later", "5s"), (2, "first", "1s"))
    ]
    found = _read({"results": results})["words"]
    assert [(word["text"], word["channel"]) for word in found] == [("first", "2"), ("later", "1")]
    assert "channel" not in _read({"results": results[:1]})["words"][0]


def test_a_batch_of_google_has_several_recordings() -> None:
    """Each file of a batch is a transcript, named after its URI.

    Source: https://cloud.google.com/speech-to-text/v2/docs/reference/rest/v2/BatchRecognizeFileResult
    """
    files = {
        f"gs://bucket/{name}.wav": {
            "inlineResult": {"transcript": {"results": [{"alternatives": [{"transcript": name}]}]}}
        }
        for name in ("first_call", "second")
    }
    words = voxframe.load_words(
        {"name": "x", "done": True, "response": {"@type": "BatchRecognizeResponse", "results": files}}
    )
    assert [(name.rsplit("-", 1)[0], text) for name, text in words[["transcript_id", "text"]].values] == [
        ("first_call", "first_call"),
        ("second", "second"),
    ]


def test_channels_of_aws() -> None:
    """With channel identification, words of both channels are in the order of time, each with its channel.

    Source: https://docs.aws.amazon.com/transcribe/latest/dg/channel-id-output-batch.html
    """

    def item(text: str, start: str | None) -> dict[str, Any]:
        kind = "pronunciation" if start else "punctuation"
        times = {"start_time": start, "end_time": str(float(start) + 0.5)} if start else {}
        return {"type": kind, **times, "alternatives": [{"confidence": "1.0", "content": text}]}

    channels = [
        {"channel_label": "ch_0", "items": [item("Yes", "8.5"), item(".", None)]},
        {"channel_label": "ch_1", "items": [item("Well", "4.86"), item("?", None)]},
    ]
    items = [one for channel in channels for one in channel["items"]]
    results = {"transcripts": [{"transcript": "Well? Yes."}], "channel_labels": {"channels": channels}, "items": items}
    found = _read({"jobName": "job", "results": results})["words"]
    assert [(word["text"], word["start"], word["channel"]) for word in found] == [
        ("Well?", 4860, "ch_1"),
        ("Yes.", 8500, "ch_0"),
    ]


def test_words_without_a_start_keep_their_place_on_their_channel() -> None:
    """A word without a start follows the word before it on its channel, not the beginning of the recording."""
    channels = [
        {"alternatives": [{"words": [{"word": text, "start": start} for text, start in words]}]}
        for words in ((("one", 1.0), ("two", None), ("five", 5.0)), (("three", 3.0), ("four", None)))
    ]
    assert [word[0] for word in _words({"results": {"channels": channels}})] == "one two three four five".split()


@pytest.mark.parametrize("depth", [200, 900, 5000])
def test_deep_json_of_an_engine_is_read_or_refused(depth: int) -> None:
    """Nesting of any depth in a field that is not read gives words or a PayloadError."""
    deep = "[" * depth + "]" * depth
    for document in (
        f'{{"results":[{{"alternatives":[{{"transcript":"Hi","x":{deep}}}]}}]}}',
        f'{{"segments":[{{"text":"Hi"}},{{"text":null,"x":{deep}}}]}}',
    ):
        with suppress(*[PayloadError] * (depth > 200)):
            assert list(voxframe.load_words(document.encode())["text"]) == ["Hi"]


def test_half_a_surrogate_pair_of_an_engine_is_replaced() -> None:
    """A text or speaker with half of a surrogate pair is read, with U+FFFD in its place."""
    document = b'{"segments":[{"text":"Hi \\ud83d","speaker":"A\\ud83d"}],"language":"en"}'
    with pytest.warns(PayloadWarning, match="surrogate"):
        words = voxframe.load_words(document)
    assert words[["text", "speaker"]].values.tolist() == [["Hi", "A\ufffd"], ["\ufffd", "A\ufffd"]]


def test_channels_of_azure_are_in_order() -> None:
    """Phrases of several channels are sorted by time; phrases that were not recognised are left out.

    Source: https://learn.microsoft.com/azure/ai-services/speech-service/batch-transcription-get
    """
    phrases = [
        {"recognitionStatus": "Success", "channel": channel, "offsetInTicks": offset, "durationInTicks": 10_000_000.0}
        | {"nBest": [{"confidence": 0.5, "display": text}, {"confidence": 0.4, "display": "?"}]}
        for channel, offset, text in ((0, 50_000_000.0, "later"), (1, 0.0, "first"))
    ]
    phrases.append({"recognitionStatus": "InitialSilenceTimeout", "channel": 0, "offsetInTicks": 0})
    assert _turns({"recognizedPhrases": phrases}) == [("first", 0, 1000, _N), ("later", 5000, 6000, _N)]


def test_punctuation_of_speechmatics() -> None:
    """Punctuation attaches to the previous word, to the next, to both or to none; the job is missing in streams.

    Source: `speechmatics/adapters.py` of https://github.com/speechmatics/speechmatics-python
    """

    def item(text: str, start: float, side: str | None = None, kind: str = "punctuation") -> dict[str, Any]:
        kind = kind if side else "word"
        found = {"type": kind, "start_time": start, "end_time": start + 0.5}
        return (
            found
            | {"alternatives": [{"content": text, "confidence": 0.9, "language": "en"}]}
            | ({"attaches_to": side} if side else {})
        )

    results = [{"type": "speaker_change", "start_time": 0, "end_time": 0}, item("Yes", 0), item(",", 0.5, "previous")]
    results += [item("*", 1, "next"), item("great", 1), item("for", 2), item("-", 2.5, "both"), item("sure", 3)]
    results += [item("&", 4, "none"), item("stuff", 5)]
    config = {"transcription_config": {"language": "auto"}}
    document = {"format": "2.9", "metadata": config, "results": results}
    assert [word[:3] for word in _words(document)] == [
        ("Yes,", 0, 500),
        ("*great", 1000, 1500),
        ("for-sure", 2000, 3500),
        ("&", 4000, 4500),
        ("stuff", 5000, 5500),
    ]
    assert _read(document)["language_code"] == "en"


def _pair(name: str, **fields: list[Any]) -> list[dict[str, Any]]:
    """Return a word whose text is null, and "ok", with the values of other fields."""
    return [{name: text, **{key: values[n] for key, values in fields.items()}} for n, text in enumerate((None, "ok"))]


_SECONDS: dict[str, list[Any]] = {"start": [0.5, 0.75]}


@pytest.mark.parametrize(
    "document",
    [
        {"text": None, "segments": [{"text": None, "words": _pair("word", **_SECONDS)}]},
        {"text": None, "words": [{"word": "so", "start": 0}, *_pair("word", **_SECONDS)]},
        {"transcription": _pair("text", offsets=[{"from": 500}, {"from": 750}], tokens=[[{"text": None}], []])},
        {"results": {"channels": [{"alternatives": [{"transcript": None, "words": _pair("word", **_SECONDS)}]}]}},
        {"monologues": [{"elements": _pair("value", type=["text", "text"], ts=_SECONDS["start"])}]},
        {
            "results": {
                "items": [
                    {"type": "word", "start_time": t, "alternatives": [w]}
                    for t, w in zip(_SECONDS["start"], _pair("content"), strict=True)
                ]
            }
        },
        {"combinedPhrases": [], "phrases": [{"text": None, "words": _pair("text", offsetMilliseconds=[500, 750])}]},
        {
            "results": [
                {"type": "word", "start_time": t, "alternatives": [w]}
                for t, w in zip(_SECONDS["start"], _pair("content"), strict=True)
            ]
        },
        {"results": [{"alternatives": [{"transcript": None, "words": _pair("word", startTime=["0.5s", "0.75s"])}]}]},
        {
            "transcription": {
                "full_transcript": None,
                "utterances": [{"text": None, "words": _pair("word", **_SECONDS)}],
            }
        },
    ],
)
def test_a_text_that_is_null_is_null_in_the_tables(document: dict[str, Any]) -> None:
    """A word or turn whose text is null keeps its times, and the words around it are read."""
    payload = _read(document)
    words = payload["utterances"] if payload["imported_from"] == "whisper.cpp" else payload["words"]
    assert [(word["text"], word["start"]) for word in words][-2:] == [(None, 500), ("ok", 750)]
    assert payload["text"].endswith("ok")
