"""Documents of other engines, with the fields that their documentation names."""

import json
from pathlib import Path
from typing import Any

import pytest

import voxframe
from voxframe.errors import PayloadError
from voxframe.importers import converted

_WHISPER = {
    "text": " Hi there. Bye.",
    "segments": [
        {
            "id": 0,
            "seek": 0,
            "start": 0.5,
            "end": 1.25,
            "text": " Hi there.",
            "tokens": [50364, 2421],
            "temperature": 0.0,
            "avg_logprob": -0.25,
            "compression_ratio": 0.8,
            "no_speech_prob": 0.01,
            "words": [
                {"word": " Hi", "start": 0.5, "end": 0.75, "probability": 0.9},
                {"word": " there.", "start": 0.75, "end": 1.25, "probability": 0.8},
            ],
        },
        {"id": 1, "seek": 0, "start": 2.0, "end": 2.5, "text": " Bye.", "avg_logprob": -0.3, "words": []},
    ],
    "language": "en",
}
_WHISPER_X = {
    "segments": [
        {
            "start": 0.5,
            "end": 1.25,
            "text": " Hi 5.",
            "speaker": "SPEAKER_00",
            "words": [
                {"word": "Hi", "start": 0.5, "end": 0.75, "score": 0.9, "speaker": "SPEAKER_00"},
                {"word": "5."},
            ],
        }
    ],
    "word_segments": [{"word": "Hi", "start": 0.5, "end": 0.75, "score": 0.9, "speaker": "SPEAKER_00"}, {"word": "5."}],
    "language": "en",
}
_OPENAI = {
    "task": "transcribe",
    "language": "english",
    "duration": 2.5,
    "text": "Hi there.",
    "segments": [{"id": 0, "seek": 0, "start": 0.5, "end": 1.25, "text": " Hi there.", "avg_logprob": -0.25}],
    "words": [{"word": "Hi", "start": 0.5, "end": 0.75}, {"word": "there", "start": 0.75, "end": 1.25}],
}
_OPENAI_DIARIZED = {
    "task": "transcribe",
    "duration": 2.5,
    "text": "Hi. Bye.",
    "segments": [
        {"type": "transcript.text.segment", "id": "seg_001", "start": 0.0, "end": 0.5, "text": "Hi.", "speaker": "A"},
        {"type": "transcript.text.segment", "id": "seg_002", "start": 1.0, "end": 1.5, "text": "Bye.", "speaker": "B"},
    ],
}
_WHISPER_CPP = {
    "systeminfo": "AVX = 1",
    "model": {"type": "base", "multilingual": True},
    "params": {"model": "ggml-base.bin", "language": "en", "translate": False},
    "result": {"language": "en"},
    "transcription": [
        {
            "timestamps": {"from": "00:00:00,500", "to": "00:00:01,250"},
            "offsets": {"from": 500, "to": 1250},
            "text": " Hi there.",
            "tokens": [
                {"text": "[_BEG_]", "offsets": {"from": 500, "to": 500}, "id": 50364, "p": 0.9, "t_dtw": -1},
                {"text": " Hi", "offsets": {"from": 500, "to": 750}, "id": 1, "p": 0.9, "t_dtw": -1},
                {"text": " the", "offsets": {"from": 750, "to": 900}, "id": 2, "p": 0.5, "t_dtw": -1},
                {"text": "re", "offsets": {"from": 900, "to": 1200}, "id": 3, "p": 0.75, "t_dtw": -1},
                {"text": ".", "offsets": {"from": 1200, "to": 1250}, "id": 4, "p": 1.0, "t_dtw": -1},
            ],
        }
    ],
}
_DEEPGRAM_WORDS = [
    {"word": "hi", "start": 0.5, "end": 0.75, "confidence": 0.9, "punctuated_word": "Hi", "speaker": 0},
    {"word": "there", "start": 0.75, "end": 1.25, "confidence": 0.8, "punctuated_word": "there.", "speaker": 1},
]
_DEEPGRAM: dict[str, Any] = {
    "metadata": {"request_id": "d-1", "created": "2024-01-01T00:00:00Z", "duration": 2.5, "channels": 1},
    "results": {
        "channels": [
            {
                "detected_language": "en",
                "alternatives": [{"transcript": "Hi there.", "confidence": 0.85, "words": _DEEPGRAM_WORDS}],
            }
        ]
    },
}
_DEEPGRAM_UTTERANCES = {
    "metadata": _DEEPGRAM["metadata"],
    "results": {
        **_DEEPGRAM["results"],
        "utterances": [
            {
                "id": "u",
                "start": 0.5,
                "end": 1.25,
                "confidence": 0.85,
                "channel": 0,
                "speaker": 0,
                "transcript": "Hi there.",
                "words": _DEEPGRAM_WORDS,
            }
        ],
    },
}
_REV = {
    "monologues": [
        {
            "speaker": 0,
            "elements": [
                {"type": "text", "value": "Hi", "ts": 0.5, "end_ts": 0.75, "confidence": 0.9},
                {"type": "punct", "value": " "},
                {"type": "text", "value": "there", "ts": 0.75, "end_ts": 1.25, "confidence": 0.8},
                {"type": "punct", "value": "."},
            ],
        }
    ]
}
_GOOGLE_WORDS = [
    {"startTime": "0.500s", "endTime": "0.750s", "word": "Hi", "confidence": 0.9},
    {"startTime": "0.750s", "endTime": "1.250s", "word": "there.", "confidence": 0.8},
]
_GOOGLE = {
    "results": [
        {
            "alternatives": [{"transcript": "Hi there.", "confidence": 0.85, "words": _GOOGLE_WORDS}],
            "resultEndTime": "1.250s",
            "languageCode": "en-us",
        }
    ],
    "totalBilledTime": "15s",
}
_GOOGLE_SPEAKERS = {
    "name": "123",
    "done": True,
    "response": {
        "@type": "type.googleapis.com/google.cloud.speech.v1.LongRunningRecognizeResponse",
        "results": [
            *_GOOGLE["results"],
            {"alternatives": [{"words": [{**w, "speakerTag": n + 1} for n, w in enumerate(_GOOGLE_WORDS)]}]},
        ],
    },
}
_AWS = {
    "jobName": "job-1",
    "accountId": "111122223333",
    "status": "COMPLETED",
    "results": {
        "transcripts": [{"transcript": "Hi there."}],
        "language_code": "en-US",
        "speaker_labels": {
            "speakers": 1,
            "segments": [
                {
                    "start_time": "0.5",
                    "end_time": "1.25",
                    "speaker_label": "spk_0",
                    "items": [
                        {"start_time": "0.5", "end_time": "0.75", "speaker_label": "spk_0"},
                        {"start_time": "0.75", "end_time": "1.25", "speaker_label": "spk_0"},
                    ],
                }
            ],
        },
        "items": [
            {
                "type": "pronunciation",
                "start_time": "0.5",
                "end_time": "0.75",
                "alternatives": [{"confidence": "0.9", "content": "Hi"}],
            },
            {
                "type": "pronunciation",
                "start_time": "0.75",
                "end_time": "1.25",
                "alternatives": [{"confidence": "0.8", "content": "there"}],
            },
            {"type": "punctuation", "alternatives": [{"confidence": "0.0", "content": "."}]},
        ],
    },
}
_AZURE = {
    "source": "https://contoso.example/a.wav",
    "durationInTicks": 25_000_000,
    "duration": "PT2.5S",
    "combinedRecognizedPhrases": [{"channel": 0, "display": "Hi there."}],
    "recognizedPhrases": [
        {
            "recognitionStatus": "Success",
            "channel": 0,
            "speaker": 1,
            "offset": "PT0.5S",
            "offsetInTicks": 5_000_000.0,
            "durationInTicks": 7_500_000.0,
            "nBest": [
                {
                    "confidence": 0.85,
                    "lexical": "hi there",
                    "itn": "hi there",
                    "display": "Hi there.",
                    "displayWords": [
                        {"displayText": "Hi", "offsetInTicks": 5_000_000.0, "durationInTicks": 2_500_000.0},
                        {"displayText": "there.", "offsetInTicks": 7_500_000.0, "durationInTicks": 5_000_000.0},
                    ],
                }
            ],
        }
    ],
}
_AZURE_FAST = {
    "durationMilliseconds": 2500,
    "combinedPhrases": [{"text": "Hi there."}],
    "phrases": [
        {
            "offsetMilliseconds": 500,
            "durationMilliseconds": 750,
            "text": "Hi there.",
            "words": [
                {"text": "Hi", "offsetMilliseconds": 500, "durationMilliseconds": 250},
                {"text": "there.", "offsetMilliseconds": 750, "durationMilliseconds": 500},
            ],
            "locale": "en-US",
            "confidence": 0.85,
        }
    ],
}
_SPEECHMATICS = {
    "format": "2.9",
    "job": {"id": "sm-1", "created_at": "2024-01-01T00:00:00Z", "data_name": "a.wav", "duration": 2},
    "metadata": {"type": "transcription", "transcription_config": {"language": "en", "diarization": "speaker"}},
    "results": [
        {
            "type": "word",
            "start_time": 0.5,
            "end_time": 0.75,
            "alternatives": [{"content": "Hi", "confidence": 0.9, "language": "en", "speaker": "S1"}],
        },
        {
            "type": "word",
            "start_time": 0.75,
            "end_time": 1.25,
            "alternatives": [{"content": "there", "confidence": 0.8, "language": "en", "speaker": "UU"}],
        },
        {
            "type": "punctuation",
            "start_time": 1.25,
            "end_time": 1.25,
            "attaches_to": "previous",
            "is_eos": True,
            "alternatives": [{"content": ".", "confidence": 1.0, "speaker": "UU"}],
        },
    ],
}
_GLADIA = {
    "id": "g-1",
    "status": "done",
    "kind": "pre-recorded",
    "request_params": {"audio_url": "https://api.gladia.io/file/1"},
    "result": {
        "metadata": {"audio_duration": 2.5, "number_of_distinct_channels": 1},
        "transcription": {
            "full_transcript": "Hi there.",
            "languages": ["en"],
            "utterances": [
                {
                    "text": "Hi there.",
                    "language": "en",
                    "start": 0.5,
                    "end": 1.25,
                    "confidence": 0.85,
                    "channel": 0,
                    "speaker": 0,
                    "words": [
                        {"word": "Hi", "start": 0.5, "end": 0.75, "confidence": 0.9},
                        {"word": " there.", "start": 0.75, "end": 1.25, "confidence": 0.8},
                    ],
                }
            ],
        },
    },
}

