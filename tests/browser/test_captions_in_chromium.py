"""Captions of the embedded server and of exports, read by Chromium's WebVTT parser and by the package `srt`."""

from itertools import pairwise

import pytest
import srt

import voxframe
from tests.hostile import HOSTILE as MARKUP
from voxframe import export
from voxframe_engine.text import srt as as_srt
from voxframe_engine.text import vtt

HOSTILE = [
    "Hello,", "<b>bold</b>", "-->", "00:00:01.000", "--> 00:00:09.000", "&amp;", "&lt;i&gt;", "a<b", "c>d", "R&D", "&",
    "blank\n\nline", "carriage\r\rreturn", "\n\n2\n00:00:00,000 --> 00:00:01,000\nforged", "WEBVTT", "NOTE", "STYLE",
    "<v Bob>", "</c>", "<00:00:01.500>", "{\\an8}", "<script>window.hurt=1</script>",
    "<img src=x onerror=window.hurt=1>", "separator\u2028two",
    "next\u0085line", "nul\x00byte", "שלום", "naïve", "日本語", "🙂", "end.",
]  # fmt: skip


def spoken(texts: list[str]) -> dict:
    """A finished transcript: one word every 400 ms, a silence after every tenth, two speakers in turns of seven."""
    words = [
        {
            "text": text,
            "start": 100 + 400 * n + 5000 * (n // 10),
            "end": 400 + 400 * n + 5000 * (n // 10),
            "confidence": 0.9,
            "speaker": "AB"[n // 7 % 2],
        }
        for n, text in enumerate(texts)
    ]
    return {"id": "t", "status": "completed", "words": words, "utterances": None}


def tokens(transcript: dict) -> list[tuple[str, int, int]]:
    """Return the expected texts in order; the time of a word is divided among its parts by length."""
    found = []
    for word in transcript["words"]:
        runs = word["text"].replace("\x00", "").split()  # neither format can carry a null character
        share = (word["end"] - word["start"]) / len("".join(runs))
        at = float(word["start"])
        for run in runs:
            found.append((run, int(at), int(at + share * len(run) + 1e-6)))
            at += share * len(run)
    return found


def check(cues: list[tuple[str, int, int]], expected: list[tuple[str, int, int]]) -> None:
    """Check that cues hold exactly the expected tokens in order, begin with them, and end with them or later."""
    rest = list(expected)
    for text, start, end in cues:
        own, rest = rest[: len(text.split())], rest[len(text.split()) :]
        assert text.split() == [token for token, _, _ in own]
        assert start == own[0][1]
        assert own[-1][2] <= end <= max(own[-1][2], start + 800, rest[0][1] if rest else end)
    assert not rest
    assert all(a[1] <= b[1] for a, b in pairwise(cues))
    assert len(cues) > 3


def chromium_cues(page, serve, vtt: str, voices: list[str] | None = None) -> list[tuple[str, int, int]]:
    """Return cues as Chromium parses them: visible text, start and end in ms. The only elements are voice tags."""
    base = serve(
        {
            "/": ("text/html", b"<video controls><track kind=captions src=/captions.vtt></video>"),
            "/captions.vtt": ("text/vtt; charset=utf-8", vtt.encode()),
            "/favicon.ico": ("image/x-icon", b""),
        }
    )
    page.goto(base)
    page.evaluate("document.querySelector('video').textTracks[0].mode = 'showing'")
    page.wait_for_function("document.querySelector('track').readyState >= 2")
    assert page.evaluate("document.querySelector('track').readyState") == 2  # 3 is an error
    found = page.evaluate("""() => {
        const cues = Array.from(document.querySelector('track').track.cues);
        return cues.map((cue) => {
            const shown = cue.getCueAsHTML();
            const elements = Array.from(shown.querySelectorAll('*'));
            return {text: shown.textContent, elements: elements.map((one) => [one.tagName, one.title]),
                    start: cue.startTime, end: cue.endTime};
        });
    }""")
    elements = [element for cue in found for element in cue["elements"]]
    assert elements == [["SPAN", voice] for voice in voices or ()]  # nothing that was said became markup
    assert page.evaluate("window.hurt === undefined")
    return [(cue["text"], round(cue["start"] * 1000), round(cue["end"] * 1000)) for cue in found]


@pytest.mark.browser
def test_chromium_reads_back_every_word_of_hostile_speech(page, serve):
    """Chromium's WebVTT parser gives exactly the words and times spoken, including markup and arrows."""
    transcript = spoken(HOSTILE)
    check(chromium_cues(page, serve, vtt(transcript)), tokens(transcript))


@pytest.mark.browser
def test_chromium_reads_back_captions_shorter_than_a_word(page, serve):
    """With 12 characters per caption no cue is longer, and no text is lost."""
    transcript = spoken(HOSTILE)
    cues = chromium_cues(page, serve, vtt(transcript, 12))
    assert max(len(text) for text, _, _ in cues) <= 12
    assert "".join("".join(text.split()) for text, _, _ in cues) == "".join(token for token, _, _ in tokens(transcript))


@pytest.mark.filterwarnings("ignore::voxframe.errors.ExportWarning")  # losses of hostile words
@pytest.mark.browser
def test_chromium_reads_back_every_word_of_an_export(page, serve):
    """An exported file shows exactly the words and times spoken, including `&amp;` and `<`."""
    transcript = spoken([*HOSTILE, *MARKUP])
    transcript["words"] = [word | {"text": word["text"].replace("\ufffe", "")} for word in transcript["words"]]
    made = export.vtt(voxframe.load_words(transcript), speakers=False)
    check(chromium_cues(page, serve, made), tokens(transcript))


@pytest.mark.filterwarnings("ignore::voxframe.errors.ExportWarning")  # losses of hostile words
@pytest.mark.browser
def test_chromium_reads_back_the_speakers_of_an_export(page, serve):
    """Captions of an export have voice tags for any name; overlaps stay, and an instant lasts 0.8 s."""
    names = ['Ann "the" <b>', "R&amp;D & Co", "x>y", None]
    texts = ["&amp;", "a<b", "&lt;i&gt;", "<v Eve>"]
    words = [
        {"text": text, "start": 1000 * n, "end": 1000 * n + 1500 * (n < 3), "speaker": name}
        for n, (text, name) in enumerate(zip(texts, names, strict=True))
    ]
    made = export.vtt(voxframe.load_words({"id": "t", "words": words}))
    expected = [("&amp;", 0, 1500), ("a<b", 1000, 2500), ("&lt;i&gt;", 2000, 3500), ("<v Eve>", 3000, 3800)]
    assert chromium_cues(page, serve, made, names[:3]) == expected


@pytest.mark.browser
def test_chromium_reads_an_empty_transcript_as_no_cues(page, serve):
    """A transcript without words is a valid WebVTT file without cues."""
    assert chromium_cues(page, serve, vtt(spoken([]))) == []


def test_the_srt_package_reads_back_every_word_of_hostile_speech():
    """`srt` gives exactly the words and times; an arrow becomes one character, because SRT has no escape for it."""
    transcript = spoken(HOSTILE)
    parsed = list(srt.parse(as_srt(transcript)))
    assert [cue.index for cue in parsed] == list(range(1, len(parsed) + 1))
    cues = [(c.content, round(c.start.total_seconds() * 1000), round(c.end.total_seconds() * 1000)) for c in parsed]
    expected = [(token.replace("-->", "→"), start, end) for token, start, end in tokens(transcript)]
    check(cues, expected)
