import json
from pathlib import Path

import pandas as pd
import pytest

import voxframe
from voxframe.client.stream.messages import Gap, read
from voxframe.errors import PayloadError, PayloadWarning
from voxframe.frames import to_pandas
from voxframe.frames.responses import stream_table, stream_word_table
from voxframe.schema import STREAM, STREAM_WORDS

MESSAGES = [
    {"message_type": "SessionBegins", "session_id": "one", "expires_at": "2030-01-02T03:04:05.000006"},
    {"message_type": "PartialTranscript", "text": "hel", "audio_start": 10, "audio_end": 300, "words": []},
    {
        "message_type": "FinalTranscript",
        "text": "Hello there.",
        "audio_start": 10,
        "audio_end": 900,
        "confidence": 0.5,
        "punctuated": True,
        "text_formatted": False,
        "created": "2026-01-02T03:04:05.678901",
        "words": [
            {"text": "Hello", "start": 10, "end": 400, "confidence": 0.4},
            {"text": "there.", "start": 500, "end": 900, "confidence": 0.6},
        ],
    },
    {"message_type": "SessionInformation", "audio_duration_seconds": 1.5},
    {"message_type": "SessionTerminated"},
]


def test_a_row_per_message() -> None:
    """Every field of every message is in its column, in order, with the dictionary's types."""
    table = stream_table(MESSAGES)
    assert table.schema.equals(STREAM.arrow, check_metadata=True)
    df = to_pandas(table, "stream")
    assert df["message_idx"].to_list() == [0, 1, 2, 3, 4]
    assert set(df["session_id"]) == {"one"}
    final = df.iloc[2]
    assert final[["message_type", "text", "start_ms", "end_ms", "confidence"]].to_list() == [
        "FinalTranscript",
        "Hello there.",
        10,
        900,
        0.5,
    ]
    assert (final["punctuated"], final["text_formatted"]) == (True, False)
    assert final["created"] == pd.Timestamp("2026-01-02T03:04:05.678901Z")
    assert df["audio_duration_s"].to_list()[3] == 1.5


