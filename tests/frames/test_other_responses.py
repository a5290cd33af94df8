"""Every value of sentences, paragraphs, word searches, language models and streams is found again in the tables."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.embedded import embedded
from tests.frames.test_examples import ABSENT, OWN, at, leaves, lost

from voxframe.client import Client
from voxframe.frames import passage_table, word_match_table
from voxframe.frames.responses import response_table, stream_table, stream_word_table
from voxframe.schema import TABLES

CALL = Path(__file__).parents[2] / "data" / "call.flac"
PASSAGES = ("sentences", "paragraphs")
EXAMPLES = {"SentencesResponse.json": "sentences", "ParagraphsResponse.json": "paragraphs"}
OWN_EXPORTS = [path for path in OWN if path.name.count(".") == 2]
STREAM = ("SessionBegins", "PartialTranscript", "FinalTranscript", "SessionInformation", "SessionTerminated")

Row = dict[str, Any]


def holds(table: str, row: Row, wire: str, inside: str, value: Any) -> bool:
    """Return True if the column of a path, or `extra` at a path inside its object, has the value."""
    columns = [column for column in TABLES[table].columns if wire in re.split(r" or ", column.path or "")]
    found = [row[column.name] for column in columns] or [at(json.loads(row["extra"] or "{}"), inside)]
    if value is None and found == [ABSENT]:  # null in place of a list
        return True
    if isinstance(found[0], datetime):
        value = datetime.fromisoformat(value).replace(tzinfo=UTC)
    return found == [value] and isinstance(found[0], bool) == isinstance(value, bool)


def lost_of_list(table: str, key: str, payload: Mapping[str, Any], rows: list[Row]) -> list[str]:
    """Return the paths that are not in the rows of a list of a response; what is around the list is in the first."""
    missing = []
    for path, value in leaves(payload):
        place = re.fullmatch(rf"{key}\[(\d+)\]\.(.*)", path)
        row, wire, inside = (rows[int(place[1])], f"{key}[].{place[2]}", place[2]) if place else (rows[0], path, path)
        if not holds(table, row, wire, inside, value):
            missing.append(path)
    return missing


def lost_of_search(payload: Mapping[str, Any]) -> list[str]:
    """Return the paths of a word search that are not in its table."""
    rows = word_match_table(json.dumps(payload).encode()).to_pylist()
    missing = [key for key in ("id", "total_count") if not holds("word_matches", rows[0], key, key, payload[key])]
    for i, match in enumerate(payload["matches"]):
        of_match = [row for row in rows if row["term"] == match["text"]]
        counts = {row["occurrences"] for row in of_match}
        found = [(row["word_idx"], [row["start_ms"], row["end_ms"]]) for row in of_match]
        if found != list(zip(match["indexes"], match["timestamps"], strict=True)) or counts - {match["count"]}:
            missing.append(f"matches[{i}]")
    return missing


def lost_of_stream(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the paths of messages that are in neither of the two tables."""
    messages = list(messages)
    words = stream_word_table(messages).to_pylist()
    missing = []
    for i, (message, row) in enumerate(zip(messages, stream_table(messages).to_pylist(), strict=True)):
        own = [word for word in words if word["message_idx"] == i]
        rest = {key: value for key, value in message.items() if key != "words"}
        missing += lost_of_list("stream", "none", rest, [row])
        missing += lost_of_list("stream_words", "words", {"words": message.get("words", [])}, own)
    return missing


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_value_of_the_example_passages(payload_folder: Path, name: str) -> None:
    """Each leaf of sentences and paragraphs is in its column; their words are in `extra` without a transcript."""
    raw = (payload_folder / name).read_bytes()
    key = EXAMPLES[name]
    assert lost_of_list(key, key, json.loads(raw), passage_table(raw, key).to_pylist()) == []


@pytest.mark.parametrize("path", OWN_EXPORTS, ids=lambda path: path.name)
def test_every_value_of_our_own_passages(path: Path) -> None:
    """The same for the sentences and paragraphs of the project's recordings."""
    key = path.name.split(".")[1]
    payload = json.loads(path.read_bytes())
    assert lost_of_list(key, key, payload, passage_table(path.read_bytes(), key).to_pylist()) == []


