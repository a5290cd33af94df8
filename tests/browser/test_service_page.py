"""The embedded service's own page in Chromium: live, by keyboard, and with text of the worst kind."""

import io
import re
import wave

import numpy as np
import orjson
import pytest
from playwright.sync_api import expect

import voxframe
from tests.benchmarks.streaming import RATE, decoded
from tests.server.conftest import KEY, Service
from tests.server.test_llm import put
from voxframe_server.jobs import JobStore
from voxframe_server.jobs.data_dir import DataDir

pytestmark = pytest.mark.browser

XSS = [
    "<script>window.hurt = 1</script>",
    "<img src=x onerror='window.hurt = 1'>",
    "<svg onload='window.hurt = 1'>",
    "<svg><script>window.hurt = 1</script></svg>",
    "<iframe srcdoc='<script>parent.hurt = 1</script>'></iframe>",
    "<iframe src='javascript:parent.hurt = 1'></iframe>",
    "<a href='javascript:window.hurt = 1'>here</a>",
    "<body onload='window.hurt = 1'>",
    "<details open ontoggle='window.hurt = 1'>",
    "<video><source onerror='window.hurt = 1'></video>",
    "<input autofocus onfocus='window.hurt = 1'>",
    "<math><mtext><style><img src=x onerror='window.hurt = 1'></style></mtext></math>",
    "<template><script>window.hurt = 1</script></template>",
    "</textarea></title></style></script><script>window.hurt = 1</script>",
    "<!--><img src=x onerror='window.hurt = 1'>-->",
    "<object data='javascript:window.hurt = 1'></object>",
    "<meta http-equiv='refresh' content='0;url=javascript:window.hurt=1'>",
    "<base href='http://192.0.2.1/'>",
    "<link rel=stylesheet href='http://192.0.2.1/a.css'>",
    "<form action='http://192.0.2.1/'><button formaction='javascript:window.hurt = 1'>",
    "\"><img src=x onerror='window.hurt = 1'>",
    "&lt;script&gt;window.hurt = 1&lt;/script&gt;",
    "{{constructor.constructor('window.hurt = 1')()}} ${window.hurt = 1} javascript:window.hurt=1",
    "\u202etxet desrever \u0000 \ud7ff",
]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service of its own."""
    running = Service(tmp_path_factory.mktemp("service") / "data")
    yield running
    running.stop()


def change(service, job, **columns):
    """Set columns of a job as the service's own processes do."""
    jobs = JobStore(DataDir(service.data_dir).database)
    for name, value in columns.items():
        jobs.database.connection.execute(f"UPDATE jobs SET {name} = ? WHERE id = ?", (value, job))
    jobs.close()


def job_of(service, url, **columns):
    """A job that is what a test says it is, and that no process takes."""
    job = put(service, [("A", "Said.")])
    change(service, job, request=orjson.dumps({"audio_url": url}).decode(), **columns)
    return job


def enter(page, service, key=KEY):
    """Open the page and type the key."""
    page.goto(service.url + "/")
    page.get_by_label("API key of this server").fill(key)
    page.keyboard.press("Enter")


def row(page, name):
    """The line of a job."""
    return page.locator("#list > li").filter(has=page.locator(".name", has_text=name))


def test_job_is_seen_to_come_move_and_end(page, service):
    """A job that is asked for elsewhere appears, shows its place, its state and its text, without a reload."""
    enter(page, service)
    expect(page.locator("#count")).to_have_text("0 jobs")
    # In the hands of the service itself, so that it neither takes nor frees it.
    holder = next((service.data_dir / "instances").iterdir()).stem
    job = job_of(service, "http://192.0.2.1/talks/opening%20talk.mp3?signature=secret", status="queued", holder=holder)
    line = row(page, "opening talk.mp3")
    expect(line.locator(".state")).to_have_text("queued")
    expect(line.locator(".note")).to_have_text("next in the queue")
    line.locator("summary").click()
    expect(line).to_contain_text("appears here when the job is completed")
    change(service, job, status="processing")
    expect(line.locator(".state")).to_have_text("processing")
    expect(line.locator("progress")).to_be_visible()
    change(service, job, status="completed")
    expect(line.locator(".said")).to_have_text("Said.")
    expect(line.locator(".note")).to_be_hidden()
    assert "signature" not in page.content()