_N = None
#: Name: document, words (text, start, end, confidence, speaker), turns (text, start, end, confidence, speaker).
_CASES: dict[str, tuple[dict[str, Any], list[Any], list[Any]]] = {
    "whisper": (
        _WHISPER,
        [("Hi", 500, 750, 0.9, _N), ("there.", 750, 1250, 0.8, _N), ("Bye.", 2000, 2500, _N, _N)],
        [("Hi there.", 500, 1250, _N, _N), ("Bye.", 2000, 2500, _N, _N)],
    ),
    "whisperx": (
        _WHISPER_X,
        [("Hi", 500, 750, 0.9, "SPEAKER_00"), ("5.", 750, 1250, _N, "SPEAKER_00")],
        [("Hi 5.", 500, 1250, _N, "SPEAKER_00")],
    ),
    "openai": (
        _OPENAI,
        [("Hi", 500, 750, _N, _N), ("there", 750, 1250, _N, _N)],
        [("Hi there.", 500, 1250, _N, _N)],
    ),
    "openai diarized": (
        _OPENAI_DIARIZED,
        [("Hi.", 0, 500, _N, "A"), ("Bye.", 1000, 1500, _N, "B")],
        [("Hi.", 0, 500, _N, "A"), ("Bye.", 1000, 1500, _N, "B")],
    ),
    "whisper.cpp": (
        _WHISPER_CPP,
        [("Hi", 500, 750, 0.9, _N), ("there.", 750, 1250, 0.75, _N)],
        [("Hi there.", 500, 1250, _N, _N)],
    ),
    "deepgram": (
        _DEEPGRAM,
        [("Hi", 500, 750, 0.9, "0"), ("there.", 750, 1250, 0.8, "1")],
        [("Hi", 500, 750, _N, "0"), ("there.", 750, 1250, _N, "1")],
    ),
    "deepgram utterances": (
        _DEEPGRAM_UTTERANCES,
        [("Hi", 500, 750, 0.9, "0"), ("there.", 750, 1250, 0.8, "1")],
        [("Hi there.", 500, 1250, 0.85, "0")],
    ),
    "rev": (
        _REV,
        [("Hi", 500, 750, 0.9, "0"), ("there.", 750, 1250, 0.8, "0")],
        [("Hi there.", 500, 1250, _N, "0")],
    ),
    "google": (
        _GOOGLE,
        [("Hi", 500, 750, 0.9, _N), ("there.", 750, 1250, 0.8, _N)],
        [("Hi there.", 500, 1250, 0.85, _N)],
    ),
    "google speakers": (
        _GOOGLE_SPEAKERS,
        [("Hi", 500, 750, 0.9, "1"), ("there.", 750, 1250, 0.8, "2")],
        [("Hi", 500, 750, _N, "1"), ("there.", 750, 1250, _N, "2")],
    ),
    "aws": (
        _AWS,
        [("Hi", 500, 750, 0.9, "spk_0"), ("there.", 750, 1250, 0.8, "spk_0")],
        [("Hi there.", 500, 1250, _N, "spk_0")],
    ),
    "azure": (
        _AZURE,
        [("Hi", 500, 750, _N, "1"), ("there.", 750, 1250, _N, "1")],
        [("Hi there.", 500, 1250, 0.85, "1")],
    ),
    "azure fast": (
        _AZURE_FAST,
        [("Hi", 500, 750, _N, _N), ("there.", 750, 1250, _N, _N)],
        [("Hi there.", 500, 1250, 0.85, _N)],
    ),
    "speechmatics": (
        _SPEECHMATICS,
        [("Hi", 500, 750, 0.9, "S1"), ("there.", 750, 1250, 0.8, _N)],
        [("Hi", 500, 750, _N, "S1"), ("there.", 750, 1250, _N, _N)],
    ),
    "gladia": (
        _GLADIA,
        [("Hi", 500, 750, 0.9, "0"), ("there.", 750, 1250, 0.8, "0")],
        [("Hi there.", 500, 1250, 0.85, "0")],
    ),
}
_COLUMNS = ["text", "start_ms", "end_ms", "confidence", "speaker"]


