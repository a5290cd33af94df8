"""Names and sources of recordings, from their submission to every table."""

import json
from pathlib import Path

import pandas as pd
import pytest

import voxframe
from voxframe.corpus.importing import payload_stem
from voxframe.corpus.job import short_name
from voxframe.errors import CorpusError, CorpusWarning, OptionError


def _payload(transcript_id: str, audio_url: str | None = None) -> dict[str, object]:
    words = [{"text": text, "start": n, "end": n + 1, "speaker": "A"} for n, text in enumerate(["Hi", "there"])]
    return {"id": transcript_id, "status": "completed", "audio_url": audio_url, "words": words}


@pytest.fixture
def vendor(tmp_path: Path) -> Path:
    """Payload files: two with one stem, one of a URL, and one with two payloads."""
    for name, content in {
        "one/call.json": json.dumps(_payload("t1")),
        "two/call.json": json.dumps(_payload("t2")),
        "two/Call 7.mp3.json": json.dumps(_payload("t3", "https://a.example/x/meeting.mp3")),
        "two/many.jsonl": "\n".join(json.dumps(_payload(i, f"https://a.example/{i}.wav")) for i in ("m1", "m2")),
    }.items():
        path = tmp_path / "vendor" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path / "vendor"


@pytest.fixture
def filled(tmp_path: Path, vendor: Path) -> voxframe.Corpus:
    """A corpus of these files, of a payload of the same audio in memory, and of one without any name."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add([vendor / "one", vendor / "two"])
    corpus.add([_payload("t4", "https://a.example/x/meeting.mp3?Signature=s&Expires=1"), _payload("t5")])
    return corpus


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("calls/2024/call 7.v2.wav", "call 7.v2"),
        ("https://b.example/calls/call%207.MP3?sig=x#t=1", "call 7.MP3"),
        ("s3://bucket/a/b", "b"),
        ("https://b.example/", None),
        ("calls/a\n\x07b.wav", "a b"),
    ],
)
def test_short_names(source: str, name: str | None) -> None:
    """A file gives its stem, a URL its last segment; both on one line."""
    assert short_name(source) == name


@pytest.mark.parametrize("path", ["v/call.json.gz", "v/call.mp3.json", "v.zip:deep/call.jsonl", "a.zip:call.json"])
def test_stems_of_payload_files(path: str) -> None:
    """Suffixes of payloads and recordings, folders and the zip are no part of the name."""
    assert payload_stem(path) == "call"


def test_added_payloads_have_names(filled: voxframe.Corpus, vendor: Path) -> None:
    """Equal stems get -2, equal audio shares its name, several payloads of a file are named by URL, others by id."""
    found = filled.table("transcripts").set_index("transcript_id")
    assert found["recording"].to_dict() == {
        "t1": "call",
        "t2": "call-2",
        "t3": "Call 7",
        "t4": "Call 7",
        "t5": "t5",
        "m1": "m1.wav",
        "m2": "m2.wav",
    }
    assert found["source"].fillna("-")[["t1", "t3", "m2", "t5"]].to_list() == [
        str(vendor / "one" / "call.json"),
        str(vendor / "two" / "Call 7.mp3.json"),
        str(vendor / "two" / "many.jsonl"),
        "-",
    ]
    assert found["source"]["t4"] == "https://a.example/x/meeting.mp3?Signature=***&Expires=1"


@pytest.mark.parametrize(("replaces", "kept"), [(False, 0), (True, 1)])
def test_of_two_files_with_one_id_the_stored_one_gives_the_name(tmp_path: Path, replaces: bool, kept: int) -> None:
    """Name and source belong to the payload that is stored: the first, or the last with replace=True."""
    payloads = [{**_payload("x"), "text": name} for name in ("first", "second")]
    for path, payload in zip(("first.json", "second.json"), payloads, strict=True):
        (tmp_path / path).write_text(json.dumps(payload))
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.add([tmp_path / "first.json", tmp_path / "second.json"], replace=replaces)
    (row,) = corpus.table("transcripts").to_dict("records")
    name = ("first", "second")[kept]
    assert (row["recording"], row["source"], row["text"]) == (name, str(tmp_path / f"{name}.json"), name)


def test_names_stand_for_ids(filled: voxframe.Corpus, tmp_path: Path) -> None:
    """Reads, conditions, metadata, names of speakers, snapshots and `forget` take the name of a recording."""
    assert filled["call"]["words"].equals(filled["t1"]["words"])
    assert "call" in filled
    assert set(voxframe.load_words(["call-2", "t1"], corpus=filled)["transcript_id"]) == {"t1", "t2"}
    for where in ([("recording", "==", "call-2")], [("transcript_id", "==", "call-2")], "transcript_id == 'call-2'"):
        assert filled.table("words", where=where)["transcript_id"].to_list() == ["t2", "t2"]
        assert filled.search("hi", where=where)["transcript_id"].to_list() == ["t2"]
    assert filled.counts("hi", ids=["call"])["words"].to_list() == [2]
    about = filled.metadata.set(pd.DataFrame({"recording": ["call"], "customer": ["Acme"]}))
    assert about.set_index("recording")["customer"].dropna().to_dict() == {"call": "Acme"}
    filled.metadata.set(filled.metadata.get())  # its columns recording and source change nothing
    assert filled.speakers.set("call", {"A": "Ada"})["transcript_id"].to_list() == ["t1"]
    snapshot = filled.snapshots.create(progress=False)
    assert snapshot.table("words", "call-2")["transcript_id"].to_list() == ["t2", "t2"]
    assert snapshot.table("transcripts", "call-2")["recording"].to_list() == ["call-2"]
    assert json.loads(filled.raw.get("call"))["id"] == "t1"
    for name in ("m1", "call-2"):
        with pytest.warns(match="snapshots"):
            filled.forget(name)
    assert filled.ids() == ["m2", "t1", "t3", "t4", "t5"]


def test_a_name_of_several_transcripts_is_refused(filled: voxframe.Corpus) -> None:
    """The error lists their ids; a condition on `recording` selects all of them."""
    assert "Call 7" in filled
    assert {"t3", "t4"} <= {*filled._ipython_key_completions_()}
    assert "Call 7" not in filled._ipython_key_completions_()
    for ask in (lambda: filled["Call 7"], lambda: filled.words("Call 7"), lambda: filled.forget("Call 7")):
        with pytest.raises(CorpusError, match="'Call 7' has 2 transcripts: t3, t4"):
            ask()
    assert set(filled.words(where=[("recording", "==", "Call 7")])["transcript_id"]) == {"t3", "t4"}


def test_columns_of_other_tables(filled: voxframe.Corpus, tmp_path: Path) -> None:
    """Any table has `recording`, and `source` on request; search hits, SQL, groups and files have the name."""
    words = filled.words("call", metadata="source")
    assert (words.columns[1], words.columns[-1]) == ("recording", "source")
    assert words["recording"].to_list() == ["call", "call"]
    counted = filled.sql("select recording, count(*) as rows from words group by 1").set_index("recording")["rows"]
    assert counted.to_dict() == filled.words().groupby("recording").size().to_dict()
    assert filled.search("hi", ids="t2")["recording"].to_list() == ["call-2"]
    assert filled.table("transcripts", "t2", columns=["status", "recording"]).iloc[0].to_list() == [
        "completed",
        "call-2",
    ]
    assert filled.counts("hi", by="recording").set_index("recording")["occurrences"]["Call 7"] == 2
    assert filled.sql("select recording from transcripts where transcript_id = 't2'")["recording"].to_list() == [
        "call-2"
    ]
    assert sorted(filled.export(tmp_path / "captions", "vtt", ids=["t1", "t2", "t3", "t4"]).files) == [
        "Call 7-t3.vtt",
        "Call 7-t4.vtt",
        "call-2.vtt",
        "call.vtt",
    ]
    parts = filled.export(tmp_path / "set", tables="words", partition_by="recording").files
    assert "words/recording=call-2/part-0.parquet" in parts
    parts = filled.export(tmp_path / "all", partition_by="recording", metadata="source").files
    assert {"words/recording=call-2/part-0.parquet", "transcripts/recording=call-2/part-0.parquet"} <= set(parts)
    assert filled.table("transcripts", metadata="recording").columns.to_list().count("recording") == 1
    assert filled.search("hi", metadata=["recording", "source"]).columns.to_list()[-1] == "source"


@pytest.mark.long
def test_delta_tables_are_partitioned_by_recording(filled: voxframe.Corpus, tmp_path: Path) -> None:
    """Published tables can have the column `recording`, and be partitioned by it."""
    filled.publish(tmp_path / "delta", partition_by="recording")
    published = voxframe.export.open_delta(tmp_path / "delta")["words"]
    rows = published.to_pyarrow_dataset().to_table(columns=["transcript_id", "recording"]).to_pylist()
    assert published.metadata().partition_columns == ["recording"]
    assert {row["recording"] for row in rows if row["transcript_id"] in ("t2", "t3", "t4")} == {"call-2", "Call 7"}


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_rebuilt_ledger_has_the_names(filled: voxframe.Corpus, is_damaged: bool) -> None:
    """Names and sources are stored with the payloads, so that they survive the loss of the ledger."""
    columns = ["transcript_id", "recording", "source"]
    before = filled.table("transcripts", columns=columns)
    for path in filled.path.glob("catalog.sqlite*"):
        path.unlink()
    if is_damaged:
        (filled.path / "catalog.sqlite").write_bytes(b"no database" * 1000)
        with pytest.warns(match="damaged"):
            after = voxframe.Corpus(filled.path).table("transcripts", columns=columns)
    else:
        after = voxframe.Corpus(filled.path).table("transcripts", columns=columns)
    pd.testing.assert_frame_equal(after, before)


def test_names_are_read_from_a_damaged_catalog_that_cannot_be_replaced(filled: voxframe.Corpus) -> None:
    """If pages of the catalog are damaged and the corpus is read-only, the names come from records and payloads."""
    before = filled.table("transcripts", columns=["transcript_id", "recording", "source"])
    path = filled.path / "catalog.sqlite"
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * (path.stat().st_size - 4096))
    (filled.path / "format.json").write_text('{"format": 99}')
    with pytest.warns(CorpusWarning, match="newer"):
        after = voxframe.Corpus(filled.path).table("transcripts", columns=["transcript_id", "recording", "source"])
    pd.testing.assert_frame_equal(after, before)


def test_submitted_recordings_have_names(peer, client, tmp_path: Path) -> None:
    """Files with one stem get -2, one audio under two options shares its name, and a column `recording` sets it."""
    for name in ("a/call.mp3", "b/call.mp3", "c/other.mp3"):
        path = tmp_path / name
        path.parent.mkdir()
        path.write_bytes(name.encode())
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.submit([tmp_path / "a", tmp_path / "b"], client=client)
    corpus.submit(tmp_path / "b", client=client, speaker_labels=True)
    given = pd.DataFrame({"path": [tmp_path / "c/other.mp3"], "recording": ["Meeting 5"], "customer": ["Acme"]})
    corpus.submit(given, client=client)
    assert corpus.jobs()["recording"].to_list() == ["call", "call-2", "call-2", "Meeting 5"]
    corpus.sync(client=client)
    columns = ["recording", "source"]
    found = corpus.table("transcripts", columns=columns).sort_values(columns, ignore_index=True)
    paths = [tmp_path / name for name in ("c/other.mp3", "a/call.mp3", "b/call.mp3", "b/call.mp3")]
    assert found.to_numpy().tolist() == [
        [name, str(path)] for name, path in zip(["Meeting 5", "call", "call-2", "call-2"], paths, strict=True)
    ]
    for path in corpus.path.glob("catalog.sqlite*"):
        path.unlink()
    rebuilt = voxframe.Corpus(corpus.path).table("transcripts", columns=columns)
    pd.testing.assert_frame_equal(rebuilt.sort_values(columns, ignore_index=True), found)
    with pytest.raises(OptionError, match="name of a recording"):
        corpus.submit(given.assign(recording="a/b"), client=client)


def test_adopted_and_transcribed_recordings_have_names(peer, client, tmp_path: Path) -> None:
    """An adopted transcript has the name of its URL; `transcribe` names the file."""
    address = f"{peer.base_url}/calls/interview%201.mp3"
    (tmp_path / "memo.wav").write_bytes(b"sound")
    client.submit(address)
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.adopt(client)
    corpus.transcribe(tmp_path / "memo.wav", client=client)
    found = corpus.table("transcripts", columns=["recording", "source"])
    assert set(map(tuple, found.to_numpy())) == {("interview 1.mp3", address), ("memo", str(tmp_path / "memo.wav"))}


def test_a_transcript_of_a_client_has_the_name_of_its_file(peer, client, tmp_path: Path) -> None:
    """A loaded handle has source and name of the file it was made from; other jobs of this audio share the name."""
    path = tmp_path / "memo.wav"
    path.write_bytes(b"sound")
    corpus = voxframe.Corpus(tmp_path / "corpus")
    handle = client.transcribe(path)
    assert voxframe.load_transcripts(handle, corpus=corpus)["recording"].to_list() == ["memo"]
    corpus.adopt(client)
    corpus.submit([path], client=client, speaker_labels=True)
    corpus.sync(client=client, wait=True)
    found = corpus.table("transcripts", columns=["recording", "source"])
    assert found.to_numpy().tolist() == [["memo", str(path)]] * 2


def test_no_empty_frame_without_a_word(tmp_path: Path, filled: voxframe.Corpus, client: voxframe.Client) -> None:
    """Reads of a corpus that does not exist, and of sentences that were not fetched, warn and say what to do."""
    nowhere = voxframe.Corpus(tmp_path / "nowhere")
    for read in (
        nowhere.ids,
        lambda: list(nowhere),
        lambda: range(len(nowhere)),
        nowhere.jobs,
        nowhere.metadata.get,
        nowhere.speakers.get,
        nowhere.speakers.table,
        nowhere.corrections.get,
        nowhere.corrections.stale,
        nowhere.snapshots.versions,
        nowhere.unanswered,
        nowhere.raw.stale,
        nowhere.raw.responses,
    ):
        with pytest.warns(CorpusWarning, match="there is no corpus in"):
            assert len(read()) == 0
    for call in (nowhere.sync, nowhere.retry):
        with pytest.warns(CorpusWarning, match="there is no corpus in"):
            assert str(call(client=client)) == "nothing to do"
    with pytest.warns(CorpusWarning, match=r"7 of 7 transcripts have no sentences.*load_sentences\("):
        assert filled.scan("sentences").count_rows() == 0


def test_names_are_not_lost_if_the_ledger_is_replaced_during_an_import(tmp_path: Path) -> None:
    """An import keeps the ledger open; if another process makes a new one, later names are written to that."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    ledger = corpus._archive.ledger
    ledger.name_recordings({"t1": ("one", None, "")})
    for path in corpus.path.glob("catalog.sqlite*"):
        path.unlink()
    ledger.restore()
    ledger.name_recordings({"t2": ("two", None, "")})
    assert ledger.with_recording("two") == ["t2"]


