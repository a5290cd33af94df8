"""Transcript payloads as a service would answer them, of any length, with every analysis; one seed, one payload."""

import json
import random
from collections.abc import Sequence
from typing import Any

_SYLLABLES = (
    "ba be ca co da de en er fa fi ga go in is ka la li ma me mo na ne no or pa ra re ri sa se ta te ti to va ve"
)
_TOPICS = [
    "Automotive>AutoType>ClassicCars", "Books&Literature", "Business>Industries>Logistics", "Careers>JobSearch",
    "Education>AdultEducation", "Events>Concerts", "Family>Parenting>Babies", "Food&Drink>Cooking", "Hobbies>Birds",
    "Home&Garden>Gardening", "Medical>Diseases>Lungs>Asthma", "News>Disasters", "News>Weather", "Pets>Dogs",
    "Science>Biology>Zoology>Insects", "Sports>Rowing", "Technology>Computing>Networking", "Travel>Locations>Polar",
]  # fmt: skip
_SAFETY = ["accidents", "alcohol", "disasters", "health_issues", "weapons"]
_ENTITIES = ["date", "event", "location", "medical_condition", "occupation", "organization", "person_name"]

Item = dict[str, Any]


def payload(words: int = 9000, *, seed: int = 1, speakers: int = 4) -> bytes:
    """JSON of a transcript; 9,000 words are about an hour and 1.8 MB.

    Args:
        words: Number of words.
        seed: Of everything in it.
        speakers: Number of speakers; turns repeat the words, as with speaker labels.
    """
    return json.dumps(
        transcript(words, seed=seed, speakers=speakers), separators=(",", ":"), ensure_ascii=False
    ).encode()


def transcript(words: int = 9000, *, seed: int = 1, speakers: int = 4) -> Item:
    """The same as a dict."""
    chance = random.Random(seed)
    sentences = _sentences(words, speakers, chance)
    spoken = [word for sentence in sentences for word in sentence]
    turns: list[list[Item]] = []
    for sentence in sentences:
        if turns and turns[-1][-1]["speaker"] == sentence[0]["speaker"]:
            turns[-1] += sentence
        else:
            turns.append(list(sentence))
    segments = [_flat(sentences[i : i + 7]) for i in range(0, len(sentences), 7)]
    chapters = [_flat(sentences[i : i + 60]) for i in range(0, len(sentences), 60)]
    return {
        "id": f"{chance.getrandbits(128):032x}",
        "language_model": "general", "acoustic_model": "general", "language_code": "en_us", "status": "completed",
        "audio_url": "https://example.com/meeting.mp3", "text": _text(spoken), "words": spoken,
        "utterances": [
            {"confidence": _mean(t), "end": t[-1]["end"], "speaker": t[0]["speaker"], "start": t[0]["start"],
             "text": _text(t), "words": t}
            for t in turns
        ],
        "confidence": _mean(spoken), "audio_duration": spoken[-1]["end"] / 1000 if spoken else 0, "punctuate": True,
        "format_text": True, "dual_channel": False, "multichannel": False, "webhook_url": None, "webhook_auth": False,
        "webhook_status_code": None, "webhook_auth_header_name": None, "speed_boost": False, "speech_model": None,
        "auto_highlights": True, "auto_highlights_result": {"status": "success", "results": _phrases(spoken, chance)},
        "audio_start_from": None, "audio_end_at": None, "word_boost": ["larch", "rowan"], "boost_param": "high",
        "filter_profanity": False, "redact_pii": False, "redact_pii_audio": False, "redact_pii_policies": None,
        "speaker_labels": True, "speakers_expected": speakers, "content_safety": True, "content_safety_confidence": 50,
        "content_safety_labels": _content_safety(segments, chance), "iab_categories": True,
        "iab_categories_result": _topics(segments, chance), "custom_topics": True, "topics": ["rowing", "larches"],
        "custom_topics_results": _topics(segments[::9], chance, ["rowing", "larches"]),
        "custom_spelling": [{"from": ["di carlo"], "to": "DiCarlo"}], "throttled": None, "disfluencies": False,
        "auto_chapters": True,
        "chapters": [
            {"summary": _text(c[:60]), "gist": _text(c[:5]), "headline": _text(c[:14]), **_span(c)} for c in chapters
        ],
        "summarization": True, "summary_type": "bullets", "summary_model": "informative",
        "summary": _text(spoken[:200]),
        "sentiment_analysis": True,
        "sentiment_analysis_results": [
            {"text": _text(s), **_span(s), "sentiment": chance.choice(["POSITIVE", "NEUTRAL", "NEGATIVE"]),
             "confidence": chance.random(), "speaker": s[0]["speaker"]}
            for s in sentences
        ],
        "entity_detection": True,
        "entities": [
            {"entity_type": chance.choice(_ENTITIES), "text": word["text"], "start": word["start"], "end": word["end"]}
            for word in spoken[::25]
        ],
        "speech_threshold": 0.1, "language_detection": False, "language_confidence": None,
    }  # fmt: skip


