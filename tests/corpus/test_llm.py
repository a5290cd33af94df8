"""Language-model operations of a corpus, with the embedded server's extractive answers."""

import json
import shutil
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import orjson
import pytest
from tests.server.conftest import KEY, Service, Web

import voxframe
from voxframe import options
from voxframe.corpus.llm import MAX_CHARS, make_batches, split_by_limits
from voxframe.errors import BadRequestError, CorpusError, NotFoundError, OptionError
from voxframe_server.jobs import JobStore
from voxframe_server.jobs.data_dir import DataDir

MANY = 4


def talk(n: int) -> list[dict]:
    """Words of a short talk."""
    said = [
        ("A", f"Good morning, this is caller number {n}."),
        ("B", "The new bridge opens on the third of May."),
        ("A", "I will send you the drawings on Friday."),
    ]
    words: list[dict] = []
    for speaker, text in said:
        for word in text.split():
            at = 250 * len(words)
            words.append({"text": word, "start": at, "end": at + 200, "confidence": 0.9, "speaker": speaker})
    return words


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The embedded server."""
    running = Service(tmp_path_factory.mktemp("service") / "data", "--llm-requests", "0")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[voxframe.Client]:
    """A client of it."""
    with voxframe.connect(service.url, api_key=KEY) as client:
        yield client


@pytest.fixture(autouse=True)
def fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request accepts one transcript less than there are, instead of a hundred."""
    monkeypatch.setattr("voxframe.corpus.llm.LLM_TRANSCRIPTS", MANY - 1)


@pytest.fixture(scope="module")
def corpus(service: Service, tmp_path_factory: pytest.TempPathFactory) -> voxframe.Corpus:
    """A corpus of transcripts that the service has too."""
    corpus = voxframe.Corpus(tmp_path_factory.mktemp("asking") / "corpus")
    data_dir = DataDir(service.data_dir)
    jobs = JobStore(data_dir.database)
    for n in range(MANY):
        job = jobs.add({"audio_url": "http://192.0.2.1/a"}, None, "nobody", data_dir.job).id
        result = {"words": talk(n), "text": "", "audio_duration": 30, "confidence": 0.9}
        data_dir.result(job).write_bytes(orjson.dumps(result))
        jobs.database.connection.execute("UPDATE jobs SET status = 'completed', holder = NULL WHERE id = ?", (job,))
        corpus.raw.put(job, orjson.dumps({"id": job, "status": "completed", **result}))
    jobs.close()
    return corpus


def asked(answers) -> list[str]:
    """Return the ids of the requests behind an answer."""
    return [response.request_id for response in answers.responses]


def test_a_large_selection_is_split_and_combined(corpus: voxframe.Corpus, client) -> None:
    """A selection over the limit is summarized in parts and combined by one more request; repeated calls send none."""
    found = corpus.summarize(client=client, answer_format="one sentence")
    assert [len(response.transcript_ids) for response in found.responses] == [MANY - 1, 1, MANY]
    assert found.transcript_ids == tuple(corpus.ids())
    assert found.text == found.responses[-1].text
    assert found.text
    assert found.quotes_key_sentences
    assert found.usage.output_tokens == sum(r.usage.output_tokens for r in found.responses)
    again = voxframe.Corpus(corpus.path).summarize(client=client, answer_format="one sentence")
    assert asked(again) == asked(found)
    assert again.text == found.text
    some = corpus.table("transcripts").tail(2)
    assert not set(asked(corpus.summarize(some, client=client))) & set(asked(found))
    assert len(corpus.raw.responses()) == 4


def test_partial_results_that_fit_into_no_request_are_joined(corpus: voxframe.Corpus, client, monkeypatch) -> None:
    """If no two partial results fit into one request, they are joined instead of being combined by the model."""
    monkeypatch.setattr("voxframe.corpus.llm.MAX_CHARS", 10)
    found = corpus.summarize(client=client, answer_format="two sentences")
    assert len(found.responses) > 1
    assert found.text == "\n\n".join(response.text for response in found.responses)


def test_questions_tasks_and_items(corpus: voxframe.Corpus, client) -> None:
    """Each question has one reply over all parts; action items of the parts are joined."""
    found = corpus.ask(["When does the bridge open?", "Who calls?"], client=client, passages=0)
    assert [reply.question for reply in found.replies] == ["When does the bridge open?", "Who calls?"]
    assert "third of May" in found.replies[0].answer
    assert len(found.responses) == 3
    items = corpus.action_items(client=client)
    assert len(items.responses) == 2
    assert items.text == "\n".join(response.text for response in items.responses)
    done = corpus.task("List what was promised.", corpus.ids()[0], client=client)
    assert done.responses[0].prompt == "List what was promised."
    fresh = corpus.task("List what was promised.", corpus.ids()[0], client=client, refresh=True)
    assert asked(fresh) != asked(done)


