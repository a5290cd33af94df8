"""Submissions with a lost response are found in the service's list, or are not sent again."""

import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest

import voxframe
from voxframe.corpus.batch import sync
from voxframe.corpus.batch.sync import contradicts
from voxframe.corpus.job import Job, new_job
from voxframe.options import check


@pytest.fixture(autouse=True)
def settled(monkeypatch) -> None:
    """A request needs no time to arrive."""
    monkeypatch.setattr(sync, "SETTLE_S", 0)


@pytest.fixture
def calls(tmp_path: Path) -> list[Path]:
    """Four recordings."""
    paths = [tmp_path / f"{n}.mp3" for n in range(4)]
    for path in paths:
        path.write_bytes(path.name.encode())
    return paths


def lose(peer, client, corpus: voxframe.Corpus, sources: list, **options: object) -> None:
    """Submit recordings whose jobs are created, but whose responses are lost and which are not listed yet."""
    peer.cut_submissions, peer.lagging = len(sources), True
    corpus.submit(sources, client=client, progress=False, **options)


def made_by_others(peer, count: int) -> None:
    """Create transcripts of other users, and update the list."""
    peer.catch_up()
    for n in range(count):
        peer.statuses[f"other{n}"], peer.audio_urls[f"other{n}"] = "completed", f"https://elsewhere.example/{n}.mp3"
        peer.created[f"other{n}"] = peer.clock.isoformat()


@pytest.mark.parametrize("hours", [-30, 0, 30])
@pytest.mark.parametrize("first", [True, False])
def test_the_clock_of_the_service_is_ignored(peer, client, corpus, calls, hours: int, first: bool) -> None:
    """With a clock hours off and 250 newer jobs, lost jobs are found and nothing is submitted twice."""
    peer.clock += timedelta(hours=hours)
    if first:
        corpus.submit("https://audio.example/first.mp3", client=client)
    lose(peer, client, corpus, calls[:3])
    made_by_others(peer, 250)
    corpus.submit(calls, client=client)
    corpus.submit(calls, client=client)
    assert peer.count("POST /v2/transcript") == 4 + first
    assert set(corpus.jobs()["state"]) == {"submitted"}


def test_the_list_is_read_back_to_an_older_job(peer, client, corpus, calls) -> None:
    """A long list is read to one page beyond a job that is known to be older."""
    made_by_others(peer, 900)
    corpus.submit(calls[0], client=client)
    lose(peer, client, corpus, calls[1:2])
    peer.catch_up()
    peer.asked.clear()
    assert corpus.sync(client=client).adopted == 1
    assert peer.count("GET /v2/transcript?") == 2


@pytest.mark.parametrize(("first", "longest"), [(True, 200), (True, 100), (False, 200)])
def test_a_truncated_list_settles_nothing(peer, client, corpus, calls, first: bool, longest: int) -> None:
    """A job that the list does not reach stays uncertain, although a later one is listed."""
    if first:
        corpus.submit("https://audio.example/first.mp3", client=client)
    lose(peer, client, corpus, calls[:1])
    made_by_others(peer, 250)
    peer.longest_list = longest
    corpus.submit(calls[1], client=client)
    done = corpus.submit(calls, client=client)
    assert done.uncertain == 1
    assert sum(peer.audio_urls[made] == peer.audio_urls[f"t{1 + first}"] for made in peer.audio_urls) == 1
    assert peer.count("POST /v2/transcript") == 4 + first


def test_a_list_shorter_than_its_total_settles_nothing(peer, client, corpus, calls, monkeypatch) -> None:
    """A list whose total is larger than its items was truncated."""
    page, count = peer.page, [9]

    def counted(path: str) -> dict:
        found = page(path)
        return found | {"page_details": found["page_details"] | {"result_count": count[0]}}

    monkeypatch.setattr(peer, "page", counted)
    peer.drop_submissions = 1
    corpus.submit(calls[:2], client=client, concurrency=1)
    assert corpus.sync(client=client).uncertain == 1
    count[0] = 1
    assert corpus.sync(client=client).uncertain == 0


def test_a_clock_set_forward_or_back_settles_nothing(peer, client, corpus, calls, monkeypatch) -> None:
    """A request may still arrive unless both the date and the monotonic clock show that it had time."""
    monkeypatch.setattr(sync, "SETTLE_S", 60)
    peer.drop_submissions = 1
    corpus.submit(calls[:2], client=client, concurrency=1)
    lost = next(job for job in corpus._ledger.jobs() if job.state == "uncertain")
    early = {"sent": lost.sent - timedelta(days=365), "sent_clock_s": lost.sent_clock_s - 61}
    for name, value in early.items():
        corpus._ledger.save(lost, **{name: value})
        assert corpus.sync(client=client).uncertain == 1
    corpus._ledger.save(lost, **early)
    assert corpus.sync(client=client).uncertain == 0


def test_equal_urls_are_told_apart_by_options(peer, client, corpus, calls) -> None:
    """If equal audio gets equal URLs, the echoed options tell the jobs apart."""
    peer.equal_uploads = True
    wanted = [{}, {"speaker_labels": True}, {"punctuate": False}, {"language_code": "fr"}, {"audio_end_at": 5000}]
    for options in wanted:
        lose(peer, client, corpus, calls[:1], **options)
    peer.catch_up()
    assert corpus.sync(client=client).adopted == 5
    for options, job in zip(wanted, corpus._ledger.jobs(), strict=True):
        asked = peer.asked_for[job.transcript_id]
        assert {name: value for name, value in asked.items() if name != "audio_url"} == options
    assert len(peer.statuses) == 5


