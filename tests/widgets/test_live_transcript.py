import json
import wave
from html.parser import HTMLParser
from pathlib import Path

import pytest

import voxframe
from voxframe.client.stream import messages
from voxframe.errors import OptionError
from voxframe.widgets import LiveTranscript
from voxframe.widgets.embedded_player import RecordingFinder
from voxframe.widgets.live_transcript import BrowserSound

CANARY = "canary-5f1b0c77d2"
HOSTILE = "<img src=x onerror='window.hurt=1'><script>window.hurt=1</script>"


@pytest.fixture
def live(service):
    live = LiveTranscript(service)
    yield live
    live.close()


@pytest.mark.speech
def test_a_file_is_streamed_with_partials_and_finals(live, short, corpus):
    """Partials are replaced and finals stay; the DataFrames are those of the session; the code gives the same text.

    `save` adds the words and the place of the sound to a corpus, where the search finds and plays them.
    """
    partials = []
    live.observe(lambda change: partials.append(change["new"]), "_partial")
    live.file = str(short)
    live._on_browser_message({"do": "file"}, [])
    live.wait(60)
    assert live.error == ""
    assert any(partials)
    assert live._partial == ""
    assert not live.running
    assert live.text == " ".join(final["text"] for final in live._finals) != ""
    assert live.result["message_type"].unique().tolist() == ["FinalTranscript"]
    assert len(live.words) == sum(len(text.split()) for text in live.result["text"].dropna())
    names: dict = {"given": live._client}
    exec(live.code.replace("voxframe.connect()", "given"), names)
    assert " ".join(filter(None, names["result"]["text"])) == live.text
    (name,) = live.save(corpus)
    assert corpus.table("words", name)["text"].tolist() == live.words["text"].tolist()
    assert corpus.jobs().set_index("recording").loc[name, ["source", "state"]].tolist() == [str(short), "completed"]
    assert RecordingFinder(corpus).playable(name) == str(short)
    assert live.save(corpus) == [name]
    assert len(corpus.jobs()) == 1
    live.start()  # the same file once more
    live.wait(60)
    assert len({*live.save(corpus)}) == len(corpus.jobs()) == sum(i.startswith("live-") for i in corpus.ids()) == 2
    assert RecordingFinder(corpus).playable(name) == str(short)
    live._on_browser_message({"do": "clear"}, [])
    assert (live._finals, len(live.result)) == ([], 0)
    with pytest.raises(OptionError, match="nothing to save"):
        live.save(corpus)


def test_a_final_leaves_the_partial_of_the_next_utterance(live):
    """A final of one utterance does not remove the partial of the next."""
    before, after = (
        {"message_type": "PartialTranscript", "text": text, "audio_start": start, "audio_end": start + 900, "words": []}
        for text, start in (("what was said", 100), ("what is said", 2000))
    )
    final = before | {"message_type": "FinalTranscript", "text": "What was said."}

    def message(wire):
        return messages.read(json.dumps(wire), session_id=None, idx=0)

    live._on_partial(message(before))
    live._on_partial(message(after))
    live._on_final(message(final))
    assert (live._partial, [one["text"] for one in live._finals]) == ("what is said", ["What was said."])
    live._on_final(message(final | {"audio_start": 2000, "audio_end": 2900}))
    assert live._partial == ""
    live._on_partial(message(after))
    live._on_final(message(final | {"audio_end": None}))  # a service that does not say where it ends has one at a time
    assert live._partial == ""


@pytest.mark.speech
def test_sound_of_a_browser_is_transcribed_until_stopped(live, short, corpus):
    """Blocks of samples become text; Stop ends the session, and samples sent before are still transcribed."""
    with wave.open(str(short)) as file:
        rate, samples = file.getframerate(), file.readframes(file.getnframes())
    live._on_browser_message({"do": "listen", "rate": rate}, [])
    assert live.running
    live._on_browser_message({"do": "listen", "rate": rate}, [])
    assert "is running" in live.error
    for n in range(0, len(samples), rate // 5):
        live._on_browser_message({"do": "sound"}, [memoryview(samples[n : n + rate // 5])])
    live._on_browser_message({"do": "stop"}, [])
    live.wait(60)
    assert not live.running
    assert live.text
    assert "voxframe.microphone()" in live.code
    (name,) = live.save(corpus)
    with wave.open(RecordingFinder(corpus).playable(name)) as file:
        assert (file.getframerate(), file.readframes(file.getnframes())) == (rate, samples)
    stored = Path(RecordingFinder(corpus).playable(name))
    corpus.forget(name)
    assert not stored.exists()


@pytest.mark.speech
def test_stop_ends_a_session_that_is_about_to_begin(live, long):
    """Stop works while the widget connects: the rest of a recording of 90 seconds is not streamed."""
    live.file = str(long)
    live.start()
    live.stop()
    live.wait(30)
    assert (live.running, live.error) == (False, "")


def test_a_refused_microphone_is_switched_off(live):
    """The browser is told to stop if its sample rate cannot be used."""
    sent = []
    live.send = sent.append
    live._on_browser_message({"do": "listen", "rate": 400_000}, [])
    assert "sample rate of the microphone" in live.error
    assert sent == [{"do": "stop"}]


def test_unread_sound_is_limited_to_a_minute():
    """The newest minute is kept, odd bytes are cut off, and the end of the stream is delivered."""
    sound = BrowserSound(16_000)
    kept = [sound.put(bytes([n % 256, 0, 7])) for n in range(700)]
    sound.end()
    blocks = list(sound)
    assert kept == [True] * 600 + [False] * 100
    assert blocks[-1] == bytes([699 % 256, 0])
    assert len(blocks) == 599


def test_invalid_input_is_reported(live, tmp_path):
    """No file, a missing file and options set by the widget give errors with the next step."""
    live._on_browser_message({"do": "file"}, [])
    assert "no file to stream" in live.error
    live.file = str(tmp_path / "nowhere.wav")
    live.start()
    live.wait(30)
    assert "nowhere.wav" in live.error
    assert not live.running
    live._on_browser_message({"do": "listen", "rate": 3}, [])
    assert "sample rate of the microphone" in live.error
    with pytest.raises(OptionError, match="LiveTranscript sets sample_rate itself"):
        LiveTranscript(sample_rate=8000)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag, attrs) -> None:
        self.seen.add(tag)


def test_finals_are_text_and_a_token_is_not_stored(service):
    """Markup in finals is text in the saved notebook; a token is in no trait and no code."""
    live = LiveTranscript(service, title=HOSTILE, token=CANARY)
    live._finals = [{"text": HOSTILE, "start_ms": 1000}]
    tags = Tags()
    tags.feed(live._repr_mimebundle_()[0]["text/html"])
    assert tags.seen == {"div", "p", "strong", "small"}
    shown = [json.dumps(live.get_state(), default=str), live.code, repr(live), live.static_html()]
    assert not [text for text in shown if CANARY in text]
    assert isinstance(live, voxframe.LiveTranscript)