def test_passages_of_many_transcripts_are_sent_and_cited(corpus: voxframe.Corpus, client) -> None:
    """A selection that needs several requests is answered with one, from the closest passages, with their times."""
    found = corpus.ask(["When does the bridge open?", "Who plays chess in Peru?"], client=client)
    assert len(found.responses) == 1
    assert "third of May" in found.replies[0].answer
    assert set(found.citations["question_idx"]) == {0}
    first = found.citations.iloc[0]
    assert first["text"] == "The new bridge opens on the third of May."
    assert first["start_ms"] == 250 * len("Good morning, this is caller number 0.".split())
    assert first["end_ms"] - first["start_ms"] == 250 * 8 + 200
    whole = corpus.ask("When does the bridge open?", corpus.ids()[0], client=client)
    assert whole.citations.iloc[0][["transcript_id", "text"]].to_list() == [corpus.ids()[0], first["text"]]
    with pytest.raises(OptionError, match="passages must be"):
        corpus.ask("Who?", passages=-1)


def test_speaker_names_are_sent(corpus: voxframe.Corpus, client) -> None:
    """A transcript with speaker names is sent as text with them; other names are another request."""
    first, second = corpus.ids()[:2]
    by_id = corpus.summarize(first, client=client)
    corpus.speakers.set(first, {"A": "Maria"})
    (batch,) = make_batches(corpus._archive, [first])
    assert batch.text.splitlines()[1] == "B: The new bridge opens on the third of May."
    assert batch.text.startswith("Maria: Good morning")
    assert [p.text is None for p in make_batches(corpus._archive, [first, second])] == [True, False]
    named = corpus.summarize(first, client=client)
    assert asked(named) != asked(by_id)
    assert named.transcript_ids == (first,)
    corpus.speakers.undo(first)
    assert asked(corpus.summarize(first, client=client)) == asked(by_id)


def test_corrections_are_sent(tmp_path: Path) -> None:
    """A transcript with a corrected turn is sent as text with it."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    turns = [
        {"speaker": "A", "text": text, "start": n, "end": n + 1, "words": []} for n, text in enumerate(("Hay.", "No."))
    ]
    corpus.raw.put("t", orjson.dumps({"id": "t", "status": "completed", "utterances": turns}))
    corpus.corrections.set("t", {0: "Hey."})
    assert [batch.text for batch in make_batches(corpus._archive, "t")] == ["A: Hey.\nA: No."]


def test_forgetting_a_transcript_purges_its_responses(corpus: voxframe.Corpus, client) -> None:
    """Every response about it is deleted from the corpus and the service; others stay."""
    gone, stays = corpus.ids()[-1], corpus.ids()[0]
    about_it = corpus.ask("Who calls?", [stays, gone], client=client)
    other = corpus.ask("Who calls?", stays, client=client)
    before = corpus.raw.captions(gone, client=client)
    assert before
    corpus.forget(gone, remote=True, client=client)
    left = set(corpus.raw.responses()["request_id"])
    assert not left & set(asked(about_it))
    assert set(asked(other)) <= left
    with pytest.raises(NotFoundError):
        client.llm_response(asked(about_it)[0])
    assert client.llm_response(asked(other)[0]).text == other.text
    with pytest.raises(CorpusError, match="no finished transcript"):
        corpus.raw.captions(gone, client=client)


def test_captions_and_word_search_are_cached(corpus: voxframe.Corpus, client) -> None:
    """A repeated call needs no service; other arguments are another request."""
    wanted = corpus.ids()[0]
    captions = corpus.raw.captions(wanted, "vtt", chars_per_caption=30, client=client)
    assert captions == client.subtitles(wanted, "vtt", chars_per_caption=30)
    matches = corpus.raw.word_search(wanted, ["bridge", "the"], client=client)
    assert {match.text: match.count for match in matches.matches} == {"bridge": 1, "the": 3}
    with voxframe.connect("http://127.0.0.1:9", api_key="none") as nobody:
        other = voxframe.Corpus(corpus.path)
        assert other.raw.captions(wanted, "vtt", chars_per_caption=30, client=nobody) == captions
        assert other.raw.word_search(wanted, "bridge, the", client=nobody) == matches


@pytest.fixture
def redacting(web: Web) -> Iterator[voxframe.Client]:
    """A client of a service that has a redacted copy of t1, at `/copy.mp3`."""
    ready = {"redacted_audio_url": f"{web.origin}/copy.mp3", "status": "redacted_audio_ready"}
    web.page("/v2/transcript/t1/redacted-audio", orjson.dumps(ready))
    with voxframe.connect(web.origin, api_key="key") as client:
        yield client


@pytest.fixture
def empty(tmp_path: Path) -> voxframe.Corpus:
    """A corpus with the transcript t1, which has no words."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.raw.put("t1", b'{"id": "t1", "status": "completed", "words": []}')
    return corpus