def test_progress_of_real_work_is_shown(page, service):
    """While the engine works on a recording, a bar says how far it is; it can be cancelled; an error says why."""
    enter(page, service)
    recording = io.BytesIO()
    with wave.open(recording, "wb") as file:  # eight minutes: still in progress after several looks of the page
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(np.tile(decoded(voxframe.sample("interview")), 4).astype("<i2").tobytes())
    url = service.upload(recording.getvalue())
    job = service.create(url, speech_model="nano")["id"]
    line = row(page, f"upload {url.rpartition('/')[2][:8]}")
    expect(line.locator(".state")).to_have_text("processing", timeout=20_000)
    expect(line.locator(".note")).to_have_text(re.compile(r"[1-9]\d? %"), timeout=90_000)
    line.locator("summary").click()
    line.get_by_role("button", name="Cancel and delete").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator("#list > li", has_text="Deleted by user").first).to_be_visible()
    assert service.transcript(job)["status"] == "error"
    service.create(service.upload(b"no audio"))
    expect(page.locator(".error .note").first).to_contain_text("File does not appear to contain audio", timeout=20_000)


def test_hostile_text_stays_text(page, service):
    """As words, speakers, addresses and errors: what is shown is what was said, no script runs, no markup appears."""
    said = [(text, text) for text in XSS]
    data_dir = DataDir(service.data_dir)
    spoken = put(service, [])
    turns = [{"speaker": who, "text": text, "start": 0, "end": 9, "confidence": 1, "words": []} for who, text in said]
    result = {"words": [], "text": XSS[0], "summary": XSS[1], "utterances": turns, "audio_duration": 1, "confidence": 1}
    data_dir.result(spoken).write_bytes(orjson.dumps(result))
    change(service, spoken, request=orjson.dumps({"audio_url": "http://192.0.2.1/" + XSS[1]}).decode())
    for text in XSS:
        job_of(service, f"http://192.0.2.1/x#{text}" if "http" in text else text, status="error", error=f"why: {text}")
    enter(page, service)
    expect(page.locator("#list > li").first).to_be_visible()
    page.get_by_role("button", name="Show older jobs").click()
    for text in XSS:
        expect(page.locator(".note", has_text="why:").filter(has_text=text.split("\x00")[0]).first).to_be_attached()
    line = page.locator(".completed").first
    line.locator("summary").click()
    expect(line.locator(".text p")).to_have_count(len(XSS))
    shown = line.locator(".text .said").evaluate_all("all => all.map((one) => one.textContent)")
    assert shown == XSS
    speakers = line.locator(".who").evaluate_all("all => all.map((one) => one.textContent)")
    assert speakers == [f"{text} 00:00" for text in XSS]
    for closed in page.locator(".error summary").all()[:5]:
        closed.click()
    page.wait_for_timeout(300)
    assert page.evaluate("window.hurt === undefined")
    inside = "#list :is(script, img, svg, iframe, a, video, input, math, object, meta, base, link, form, template)"
    assert page.locator(inside).count() == 0


def test_what_the_page_may_do_is_fixed(page, service):
    """Even code of the page's own could not run a script from text, make markup of it, or talk to another address."""
    enter(page, service)
    expect(page.locator("#count")).to_be_visible()
    tried = """async () => {
        const found = {};
        try { document.body.innerHTML = "<b>x</b>"; found.markup = true; } catch { found.markup = false; }
        try { setTimeout("window.hurt = 1"); } catch {}
        const script = document.createElement("script");
        try { script.textContent = "window.hurt = 1"; document.body.append(script); } catch {}
        try { await fetch("http://127.0.0.1:9/"); found.fetch = true; } catch { found.fetch = false; }
        await new Promise((resolve) => setTimeout(resolve, 50));
        return {...found, script: window.hurt === 1};
    }"""
    assert page.evaluate(tried) == {"markup": False, "fetch": False, "script": False}