def _rows(df: Any) -> list[Any]:
    df = df[_COLUMNS].astype(object)
    return list(df.where(df.notna(), None).itertuples(index=False, name=None))


@pytest.mark.parametrize("name", _CASES)
def test_documents_of_engines_become_tables(name: str, tmp_path: Path) -> None:
    """A file, a dict and bytes give the words and turns of the document; words without times share those of a turn."""
    document, words, turns = _CASES[name]
    file = tmp_path / "recording.json"
    file.write_text(json.dumps(document))
    for source in (file, document, file.read_bytes()):
        tables = voxframe.tables(source)
        assert _rows(tables["words"]) == words
        assert _rows(tables["utterances"]) == turns
        assert json.loads(tables["transcripts"]["extra"][0])["imported_from"] == name.split(maxsplit=1)[0].replace(
            "whisperx", "whisper"
        ).replace("openai", "whisper")
    if turns:
        assert tables["words"]["utterance_idx"].notna().all()


@pytest.mark.parametrize("name", _CASES)
def test_a_corpus_keeps_the_original(name: str, tmp_path: Path) -> None:
    """A corpus has the tables, and the original file byte for byte; adding it again changes nothing."""
    document, words, _ = _CASES[name]
    file = tmp_path / "recording.json"
    file.write_text(json.dumps(document, indent=1))
    corpus = voxframe.Corpus(tmp_path / "corpus")
    assert corpus.add(file).added == 1
    assert corpus.add(file).known == 1
    (transcript_id,) = corpus
    assert _rows(corpus.words()) == words
    assert corpus.raw.original(transcript_id) == file.read_bytes()
    corpus.forget(transcript_id)
    assert [path.name for path in (tmp_path / "corpus").rglob("*original*")] == []