def test_redacted_audio_is_downloaded_once(web: Web, redacting, empty: voxframe.Corpus) -> None:
    """The file is stored in the corpus, found there again, and deleted with its transcript."""
    web.page("/copy.mp3", b"beep")
    path = empty.raw.redacted_audio("t1", client=redacting)
    assert path.read_bytes() == b"beep"
    asked_for = len(web.asked)
    assert voxframe.Corpus(empty.path).raw.redacted_audio("t1", client=redacting) == path
    assert len(web.asked) == asked_for
    empty.forget("t1")
    assert not path.exists()


def test_redacted_audio_is_not_written_through_a_link(web: Web, redacting, empty: voxframe.Corpus) -> None:
    """A symbolic link in place of the folder is refused, and its target stays empty."""
    web.page("/copy.mp3", b"beep")
    elsewhere = empty.path.parent / "elsewhere"
    elsewhere.mkdir()
    (empty.path / "redacted").symlink_to(elsewhere)
    with pytest.raises(CorpusError, match="is a symbolic link"):
        empty.raw.redacted_audio("t1", client=redacting)
    assert [*elsewhere.iterdir()] == []


def test_a_partial_download_is_deleted_with_its_transcript(web: Web, redacting, empty) -> None:
    """An interrupted download leaves a part to resume from; `forget` deletes it."""

    def break_off(handler: BaseHTTPRequestHandler) -> None:
        web.page("/copy.mp3", status=404)
        handler.send_response(200)
        handler.send_header("ETag", '"one"')
        handler.send_header("Content-Length", "400000")
        handler.end_headers()
        handler.wfile.write(b"half" * 50_000)

    web.pages["/copy.mp3"] = break_off
    with pytest.raises(NotFoundError):
        empty.raw.redacted_audio("t1", client=redacting)

    def begun() -> list[bytes]:
        return [path.read_bytes()[:4] for path in (empty.path / "redacted").rglob("*.part")]

    assert begun() == [b"half"]
    empty.forget("t1")
    assert begun() == []


@pytest.mark.parametrize("path", ["/copy.mp3", "/v2/transcript/t1/srt"])
def test_no_response_is_kept_of_a_transcript_that_is_deleted_meanwhile(web: Web, redacting, empty, path: str) -> None:
    """A response about a transcript that is deleted while it is requested is not stored."""

    def delete_and_answer(handler: BaseHTTPRequestHandler) -> None:
        voxframe.Corpus(empty.path).forget("t1")
        handler.send_response(200)
        handler.send_header("Content-Length", "4")
        handler.end_headers()
        handler.wfile.write(b"beep")

    web.pages[path] = delete_and_answer
    with pytest.raises(CorpusError, match=r"there is no transcript 't1'|No such file"):  # of the download
        (empty.raw.redacted_audio if path == "/copy.mp3" else empty.raw.captions)("t1", client=redacting)
    assert not empty._archive.catalog.mentions("t1")
    assert not [path for path in (empty.path / "redacted").rglob("*") if path.is_file()]


def test_no_answer_is_kept_about_a_transcript_that_is_deleted_meanwhile(
    corpus: voxframe.Corpus, client, tmp_path: Path, monkeypatch
) -> None:
    """An answer about a transcript that is deleted while the service works on it is returned, but not stored."""
    shutil.copytree(corpus.path, tmp_path / "copy")
    copy = voxframe.Corpus(tmp_path / "copy")
    wanted, ask = copy.ids()[0], client.summarize

    def delete_and_ask(**arguments):
        voxframe.Corpus(copy.path).forget(wanted)
        return ask(**arguments)

    monkeypatch.setattr(client, "summarize", delete_and_ask)
    assert copy.summarize(wanted, client=client, refresh=True).transcript_ids == (wanted,)
    assert not copy._archive.catalog.mentions(wanted)


def test_transcripts_without_speech_are_left_out(corpus: voxframe.Corpus, client) -> None:
    """The others are summarized; if all are without speech, that is an error."""
    corpus.raw.put("silent", b'{"id": "silent", "status": "completed", "text": "", "words": []}')
    try:
        some = [corpus.ids()[0], "silent"]
        assert corpus.summarize(some, client=client).transcript_ids == (some[0],)
        with pytest.raises(OptionError, match="contain no speech"):
            corpus.summarize("silent", client=client)
    finally:
        corpus._archive.remove("silent")


