"""The HTML of a transcript and of a corpus in a browser."""

import json
import re

import pytest

from tests.hostile import HOSTILE
from voxframe.client import connect
from voxframe.client.response import HTTPResponse
from voxframe.client.transcript import Transcript
from voxframe.corpus import Corpus
from voxframe.corpus.job import new_job

pytestmark = pytest.mark.browser

_CONTRAST = """element => {
    const light = color => color.match(/[\\d.]+/g).slice(0, 3).reduce((sum, part, n) => {
        const c = part / 255;
        return sum + [0.2126, 0.7152, 0.0722][n] * (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    }, 0);
    const ink = light(getComputedStyle(element).color), paper = light(getComputedStyle(document.body).backgroundColor);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
}"""


def reprs(tmp_path) -> list[tuple[str, str]]:
    """Return, for each hostile text, the HTML of a transcript made of it and of a corpus in a folder of that name."""
    client = connect(base_url="http://127.0.0.1:9", api_key="none")
    shown = []
    for text in HOSTILE:
        payload = {"id": text, "status": text, "error": text, "text": text, "audio_duration": 5}
        answer = HTTPResponse(200, {}, json.dumps(payload).encode(), "GET", "/")
        shown.append((text, Transcript(client.transport, text, answer)._repr_html_()))
        corpus = Corpus(tmp_path / re.sub(r"[/\x00]", "_", text)[:200])
        corpus._ledger.save(new_job(text, text, {}, "here", state="completed", audio_duration_s=7200))
        shown.append((re.sub(r"[/\x00]", "_", text), corpus._repr_html_()))
    return shown


def test_hostile_texts_are_text(page, serve, tmp_path):
    """24 hostile texts as id, status, error, text and folder run no script, make no element and are readable."""
    shown = reprs(tmp_path)
    assert len(shown) == 2 * 24
    body = "".join(f"<section>{html}</section>" for _, html in shown)
    page.goto(serve({"/": ("text/html; charset=utf-8", f"<!doctype html><body>{body}".encode())}))
    page.mouse.move(300, 200)
    for link in page.locator("section a").all():
        link.click()
    page.wait_for_timeout(200)
    assert page.evaluate("window.hurt") is None
    kinds = page.evaluate("[...new Set([...document.querySelectorAll('section *')].map(e => e.tagName))].sort()")
    assert kinds == ["TABLE", "TBODY", "TD", "TH", "TR"]
    for section, (text, html) in zip(page.locator("section").all(), shown, strict=True):
        assert text.replace("\x00", "") in section.text_content()
        assert len(html) < 4_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_they_can_be_read_in_both_themes(page, serve, tmp_path, scheme):
    """Text has a contrast of at least 7 on a white and on a dark page."""
    corpus = Corpus(tmp_path / "calls")
    corpus.raw.put("a1", b'{"id": "a1", "status": "completed", "words": []}')
    corpus._ledger.save(new_job("a.wav", "m", {}, "here", state="completed", audio_duration_s=9000))
    corpus._ledger.save(new_job("b.wav", "n", {}, "here", state="error"))
    ink, paper = ("#111", "#fff") if scheme == "light" else ("#e8e8e8", "#111")
    style = f"<body style='color: {ink}; background: {paper}'>"
    page.goto(serve({"/": ("text/html", f"<!doctype html>{style}{corpus._repr_html_()}".encode())}))
    assert all(cell.evaluate(_CONTRAST) > 7 for cell in page.locator("td, th").all())
    assert page.locator("td").all_text_contents()[1:] == ["1", "1 completed, 1 error", "2.5 hours of audio"]