@pytest.mark.parametrize("created", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-10:00", "yesterday"])
def test_a_time_that_no_column_can_hold_is_kept(created: str) -> None:
    """A time outside the years 1 to 9999 in UTC, and a text that is no time, are null, and `extra` has them."""
    (row,) = stream_table([{"message_type": "FinalTranscript", "created": created}]).to_pylist()
    assert (row["created"], json.loads(row["extra"])) == (None, {"created": created})


def test_half_a_surrogate_pair_in_a_text_is_replaced() -> None:
    """A message given as text may have half of a surrogate pair; the rest of the message is kept."""
    with pytest.warns(PayloadWarning, match="not valid UTF-8"):
        table = stream_table(['{"message_type": "FinalTranscript", "text": "Hi \ud83d", "audio_start": 5}'])
    (row,) = table.select(["text", "start_ms"]).to_pylist()
    assert (row["text"].rstrip("\ufffd"), row["start_ms"]) == ("Hi ", 5)


def test_a_row_per_word() -> None:
    """Words carry the position of their message."""
    table = stream_word_table(MESSAGES)
    assert table.schema.equals(STREAM_WORDS.arrow, check_metadata=True)
    assert table.select(["message_idx", "word_idx", "text", "start_ms", "end_ms", "confidence"]).to_pylist() == [
        {"message_idx": 2, "word_idx": 0, "text": "Hello", "start_ms": 10, "end_ms": 400, "confidence": 0.4},
        {"message_idx": 2, "word_idx": 1, "text": "there.", "start_ms": 500, "end_ms": 900, "confidence": 0.6},
    ]


def test_words_of_partials_can_be_left_out() -> None:
    """Words of partials come again in the finals."""
    partial = MESSAGES[2] | {"message_type": "PartialTranscript"}
    assert stream_word_table([partial, MESSAGES[2]]).num_rows == 4
    assert stream_word_table([partial, MESSAGES[2]], finals_only=True)["message_idx"].to_pylist() == [1, 1]


def test_no_messages_are_an_empty_table() -> None:
    """Without rows there are still all columns."""
    assert stream_table([]).schema.equals(STREAM.arrow)
    assert stream_word_table([]).schema.equals(STREAM_WORDS.arrow)


@pytest.mark.parametrize("form", ["dicts", "bytes", "text", "objects"])
def test_messages_come_in_any_form(form: str) -> None:
    """JSON, dicts and a session's own message objects give the same tables."""
    forms = {
        "dicts": MESSAGES,
        "bytes": [json.dumps(m).encode() for m in MESSAGES],
        "text": [json.dumps(m) for m in MESSAGES],
        "objects": [read(json.dumps(m), session_id="one", idx=i) for i, m in enumerate(MESSAGES)],
    }
    assert stream_table(forms[form]).equals(stream_table(MESSAGES))
    assert stream_word_table(forms[form]).equals(stream_word_table(MESSAGES))


def test_sessions_are_counted_apart() -> None:
    """Positions start from 0 in each session."""
    second = [MESSAGES[0] | {"session_id": "two"}, MESSAGES[4]]
    df = voxframe.load_stream([*MESSAGES, *second])
    assert df["message_idx"].to_list() == [0, 1, 2, 3, 4, 0, 1]
    assert df["session_id"].to_list() == ["one"] * 5 + ["two"] * 2


def test_what_voxframe_notes_itself_is_no_row() -> None:
    """A gap is not a message of the service."""
    gap = Gap({}, "one", 0, 500, start_ms=100, end_ms=500)
    assert stream_table([gap]).num_rows == 0


def test_odd_values_lose_nothing_else() -> None:
    """Numbers as text, unknown kinds and a broken time become what they can; the rest of the message stays."""
    odd = {"message_type": "SpeakerChanged", "audio_start": "42", "audio_end": 42.0, "text": 7, "created": "yesterday"}
    row = stream_table([odd]).to_pylist()[0]
    assert (row["message_type"], row["start_ms"], row["end_ms"], row["text"], row["created"]) == (
        "SpeakerChanged",
        42,
        42,
        "7",
        None,
    )
    with pytest.warns(PayloadWarning, match=r"words\[1\].start"):
        words = stream_word_table([{"words": [None, {"text": "x", "start": "soon"}]}])
    assert words.select(["word_idx", "text", "start_ms"]).to_pylist() == [
        {"word_idx": 0, "text": None, "start_ms": None},
        {"word_idx": 1, "text": "x", "start_ms": None},
    ]


def test_created_is_in_utc() -> None:
    """A time with an offset is converted to UTC, a time without one is taken as UTC."""
    times = [{"created": "2026-01-02T03:04:05+02:00"}, {"created": "2026-01-02T03:04:05"}]
    assert [t.isoformat() for t in stream_table(times)["created"].to_pylist()] == [
        "2026-01-02T01:04:05+00:00",
        "2026-01-02T03:04:05+00:00",
    ]


@pytest.mark.parametrize("source", [MESSAGES[0], b"{}", 7])
def test_what_is_no_messages_is_refused(source: object) -> None:
    """One message alone, or something else, says what to pass."""
    with pytest.raises(PayloadError, match="pass a session, or an iterable"):
        stream_table(source)  # type: ignore[arg-type]


def test_every_value_of_the_examples_is_found_again(payload_folder: Path) -> None:
    """Every value of the example messages is in the tables."""
    names = ("SessionBegins", "PartialTranscript", "FinalTranscript", "SessionInformation", "SessionTerminated")
    messages = [json.loads((payload_folder / f"realtime-{name}.json").read_text()) for name in names]
    stream = voxframe.load_stream(messages)
    words = voxframe.load_stream_words(messages)
    paths = {column.path: column.name for column in STREAM.columns if column.path}
    for i, message in enumerate(messages):
        row = stream.iloc[i]
        for path, value in message.items():
            if path == "created":
                assert row["created"] == pd.Timestamp(value, tz="UTC")
            elif path not in ("words", "expires_at"):
                assert row[paths[path]] == value
        mine = words[words["message_idx"] == i].rename(columns={"start_ms": "start", "end_ms": "end"})
        assert mine[["text", "start", "end", "confidence"]].to_dict("records") == [
            {name: word[name] for name in ("text", "start", "end", "confidence")} for word in message.get("words", [])
        ]