def test_key_is_in_no_address_and_no_storage(page, service):
    """It goes from its field into a header; after a reload it is asked for again."""
    asked = []
    page.on("request", lambda request: asked.append((request.url, request.headers.get("authorization"))))
    enter(page, service)
    expect(page.locator("#count")).to_be_visible()
    assert (service.url + "/queue", KEY) in asked
    assert not [url for url, _ in asked if KEY in url]
    assert KEY not in page.url + page.content()
    kept = "[localStorage.length, sessionStorage.length, document.cookie, history.state, document.forms[0][0].value]"
    assert page.evaluate(kept) == [0, 0, "", None, ""]
    page.reload()
    expect(page.get_by_label("API key of this server")).to_be_visible()
    expect(page.locator("#jobs")).to_be_hidden()


def test_wrong_key_is_told_and_the_right_one_can_be_given(page, service):
    """A key that cannot even be sent is told too."""
    enter(page, service, "wrong")
    expect(page.get_by_role("alert")).to_have_text("This is not the API key of this server.")
    page.get_by_label("API key of this server").fill("schlüssel ✓")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("No response")
    page.get_by_label("API key of this server").fill(KEY)
    page.keyboard.press("Enter")
    expect(page.locator("#count")).to_be_visible()
    page.get_by_role("button", name="Forget key").click()
    expect(page.get_by_label("API key of this server")).to_be_focused()
    assert page.locator("#list").text_content() == ""


def test_keyboard_opens_reads_and_deletes(page, service):
    """Tab and Enter do all that the mouse does; the focus survives what changes around it."""
    job = job_of(service, "http://192.0.2.1/by-keyboard.mp3")
    enter(page, service)
    line = row(page, "by-keyboard.mp3")
    expect(page.locator("#filter")).to_be_focused()
    page.keyboard.press("Tab")
    expect(line.locator("summary")).to_be_focused()
    page.keyboard.press("Enter")
    expect(line.locator(".said")).to_have_text("Said.")
    job_of(service, "http://192.0.2.1/newer.mp3")
    expect(row(page, "newer.mp3")).to_be_visible()
    expect(line.locator("summary")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    assert service.transcript(job)["text"] != "Deleted by user."
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(line).to_have_count(0)
    assert service.transcript(job)["text"] == "Deleted by user."


def test_service_that_goes_away_is_told_and_found_again(page, service):
    """What was shown stays, and goes on by itself."""
    enter(page, service)
    expect(page.locator("#connection")).to_have_text("connected")
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_have_text("no response; retrying")
    expect(page.locator("#list > li").first).to_be_visible()
    page.context.set_offline(False)
    expect(page.locator("#connection")).to_have_text("connected")


@pytest.mark.parametrize("width", [320, 600])
def test_narrow_window_needs_no_sideways_scrolling(page, service, width):
    """Nothing is wider than the window, long names and words included."""
    job_of(service, f"http://192.0.2.1/{'long-name' * 40}.mp3", status="error", error="x" * 500)
    page.set_viewport_size({"width": width, "height": 800})
    enter(page, service)
    row(page, "long-name").first.locator("summary").click()
    expect(page.locator(".facts").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_other_clients_are_told_where_to_read_on(service):
    """A client that asks for no page gets JSON; neither needs a key, both need a host name of this machine."""
    import requests

    plain = requests.get(service.url + "/", timeout=10)
    assert plain.json()["transcripts"] == "/v2/transcript"
    assert plain.headers["Vary"] == "Accept"
    html = requests.get(service.url + "/", headers={"Accept": "text/html,*/*;q=0.8"}, timeout=10)
    assert html.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in html.headers["Content-Security-Policy"]
    for path in ("/", "/page/page.js"):
        assert requests.get(service.url + path, headers={"Host": "evil.example"}, timeout=10).status_code == 400
        assert (
            requests.get(service.url + path, headers={"Origin": "http://evil.example"}, timeout=10).status_code == 403
        )
    for path in ("/queue", "/page/../key", "/page/other.js"):
        assert requests.get(service.url + path, timeout=10).status_code == 401
