"""Captions of the embedded service, read back by the parsers people use: Chromium's own for WebVTT, `srt` for SRT."""

from itertools import pairwise

import pytest
import srt

from voxframe.local import captions

HOSTILE = [
    "Hello,", "<b>bold</b>", "-->", "00:00:01.000", "--> 00:00:09.000", "&amp;", "&lt;i&gt;", "a<b", "c>d", "R&D", "&",
    "blank\n\nline", "carriage\r\rreturn", "\n\n2\n00:00:00,000 --> 00:00:01,000\nforged", "WEBVTT", "NOTE", "STYLE",
    "<v Bob>", "</c>", "<00:00:01.500>", "{\\an8}", "<script>window.hurt=1</script>",
    "<img src=x onerror=window.hurt=1>", "separator\u2028two",
    "next\u0085line", "nul\x00byte", "שלום", "naïve", "日本語", "🙂", "end.",
]  # fmt: skip


def spoken(texts: list[str]) -> dict:
    """A finished transcript: a word every 400 ms, a long silence after every tenth, two speakers by turns of seven."""
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
    """What a reader should see, in order: visible runs, a word's time shared out by length."""
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
    """Cues hold exactly the expected tokens; each begins and ends with its first and last; in order, none too long."""
    rest = list(expected)
    for text, start, end in cues:
        own, rest = rest[: len(text.split())], rest[len(text.split()) :]
        assert text.split() == [token for token, _, _ in own]
        assert (start, end) == (own[0][1], own[-1][2])
    assert not rest
    assert all(a[1] <= b[1] for a, b in pairwise(cues))
    assert len(cues) > 3


def chromium_cues(page, serve, vtt: str) -> list[tuple[str, int, int]]:
    """Cues as Chromium parses them: visible text, start and end in ms."""
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
            return {text: shown.textContent, elements: shown.querySelectorAll('*').length,
                    start: cue.startTime, end: cue.endTime};
        });
    }""")
    assert not any(cue["elements"] for cue in found)  # nothing that was said became markup
    assert page.evaluate("window.hurt === undefined")
    return [(cue["text"], round(cue["start"] * 1000), round(cue["end"] * 1000)) for cue in found]


@pytest.mark.browser
def test_chromium_reads_back_every_word_of_hostile_speech(page, serve):
    """Chromium's WebVTT parser gives exactly the words and times that were spoken, markup and arrows included."""
    transcript = spoken(HOSTILE)
    check(chromium_cues(page, serve, captions.vtt(transcript)), tokens(transcript))


@pytest.mark.browser
def test_chromium_reads_back_captions_shorter_than_a_word(page, serve):
    """With 12 characters a caption no cue is longer, and nothing that was said is lost."""
    transcript = spoken(HOSTILE)
    cues = chromium_cues(page, serve, captions.vtt(transcript, 12))
    assert max(len(text) for text, _, _ in cues) <= 12
    assert "".join("".join(text.split()) for text, _, _ in cues) == "".join(token for token, _, _ in tokens(transcript))


@pytest.mark.browser
def test_chromium_reads_an_empty_transcript_as_no_cues(page, serve):
    """A transcript without words is a valid WebVTT file without cues."""
    assert chromium_cues(page, serve, captions.vtt(spoken([]))) == []


def test_the_srt_package_reads_back_every_word_of_hostile_speech():
    """`srt` gives exactly the words and times; an arrow, which SRT cannot hold, becomes a typographic one."""
    transcript = spoken(HOSTILE)
    parsed = list(srt.parse(captions.srt(transcript)))
    assert [cue.index for cue in parsed] == list(range(1, len(parsed) + 1))
    cues = [(c.content, round(c.start.total_seconds() * 1000), round(c.end.total_seconds() * 1000)) for c in parsed]
    expected = [(token.replace("-->", "→"), start, end) for token, start, end in tokens(transcript)]
    check(cues, expected)
