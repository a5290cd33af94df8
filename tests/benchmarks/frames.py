"""Time between two frames while the player of three hours and four speakers zooms, pans and scrolls.

    python -m tests.benchmarks frames [PROFILE]

In headless Chromium without a graphics card, in a window of 1280 x 1000. A gesture sends one event per frame for 240
frames. Median and 95th percentile in ms between frames, and the processor time of the page's scripts, styles and layout
per frame; 60 frames a second are 16.7 ms. PROFILE is a file for a profile that the developer tools of Chromium open.
"""

import json
import statistics
import sys
import tempfile
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from playwright.sync_api import CDPSession, Page, sync_playwright

import voxframe
from tests.browser.conftest import FLAGS, chromium_path

#: Seconds of the recording.
LENGTH_S = 3 * 3600
_RATE = 2000
#: An event per frame for each gesture, from its number.
GESTURES = {
    "zoom in": "stage.dispatchEvent(wheel({ ctrlKey: true, deltaY: -15 }))",
    "pan": "stage.dispatchEvent(wheel({ deltaX: 12 }))",
    "zoom out": "stage.dispatchEvent(wheel({ ctrlKey: true, deltaY: 15 }))",
    "scroll": "list.scrollTop += 60",
    "scroll fast": "list.scrollTop += 900",
}
_MEASURE = """async () => {
    const [stage, list] = ['.vf-stage', '.vf-reader'].map((name) => document.querySelector(name));
    const box = stage.getBoundingClientRect();
    const wheel = (options) => new WheelEvent('wheel', { bubbles: true, cancelable: true,
        clientX: box.left + box.width * 0.4, clientY: box.top + 30, ...options });
    const frame = () => new Promise(requestAnimationFrame);
    for (let n = 0; n < 30; n++) await frame();
    const times = [await frame()];
    for (let n = 0; n < 240; n++) {
        EVENT;
        times.push(await frame());
    }
    return times.slice(1).map((time, n) => time - times[n]);
}"""


def page_of(folder: Path) -> Path:
    """Write a page with a player of three hours of words and of sound that is loud and quiet by turns."""
    seconds = np.arange(LENGTH_S * _RATE) / _RATE
    loud = np.random.default_rng(1).random(len(seconds)) * (0.2 + np.abs(np.sin(seconds * 1.7)))
    with wave.open(str(folder / "long.wav"), "wb") as file:
        file.setparams((1, 1, _RATE, 0, "NONE", ""))
        file.writeframes((128 + 100 * loud).astype(np.uint8).tobytes())
    start = np.arange(LENGTH_S * 1000 // 360) * 360
    words = pd.DataFrame(
        {
            "transcript_id": "long",
            "text": [f"word{n}" for n in range(len(start))],
            "start_ms": start,
            "end_ms": start + 300,
            "confidence": 0.9,
            "speaker": np.array(list("ABCD"))[start // 9000 % 4],
        }
    )
    voxframe.TranscriptPlayer(words, folder / "long.wav", title="Three hours").to_html(folder / "long.html")
    return folder / "long.html"


def _work_s(session: CDPSession) -> float:
    """Return the seconds that the page has spent in scripts, styles, layout and other tasks."""
    metrics = {row["name"]: row["value"] for row in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])


def measure(page: Page) -> dict[str, Any]:
    """Return median, 95th percentile and work per frame of each gesture, in ms."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    results = {}
    for name, event in GESTURES.items():
        before = _work_s(session)
        gaps = page.evaluate(_MEASURE.replace("EVENT", event))
        work = (_work_s(session) - before) / (len(gaps) + 30)
        results[name] = (statistics.median(gaps), statistics.quantiles(gaps, n=20)[-1], 1000 * work)
    return results


def main(arguments: list[str]) -> None:
    """Print a line per gesture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = page_of(Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS, headless=True)
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(path.as_uri())
        page.wait_for_selector("[data-ready]")
        if arguments:
            profiler = page.context.new_cdp_session(page)
            profiler.send("Profiler.enable")
            profiler.send("Profiler.start")
        for name, (median, slow, work) in measure(page).items():
            print(f"{name:12} median {median:5.1f} ms, 95 % {slow:5.1f} ms, work {work:5.1f} ms per frame")
        if arguments:
            Path(arguments[0]).write_text(json.dumps(profiler.send("Profiler.stop")["profile"]), encoding="utf-8")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