def _sentences(words: int, speakers: int, chance: random.Random) -> list[list[Item]]:
    vocabulary = ["".join(chance.choices(_SYLLABLES.split(), k=chance.choice([1, 1, 2, 2, 3, 4]))) for _ in range(3000)]
    vocabulary[40:44] = ["don't", "café", "naïve", "A.I."]
    texts = chance.choices(vocabulary, [1 / (rank + 5) for rank in range(len(vocabulary))], k=words)
    sentences: list[list[Item]] = [[]]
    clock, speaker = 250, 0
    for i, text in enumerate(texts):
        last = chance.random() < 0.07 or i == words - 1
        spoken = (text if sentences[-1] else text.capitalize()) + (
            "." if last else "," if chance.random() < 0.06 else ""
        )
        length = chance.randint(80, 600)
        sentences[-1].append(
            {
                "text": spoken,
                "start": clock,
                "end": clock + length,
                "confidence": round(1 - chance.random() ** 3 * 0.6, 5),
                "speaker": "ABCDEFGHIJ"[speaker],
            }
        )
        clock += length + chance.randint(0, 120)
        if last and i < words - 1:
            sentences.append([])
            speaker = chance.randrange(speakers) if chance.random() < 0.45 else speaker
    return [sentence for sentence in sentences if sentence]


def _flat(sentences: list[list[Item]]) -> list[Item]:
    return [word for sentence in sentences for word in sentence]


def _text(words: list[Item]) -> str:
    return " ".join(word["text"] for word in words)


def _mean(words: list[Item]) -> float | None:
    return sum(word["confidence"] for word in words) / len(words) if words else None


def _span(words: list[Item]) -> Item:
    return {"start": words[0]["start"], "end": words[-1]["end"]}


def _phrases(words: list[Item], chance: random.Random) -> list[Item]:
    found = []
    for i in range(0, len(words) - 3, max(len(words) // 60, 1)):
        times = [_span(words[j : j + 2]) for j in sorted(chance.sample(range(len(words) - 2), min(3, len(words) - 2)))]
        rank = round(chance.random() / 10, 2)
        found.append({"count": len(times), "rank": rank, "text": _text(words[i : i + 2]), "timestamps": times})
    return found


def _content_safety(segments: list[list[Item]], chance: random.Random) -> Item:
    results = [
        {
            "text": _text(s),
            "labels": [
                {"label": label, "confidence": chance.random(), "severity": chance.random()}
                for label in chance.sample(_SAFETY, chance.choice([1, 1, 2]))
            ],
            "sentences_idx_start": i * 7,
            "sentences_idx_end": i * 7 + 6,
            "timestamp": _span(s),
        }
        for i, s in enumerate(segments)
        if chance.random() < 0.2
    ]
    summary = {label: chance.random() for label in _SAFETY}
    severities = {label: {"low": 0.5, "medium": 0.3, "high": 0.2} for label in _SAFETY[:-1]}
    return {"status": "success", "results": results, "summary": summary, "severity_score_summary": severities}


def _topics(segments: list[list[Item]], chance: random.Random, labels: Sequence[str] = _TOPICS) -> Item:
    results = [
        {
            "text": _text(s),
            "labels": [
                {"relevance": chance.random(), "label": label} for label in chance.sample(labels, min(10, len(labels)))
            ],
            "timestamp": _span(s),
        }
        for s in segments
    ]
    return {"status": "success", "results": results, "summary": {label: chance.random() for label in labels}}