def test_a_misspelled_recording_is_suggested(filled: voxframe.Corpus, tmp_path: Path) -> None:
    """Whatever takes the name of a recording suggests the one that was meant; 1 is the speaker "1"."""
    for ask in (
        lambda: filled["call-22"],
        lambda: filled.words("Call-2"),
        lambda: filled.export(tmp_path / "captions", "srt", ids=["call-2.mp3"]),
        lambda: filled.summarize(["call-3"]),
        lambda: voxframe.load_words("cal-2", corpus=filled),
        lambda: voxframe.TranscriptPlayer("call2", corpus=filled),
        lambda: voxframe.AskPanel(filled, transcripts=["call-3"]),
        lambda: voxframe.WordSearch(filled).play("call-3", 0),
        lambda: filled.corrections.get("call-3"),
        lambda: filled.corrections.history("call-3"),
        lambda: filled.speakers.get("call-3"),
        lambda: filled.metadata.get("call-3"),
        lambda: filled.metadata.set(pd.DataFrame({"transcript_id": ["call-3"], "customer": ["Acme"]})),
        lambda: filled.raw.captions("call-3", "srt"),
    ):
        with pytest.raises((CorpusError, voxframe.errors.PayloadError), match=r"did you mean '(call-2|Call 7|call)'\?"):
            ask()
    with pytest.warns(CorpusWarning, match="no words are by the speaker '1'; the labels and names are A"):
        filled.search("hi", speaker=1)
    assert filled.corrections.split("call-2", 1, speaker=2)["speaker"].tolist() == ["A", "2"]
    for where in ("speaker == 2", "speaker in [2, 3]", [("speaker", "==", 2)]):
        assert set(filled.table("words", "call-2", where=where)["speaker"]) == {"2"}


@pytest.mark.parametrize("method", ["summarize", "action_items"])
def test_transcripts_given_as_ids_are_named(filled: voxframe.Corpus, method: str) -> None:
    """The argument that selects transcripts everywhere else is told the name that it has here."""
    with pytest.raises(OptionError, match=r"there is no option 'ids' \(did you mean 'transcripts'\?\)"):
        getattr(filled, method)(ids=["call-2"])


def test_no_message_lists_more_than_a_few_names(filled: voxframe.Corpus) -> None:
    """A wrong name of a table, column or group is answered with a suggestion or a dozen names."""
    words = filled.table("words")
    for ask in (
        lambda: filled.table("zzz"),
        lambda: filled.table("transcripts", columns=["audio_duration"]),
        lambda: filled.tables("call-2")["zzz"],
        lambda: filled.sql("select * from zzz"),
        lambda: voxframe.describe("zzz"),
        lambda: voxframe.analysis.pace(words, by="zzz"),
    ):
        with pytest.raises((CorpusError, OptionError, KeyError, SystemExit)) as told:
            ask()
        assert str(told.value).count(", ") < 16
        assert len(str(told.value)) < 330