def test_batches_keep_to_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No batch exceeds the limits of transcripts, hours and characters, and no transcript is left out."""
    monkeypatch.setattr("voxframe.corpus.llm.LLM_TRANSCRIPTS", options.LLM_TRANSCRIPTS)
    assert [len(group) for group in split_by_limits({f"{n}": 0.1 for n in range(205)})] == [100, 100, 5]
    corpus = voxframe.Corpus(tmp_path / "corpus")
    words = [{"text": "word" * 500, "start": n, "end": n + 1, "speaker": "AB"[n % 2]} for n in range(60)]
    for name, hours in {"a": 60, "b": 30, "c": 20, "d": 120, "e": 1}.items():
        body = {"id": name, "status": "completed", "audio_duration": hours * 3600, "words": words}
        corpus.raw.put(name, orjson.dumps(body))
    assert [batch.ids for batch in make_batches(corpus._archive, None)] == [("a", "b"), ("c",), ("d",), ("e",)]
    for name in "ab":
        corpus.speakers.set(name, {"A": "Ada"})
    texts = [batch.text for batch in make_batches(corpus._archive, ["a", "b"])]
    assert len(texts) == 2
    assert max(map(len, texts)) <= MAX_CHARS
    assert sum(text.count("word") for text in texts) == 2 * 60 * 500


def test_invalid_requests_are_refused(corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """Unknown and unfinished transcripts, an empty selection and invalid options are errors before any request."""
    with pytest.raises(CorpusError, match="no transcript 'gone'"):
        corpus.summarize("gone")
    with pytest.raises(OptionError, match="input_text"):
        corpus.summarize(input_text="text")
    with pytest.raises(OptionError, match="temperature must be a number from 0 to 1, got 2"):
        corpus.summarize(temperature=2)
    with pytest.raises(OptionError, match="refresh must be True, False or 'lost', got 'uncertain'"):
        corpus.summarize(refresh="uncertain")
    empty = voxframe.Corpus(tmp_path / "corpus")
    with pytest.raises(OptionError, match="no completed transcript"):
        empty.ask("Who?")
    empty.raw.put("bad", b'{"id": "bad", "status": "error", "error": "no audio"}')
    with pytest.raises(OptionError, match="'bad' is not completed"):
        empty.summarize("bad")


def test_a_transcript_that_the_service_does_not_have_is_sent_as_text(corpus, client, tmp_path: Path) -> None:
    """A transcript added from a file is sent as text, beside one that the service has, and only once."""
    mixed = voxframe.Corpus(tmp_path / "corpus")
    mixed.adopt(client)
    others = mixed.ids()
    mixed.raw.put("elsewhere", json.dumps({"id": "elsewhere", "status": "completed", "words": talk(77)}).encode())
    alone = mixed.ask("Which caller is it?", "elsewhere", client=client)
    assert "77" in alone.text
    assert asked(mixed.ask("Which caller is it?", "elsewhere", client=client)) == asked(alone)
    both = mixed.ask("Which caller is it?", ["elsewhere", others[0]], client=client)
    assert [response.transcript_ids for response in both.responses[:2]] == [(others[0],), ("elsewhere",)]
    with voxframe.connect(client.base_url, api_key="refused") as locked:
        for about, answered in (("elsewhere", alone), (["elsewhere", others[0]], both)):
            assert asked(mixed.ask("Which caller is it?", about, client=locked)) == asked(answered)


def test_a_transcript_deleted_at_the_service_is_an_error(client, tmp_path: Path) -> None:
    """A transcript that the service created and deleted is not sent as text."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    corpus.adopt(client)
    gone = corpus.ids()[0]
    client.delete(gone)
    with pytest.raises(BadRequestError, match=r"not known here|deleted"):
        corpus.ask("When does the bridge open?", gone, client=client)


def test_words_without_text_are_refused(client, tmp_path: Path) -> None:
    """A transcript with only blank or null words is an error."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    words = [{"text": text, "start": n, "end": n + 1} for n, text in enumerate((None, "  "))]
    corpus.raw.put("blank", orjson.dumps({"id": "blank", "status": "completed", "words": words}))
    with pytest.raises(OptionError, match="contain no text"):
        corpus.ask("Who speaks?", "blank", client=client)


def test_a_new_copy_replaces_one_with_another_suffix(web: Web, redacting, empty: voxframe.Corpus) -> None:
    """If the service sends another format, later calls return the new file, and the old one is gone."""
    web.page("/copy.mp3", b"beep")
    old = empty.raw.redacted_audio("t1", client=redacting)
    ready = {"redacted_audio_url": f"{web.origin}/copy.wav", "status": "redacted_audio_ready"}
    web.page("/v2/transcript/t1/redacted-audio", orjson.dumps(ready))
    web.page("/copy.wav", b"boop")
    new = empty.raw.redacted_audio("t1", client=redacting, refresh=True)
    assert (old.suffix, new.suffix) == (".mp3", ".wav")
    assert not old.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert empty.raw.redacted_audio("t1").read_bytes() == b"boop"