@pytest.mark.parametrize("name", ["WordSearchResponse.json", "transcript_word-search.json"])
def test_every_value_of_the_example_word_searches(payload_folder: Path, name: str) -> None:
    """Each term, count, position and time is in the row of its occurrence."""
    assert lost_of_search(json.loads((payload_folder / name).read_bytes())) == []


def test_every_value_of_the_example_answers(payload_folder: Path) -> None:
    """Each leaf of the answers of language models is in its column, also of several questions and of unknown fields."""
    answers = [json.loads(path.read_bytes()) for path in payload_folder.glob("[Ll]lm*.json")]
    answers = [answer for answer in answers if "response" in answer]
    assert len(answers) >= 9
    answers.append({"request_id": "r", "model": "m", "response": [{"question": "q", "answer": "a", "sure": {"x": 1}}]})
    for answer in answers:
        assert lost_of_list("responses", "response", answer, response_table(answer).to_pylist()) == []


def test_every_value_of_the_example_messages(payload_folder: Path) -> None:
    """Each leaf of the messages of a stream is in one of its tables, with the fields that no column has."""
    messages = [json.loads((payload_folder / f"realtime-{name}.json").read_bytes()) for name in STREAM]
    messages.append(
        {"message_type": "FinalTranscript", "new": {"a": [1]}, "words": [{"text": "Hi", "start": 1, "x": 2}]}
    )
    assert lost_of_stream(messages) == []


def test_a_lost_value_would_be_noticed() -> None:
    """The search itself fails for a value of another row, for a changed one and for one that no column has."""
    payload: dict[str, Any] = {"id": "a", "sentences": [{"text": "x", "words": []}, {"text": "y", "new": 1}]}
    rows = passage_table(json.dumps(payload).encode(), "sentences").to_pylist()
    assert lost_of_list("sentences", "sentences", payload, rows) == []
    payload["sentences"][0]["text"], payload["sentences"][1]["new"], payload["more"] = "y", 2, None
    payload["unknown"] = 3
    assert lost_of_list("sentences", "sentences", payload, rows) == ["sentences[0].text", "sentences[1].new", "unknown"]


OPTIONS: dict[str, dict[str, Any]] = {
    "summary and channels": {
        "summarization": True, "summary_type": "paragraph", "multichannel": True, "language_detection": True,
        "redact_pii": True, "redact_pii_policies": ["person_name"], "redact_pii_audio": True,
        "sentiment_analysis": True, "entity_detection": True,
    },
    "analyses": {
        "auto_highlights": True, "content_safety": True, "iab_categories": True, "custom_topics": True,
        "topics": ["weather", "orders"], "sentiment_analysis": True, "auto_chapters": True, "entity_detection": True,
        "speaker_labels": True, "redact_pii": True, "redact_pii_policies": ["person_name"], "disfluencies": True,
        "filter_profanity": True, "word_boost": ["larch"], "custom_spelling": [{"from": ["colour"], "to": "color"}],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with embedded(tmp_path_factory.mktemp("embedded")) as client:
        yield client


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:the service ignores these options")
@pytest.mark.parametrize("which", OPTIONS)
def test_every_value_of_the_embedded_service(client: Client, which: str) -> None:
    """Each leaf of the transcript with all options on, and of all that is made from it, is in a table."""
    transcript = client.transcribe(CALL, audio_end_at=15_000, **OPTIONS[which])
    passages = {key: client.fetch(transcript.id, key) for key in PASSAGES}
    matches = client.word_search(transcript.id, ["the", "and"])
    answers = [client.summarize([transcript.id]), client.ask([{"question": "Who calls?"}], [transcript.id])]
    payload = json.loads(transcript.raw)
    assert all(payload[name] for name in OPTIONS[which])
    assert lost(transcript.raw) == []
    for key, raw in passages.items():
        assert lost_of_list(key, key, json.loads(raw), passage_table(raw, key).to_pylist()) == []
    assert lost_of_search(json.loads(matches.raw)) == []
    for answer in answers:
        data = json.loads(answer.raw)
        assert lost_of_list("responses", "response", data, response_table(data).to_pylist()) == []


@pytest.mark.long
def test_every_value_of_an_embedded_stream(client: Client) -> None:
    """Each leaf of the first messages of a stream is in one of its tables."""
    with client.stream(CALL) as session:
        messages = [message.raw for message in islice(session, 12)]  # all of it needs an idle machine
    assert lost_of_stream([raw for raw in messages if raw]) == []