def test_a_job_of_another_submission_is_not_adopted(peer, client, corpus, calls) -> None:
    """A lost request does not get the transcript of the same audio with other options."""
    peer.equal_uploads = True
    corpus.submit(calls[0], client=client)
    for item in peer.asked_for.values():
        item.clear()  # the service repeats no options
    peer.drop_submissions = 1
    corpus.submit(calls[0], client=client, speaker_labels=True)
    done = corpus.sync(client=client)
    assert (done.adopted, done.uncertain) == (0, 1)


def test_a_job_with_other_options_is_not_adopted(peer, client, corpus, calls) -> None:
    """A lost request does not get a listed job of its URL that another program created with other options."""
    peer.equal_uploads = True
    client.submit(calls[0], punctuate=False)
    peer.drop_submissions = 1
    corpus.submit(calls[0], client=client)
    done = corpus.sync(client=client)
    assert (done.adopted, done.uncertain) == (0, 1)


def test_a_transcript_that_is_listed_again_is_fetched(peer, client, corpus, calls) -> None:
    """A job that became uncertain because of a 404 is fetched once it is listed again, whatever its URL."""
    corpus.submit(calls[0], client=client)
    (transcript_id,) = peer.statuses
    peer.statuses.clear()
    assert corpus.sync(client=client).uncertain == 1
    peer.statuses[transcript_id] = "completed"
    peer.audio_urls[transcript_id] = "https://elsewhere.example/a.mp3"
    assert corpus.sync(client=client).fetched == 1


def test_equal_urls_without_options_settle_nothing(peer, client, corpus, calls) -> None:
    """Two lost jobs that cannot be told apart stay uncertain and are not sent again."""
    peer.equal_uploads = True
    lose(peer, client, corpus, calls[:1])
    lose(peer, client, corpus, calls[:1], speaker_labels=True)
    peer.catch_up()
    for item in peer.asked_for.values():
        item.clear()
    assert corpus.sync(client=client).uncertain == 2
    assert corpus.submit(calls[0], client=client).sent == 0


@pytest.mark.parametrize(
    ("options", "echoed", "is_other"),
    [
        ({}, {"language_code": "fr", "speech_model": "best", "summary_type": "bullets"}, False),
        ({}, {"speaker_labels": None, "word_boost": [], "speech_threshold": None, "audio_start_from": 0}, False),
        ({}, {"speaker_labels": True}, True),
        ({}, {"audio_end_at": 4000}, True),
        ({"speaker_labels": True}, {"speaker_labels": False}, True),
        ({"speaker_labels": True}, {}, False),
        ({"language_code": "fr"}, {"language_code": "de"}, True),
        ({"language_code": "en"}, {"language_code": "en_us"}, False),
        ({"language_detection": True}, {"language_code": "de", "language_detection": True}, False),
        ({"redact_pii_policies": ["drug", "event"]}, {"redact_pii_policies": ["event", "drug"]}, False),
        ({"word_boost": ["a", "b"]}, {"word_boost": ["a"]}, True),
        ({"speech_model": "nano"}, {"speech_model": "best"}, True),
        ({"extra_body": {"tier": 2}}, {"tier": 2}, False),
        ({"extra_body": {"tier": 2}}, {"tier": 1}, True),
        ({"extra_body": {"tier": 2}}, {}, False),
        ({}, {"tier": 1}, False),
    ],
)
def test_contradicting_options(options: dict, echoed: dict, is_other: bool) -> None:
    """Requested options and defaults are compared; values filled in by the service are ignored."""
    job: Job = new_job("a.mp3", "sha256:1", check(**options), "s")
    assert contradicts(job, {"id": "t", "status": "completed", "words": [], **echoed}) is is_other


_LARGE = {"id": "t2", "status": "completed", "text": "a" * 20_000}


@pytest.mark.parametrize(
    "answer", [(200, b'{"id": no}'), (200, _LARGE), *((status, {"error": "broken"}) for status in (408, 425, 429, 500))]
)
def test_a_listed_job_that_cannot_be_read_does_not_stop_the_others(
    peer, client, corpus, calls, monkeypatch, answer
) -> None:
    """The other lost jobs are fetched; this one is reported and not sent again."""
    lose(peer, client, corpus, calls[:3])
    peer.catch_up()
    respond = peer.answer
    monkeypatch.setattr(
        peer, "answer", lambda method, path, body: answer if path.endswith("/t2") else respond(method, path, body)
    )
    small = voxframe.Client(dataclasses.replace(client.settings, max_response_mb=0.01))
    small.transport.attempts = 1
    corpus.submit(calls, client=small)
    done = corpus.sync(client=small)
    assert done.failed + done.uncertain == 1
    assert corpus.ids() == ["t1", "t3", "t4"]
    corpus.submit(calls, client=small)
    assert peer.count("POST /v2/transcript") == 4
    monkeypatch.undo()
    corpus.sync(client=client)
    assert corpus.ids() == ["t1", "t2", "t3", "t4"]


def test_equal_urls_stay_uncertain_when_a_later_job_is_listed(peer, client, corpus, calls) -> None:
    """A listed job that may belong to either of two lost ones does not show that a request never arrived."""
    peer.equal_uploads = True
    lose(peer, client, corpus, calls[:1])
    lose(peer, client, corpus, calls[:1], speaker_labels=True)
    peer.catch_up()
    for item in peer.asked_for.values():
        item.clear()
    corpus.submit(calls[1], client=client)
    assert corpus.sync(client=client).uncertain == 2
    corpus.submit(calls[0], client=client)
    assert peer.count("POST /v2/transcript") == 3