def test_what_a_format_says_about_the_whole(tmp_path: Path) -> None:
    """Id, language, duration and confidence come from the document if it has them."""
    found = {name: json.loads(converted(json.dumps(case[0]).encode(), "a/b.json")) for name, case in _CASES.items()}
    assert {name: payload["id"] for name, payload in found.items() if not payload["id"].startswith("b-")} == {
        "deepgram": "d-1",
        "deepgram utterances": "d-1",
        "aws": "job-1",
        "speechmatics": "sm-1",
        "gladia": "g-1",
    }
    languages = {name: payload.get("language_code") for name, payload in found.items()}
    assert languages["google"] == languages["aws"] == languages["azure fast"] == "en_us"
    assert languages["openai"] == "en"
    assert found["openai"]["language"] == "english"
    assert found["azure"]["audio_duration"] == found["gladia"]["audio_duration"] == 2.5
    assert found["deepgram"]["confidence"] == 0.85


def test_segments_of_faster_whisper_are_read() -> None:
    """The segments that faster-whisper itself defines are read, as a list or in an object."""
    from dataclasses import asdict

    from faster_whisper.transcribe import Segment
    from faster_whisper.transcribe import Word as FasterWord

    segment = Segment(
        id=1,
        seek=0,
        start=0.5,
        end=1.25,
        text=" Hi there.",
        tokens=[1, 2],
        avg_logprob=-0.2,
        compression_ratio=0.8,
        no_speech_prob=0.1,
        words=[FasterWord(0.5, 0.75, " Hi", 0.9), FasterWord(0.75, 1.25, " there.", 0.8)],
        temperature=0.0,
    )
    for document in ([asdict(segment)], {"segments": [asdict(segment)]}):
        words = voxframe.load_words(json.dumps(document).encode())
        assert _rows(words) == [("Hi", 500, 750, 0.9, None), ("there.", 750, 1250, 0.8, None)]


