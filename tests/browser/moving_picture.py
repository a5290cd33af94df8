"""Draw the moving picture of the README with a real player in a real browser: `python -m tests.browser.moving_picture`.

It plays a panel, searches for a word, corrects a turn and undoes it. Needs Chromium, Playwright and Pillow.
"""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import voxframe
from tests.browser.conftest import FLAGS, chromium_path
from tests.browser.host import Host

DATA = Path(__file__).parents[2] / "data"
#: Most bytes of the picture: it is loaded with the README.
MOST_BYTES = 400_000
_WIDTH, _HEIGHT, _SCALE = 940, 560, 0.85
_NAMES = {"A": "Ada", "B": "James", "C": "Andrew", "D": "Dora"}


class Film:
    """Frames of a page with the time that each is shown."""

    def __init__(self, host: Host) -> None:
        self._page = host.page
        self.frames: list[Image.Image] = []
        self.times_ms: list[int] = []

    def shoot(self, time_ms: int) -> None:
        """Add what the page shows now."""
        self._page.wait_for_timeout(120)
        shot = Image.open(io.BytesIO(self._page.screenshot(clip={"x": 0, "y": 0, "width": _WIDTH, "height": _HEIGHT})))
        size = (round(_WIDTH * _SCALE), round(_HEIGHT * _SCALE))
        self.frames.append(shot.convert("RGB").resize(size, Image.Resampling.LANCZOS))
        self.times_ms.append(time_ms)

    def save(self, path: Path) -> None:
        """Write an animated WebP."""
        first, *rest = self.frames
        first.save(path, append_images=rest, duration=self.times_ms, loop=0, quality=60, method=6, minimize_size=True)
        if path.stat().st_size > MOST_BYTES:
            raise SystemExit(f"{path} has {path.stat().st_size:,} bytes, more than {MOST_BYTES:,}; show less")


def play(film: Film, host: Host, corpus: voxframe.Corpus) -> None:
    """Use a player as a reader would."""
    player = voxframe.TranscriptPlayer("panel", DATA / "panel.flac", corpus=corpus, title="Panel")
    box = host.show(player)
    host.page.wait_for_selector("[data-ready]")
    host.page.wait_for_function("document.querySelector('.vf-strip').height > 140 * devicePixelRatio")
    film.shoot(900)
    words = corpus.tables("panel")["words"]
    for start in words["start_ms"].iloc[3:19:2].tolist():
        player.seek(int(start) + 20)
        film.shoot(420)
    search = box.get_by_role("searchbox")
    for text in ("st", "stree", "street"):
        search.fill(text)
        film.shoot(500)
    search.press("Enter")
    film.shoot(1100)
    search.fill("")
    row = box.locator(".vf-row").nth(3)
    row.locator(".vf-text").dblclick()
    field = box.locator("textarea")
    text = field.input_value()
    film.shoot(600)
    field.fill(f"{text.rstrip('.')}!")
    film.shoot(900)
    field.press("Enter")
    box.get_by_text("corrected", exact=True).wait_for()
    box.get_by_role("button", name="History").click()
    film.shoot(1600)
    box.get_by_role("button", name="Undo", exact=True).click()
    film.shoot(1200)


def main(path: Path = DATA / "player.webp") -> None:
    """Write the picture."""
    os.environ["LOGNAME"] = "ada"  # the list of changes shows the name of the user
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
        corpus = voxframe.Corpus(Path(folder) / "corpus")
        corpus.add(DATA / "payloads" / "panel.json")
        corpus.speakers.set("panel", _NAMES)
        host = Host(browser, width=_WIDTH)
        try:
            film = Film(host)
            play(film, host, corpus)
            film.save(path)
        finally:
            host.close()
            browser.close()
    print(f"{path}: {len(film.frames)} pictures, {sum(film.times_ms) / 1000:.1f} s, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