def test_two_channels_of_deepgram_are_kept_apart() -> None:
    """Words of several channels are in time order, each with its channel."""
    channels = [
        {
            "alternatives": [
                {"transcript": text, "confidence": 0.9, "words": [{"word": text, "start": at, "end": at + 1}]}
            ]
        }
        for text, at in (("later", 2.0), ("first", 0.0))
    ]
    words = voxframe.load_words({"metadata": {"request_id": "x"}, "results": {"channels": channels}})
    assert words[["text", "channel", "start_ms"]].values.tolist() == [["first", "1", 0], ["later", "0", 2000]]


def test_payloads_of_the_interface_are_left_alone(payload_folder: Path) -> None:
    """Every example payload of the interface stays as it is, byte for byte."""
    for file in payload_folder.rglob("*.json"):
        data = file.read_bytes()
        assert converted(data, file.name) is data


def test_an_incomplete_document_says_what_it_looks_like(tmp_path: Path) -> None:
    """A recognised document that lacks a necessary field is an error that names the format, and is left out."""
    file = tmp_path / "half.json"
    file.write_text('{"monologues": [{"speaker": 0}]}')
    with pytest.raises(
        PayloadError, match=r"looks like a transcript of rev, but cannot be read \(KeyError: 'elements'\)"
    ):
        voxframe.load_words(file)
    assert "looks like a transcript of rev" in voxframe.Corpus(tmp_path / "c").add(file).left_out[0][1]
