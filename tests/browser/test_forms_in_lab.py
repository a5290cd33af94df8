"""The search, submit, ask and live widgets in JupyterLab, with real clicks and a microphone."""

import re
import wave
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.open_notebook import WAIT_MS, Notebook, controls, dark_theme, plays, write_notebook
from tests.language_model import language_model
from voxframe.options import FIELDS

DATA = Path(__file__).parents[2] / "data"
CANARY = "canary-5f1b0c77d2"
HOSTILE = "<img src=x onerror='window.hurt=1'><script>window.hurt=1</script>\"'><svg onload=window.hurt=1>"

CELLS = [
    f"""
import json, os, voxframe
from pathlib import Path
payloads = Path({str(DATA / "payloads")!r})
client = voxframe.connect()
corpus = voxframe.Corpus("corpus")
for name in ("call", "interview", "panel"):
    corpus.raw.put(name, (payloads / f"{{name}}.json").read_bytes())
bad = {HOSTILE!r}
words = [{{"text": text, "start": 1000 * n, "end": 1000 * n + 900, "speaker": bad}} for n, text in
         enumerate(["hostile", bad, "words", "are", "text"])]
corpus.raw.put(bad, json.dumps({{"id": bad, "status": "completed", "words": words}}).encode())
for name, speaker in (("interview", "A"), (bad, bad)):
    corpus.speakers.set(name, {{speaker: bad}})  # transcripts with names are sent as text: no service has these
audio = {{name: Path({str(DATA)!r}) / f"{{name}}.flac" for name in ("call", "interview", "panel")}}
search = voxframe.WordSearch(corpus, audio=audio, title=bad)
search""",
    "form = voxframe.SubmitForm(voxframe.Corpus('sent'))\nform",
    "panel = voxframe.AskPanel(corpus, client, audio=audio)\npanel",
    "live = voxframe.LiveTranscript(client)\nlive",
    "search",
]

#: What the first option of each group says it does.
FIRST_HELP = {field.group: field.help for field in reversed(FIELDS.values()) if field.group}

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("page_without_faults")]


class FormsNotebook(Notebook):
    """The notebook with the four widgets."""

    def widget(self, kind: str) -> Locator:
        return self.page.locator(f".{kind}").first


@pytest.fixture(scope="module")
def notebook(lab, browser) -> Iterator[FormsNotebook]:
    """The notebook of this module in JupyterLab, in a page that may use the microphone."""
    folder = lab.folder / "forms"
    folder.mkdir()
    notebook = FormsNotebook(browser, folder / "forms.ipynb")
    notebook.context.grant_permissions(["microphone"])
    write_notebook(notebook.path, CELLS)
    notebook.open_in_lab(lab.base, lab.token, lab.folder)
    notebook.page.set_default_timeout(WAIT_MS)
    yield notebook
    notebook.context.close()


def test_matches_appear_while_typing_and_play_with_the_keyboard(notebook):
    """Each letter shows its matches; arrow keys and Enter play a match from its time."""
    page, search = notebook.page, notebook.widget("vf-word-search")
    search.get_by_role("searchbox").first.click()
    for n, letter in enumerate("trees", 1):
        page.keyboard.press(letter)
        expect(search).to_have_attribute("data-shown", "trees"[:n])
    expected = notebook.kernel("corpus.search('trees')[['left', 'match', 'right', 'start_ms']].values.tolist()")
    expect(search.locator(".vf-line")).to_have_count(len(expected))
    assert len(expected) > 3
    assert search.locator(".vf-line strong").all_text_contents() == [row[1] for row in expected]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(search.locator('.vf-line[aria-selected="true"]')).to_contain_text(expected[1][1])
    page.keyboard.press("Enter")
    plays(notebook, expected[1][3])
    assert notebook.kernel("search.player.interval[0]") == expected[1][3]
    marked = search.locator(".vf-player .vf-hit")
    expect(marked.first).to_have_text(re.compile("trees", re.IGNORECASE))
    expect(search.locator(".vf-player .vf-row[aria-current=true]")).to_be_in_viewport()


def test_a_second_view_and_one_drawn_again_show_the_same(notebook):
    """A query typed in one view appears in the other, and in a view whose cell output was redrawn."""
    page = notebook.page
    search, second = (page.locator(".vf-word-search").nth(n) for n in (0, 1))
    search.get_by_role("searchbox").first.fill("trees")
    count = notebook.kernel("len(corpus.search('trees'))")
    for view in (search, second):
        expect(view.locator(".vf-line")).to_have_count(count, timeout=WAIT_MS)
    expect(second.get_by_role("searchbox").first).to_have_value("trees")
    page.locator(".jp-CodeCell .jp-InputPrompt").nth(len(CELLS) - 1).click()  # its middle may be a widget
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-cell')")
    again = page.locator(".jp-CodeCell .jp-InputPrompt").nth(len(CELLS) - 1)
    expect(again).to_have_text(f"[{len(CELLS) + 2}]:", timeout=WAIT_MS)  # the last cell takes questions from tests
    expect(second.locator(".vf-line")).to_have_count(count, timeout=WAIT_MS)


def test_counts_have_strips_and_show_one_group_alone(notebook):
    """A strip has a mark at the first match, and a click on it plays there; a click on a name shows its matches."""
    search = notebook.widget("vf-word-search")
    key, word, size = notebook.kernel(
        "(lambda row: [row.transcript_id, int(row.word_idx),"
        "len(corpus.table('words', row.transcript_id))])(corpus.search('trees').iloc[0])"
    )
    group = search.locator(".vf-group", has_text=key)
    strip = group.locator("canvas")
    marked = strip.evaluate(
        """(canvas, place) => {
            const x = Math.round(place * (canvas.width - 2));
            const data = canvas.getContext('2d').getImageData(Math.max(0, x - 1), canvas.height / 2, 4, 1).data;
            return Array.from(data).filter((_, n) => n % 4 === 3).some((alpha) => alpha > 100);
        }""",
        word / size,
    )
    assert marked
    box = strip.bounding_box()
    strip.click(position={"x": word / size * box["width"], "y": 5})
    first = notebook.kernel(f"int(corpus.search('trees', ids={key!r})['start_ms'].iloc[0])")
    plays(notebook, first)
    group.get_by_role("button").click()
    assert notebook.until("search.only") == [key]
    count = notebook.kernel("len(search.result)")
    expect(search.locator(".vf-line")).to_have_count(count, timeout=WAIT_MS)
    search.get_by_role("searchbox").first.fill("hostile *")
    expect(search.locator(".vf-line")).to_have_count(1, timeout=WAIT_MS)
    expect(search.locator(".vf-line strong")).to_have_text(f"hostile {HOSTILE}")


def test_a_dropped_recording_is_planned_sent_and_fetched(notebook, tmp_path):
    """A file dropped on the form arrives complete and is planned, and its job ends with a transcript."""
    form = notebook.widget("vf-submit-form")
    samples = sound(1.5, 16_000)
    with wave.open(str(tmp_path / "short.wav"), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(samples)
    data = (tmp_path / "short.wav").read_bytes()
    form.locator(".vf-zone").evaluate(
        """(zone, bytes) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(bytes)], "<b>short.wav"));
            zone.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
        }""",
        list(data),
    )
    expect(form.locator(".vf-recordings tbody tr")).to_have_text("<b>short.wav0:02")  # with its length
    notebook.until("form.sources")
    assert notebook.kernel("Path(form.sources[0]).stat().st_size") == len(data)
    form.get_by_role("button", name="Text", exact=True).press("Enter")
    form.get_by_label("Keep um and uh").check()
    form.get_by_role("button", name="Plan").press("Enter")
    send = form.get_by_role("button", name="Send 1")
    expect(send).to_be_enabled()
    expect(form.get_by_text("1 of 1 recording to send to the embedded service")).to_be_visible()
    send.press("Enter")
    expect(form.locator("tr[data-state=completed], tr[data-state=error]")).to_have_count(1, timeout=WAIT_MS)
    assert notebook.kernel("form.result['state'].to_list()") == ["completed"]
    assert notebook.kernel("voxframe.Corpus('sent').table('transcripts')['disfluencies'].to_list()") == [True]
    form.get_by_role("textbox", name="Recordings").fill("/nowhere/at all.wav")
    form.get_by_role("button", name="Plan").click()
    expect(form.get_by_role("row").filter(has_text="there is no file '/nowhere/at all.wav'")).to_be_visible()


def test_a_citation_plays_its_passage(notebook):
    """A number in the answer to a question plays the quoted passage; markup in an answer is text."""
    page, panel = notebook.page, notebook.widget("vf-ask")
    panel.get_by_label("interview", exact=False).first.check()
    panel.get_by_role("textbox").first.fill("How many trees?")
    page.keyboard.press("Control+Enter")
    number = panel.locator(".vf-cite").first
    expect(number).to_be_visible(timeout=WAIT_MS)
    expect(panel.get_by_text("requests left this minute")).to_be_visible()
    number.press("Enter")
    plays(notebook, notebook.kernel("int(panel.citations['start_ms'].iloc[0])"))
    panel.locator(".vf-ticks li", has_text="<img").get_by_role("checkbox").check()
    panel.get_by_role("button", name="Task").click()
    panel.get_by_role("textbox").first.fill(f"Find {HOSTILE} hostile words")
    panel.get_by_role("button", name="Ask", exact=True).click()
    expect(panel.locator(".vf-card")).to_have_count(2, timeout=WAIT_MS)
    panel.get_by_role("button", name="Delete this answer").first.click()
    expect(panel.locator(".vf-card")).to_have_count(1, timeout=WAIT_MS)


def test_a_lost_answer_can_be_requested_again(notebook):
    """After a lost response, a button warns of the charge and sends the request again."""
    panel = notebook.widget("vf-ask")
    again = panel.get_by_role("button", name="Ask again (may be charged twice)")
    with language_model() as model:
        notebook.kernel(f"setattr(panel, '_client', voxframe.connect({model.url!r}, api_key='key'))")
        panel.get_by_role("textbox").first.fill("What is lost?")
        model.mode = "loses"
        panel.get_by_role("button", name="Ask", exact=True).click()
        expect(panel.get_by_role("alert")).to_be_visible(timeout=WAIT_MS)
        expect(again).to_be_hidden()
        model.mode = "answers"
        panel.get_by_role("button", name="Ask", exact=True).click()
        again.click()
        expect(panel.locator(".vf-answer").first).to_have_text("A talk.", timeout=WAIT_MS)
        expect(again).to_be_hidden()
        notebook.kernel("setattr(panel, '_client', client)")


def test_the_microphone_is_transcribed(notebook):
    """Sound recorded by the browser is transcribed; Stop ends the session, and the finals are a DataFrame.

    A second click while the browser asks for permission opens no second microphone, which would stay on.
    """
    live = notebook.widget("vf-live")
    notebook.page.evaluate("""() => {
        const devices = navigator.mediaDevices;
        const open = devices.getUserMedia.bind(devices);
        window.opened = 0;
        devices.getUserMedia = async (wanted) => {
            window.opened += 1;
            await new Promise((later) => setTimeout(later, 300));
            return open(wanted);
        };
    }""")
    live.get_by_role("button", name="Microphone").dblclick()
    expect(live.get_by_role("button", name="Stop")).to_be_enabled()
    notebook.until("live._partial or live._finals")
    assert notebook.page.evaluate("window.opened") == 1
    live.get_by_role("button", name="Stop").click()
    notebook.until("not live.running")
    assert notebook.kernel("live.error") == ""
    expect(live.locator(".vf-finals p").first).to_be_visible()
    finals = notebook.kernel("live.result['text'].dropna().to_list()")
    assert " ".join(filter(None, finals)) == notebook.kernel("live.text")
    assert notebook.kernel("len(live.words)") > 0
    expect(live.get_by_role("button", name="Microphone")).to_be_enabled()


def test_a_typed_key_is_stored_nowhere(notebook, lab):
    """A key typed into the form is in no trait, saved notebook, corpus, log or file of the service."""
    page, form = notebook.page, notebook.widget("vf-submit-form")
    form.get_by_text("Service", exact=True).first.click()
    field = form.get_by_role("textbox", name="API key")
    field.click()
    page.keyboard.type(CANARY)
    page.keyboard.press("Tab")
    expect(form.get_by_text("Set (hidden, not saved)")).to_be_visible()
    assert notebook.kernel("form._secrets['api_key'].reveal()[::-1]") == CANARY[::-1]
    assert notebook.kernel(f"{CANARY[::-1]!r}[::-1] in json.dumps(search.get_manager_state(), default=str)") is False
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("!window.jupyterapp.shell.currentWidget.context.model.dirty")
    saved = notebook.path.read_text()
    assert "text/html" in saved
    files = [path for folder in (lab.folder, lab.folder.parent) for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert not [path for path in files if CANARY.encode() in path.read_bytes()]


def test_every_control_has_a_name_and_styles_are_separate(notebook):
    """Each control has an accessible name, and the styles of one widget do not change another."""
    form = notebook.widget("vf-submit-form")
    for group in ("Text", "Who speaks", "What is it about", "Hide personal data", "Part and webhook", "Language"):
        form.get_by_role("button", name=group, exact=True).click()
        expect(form.get_by_text(FIRST_HELP[group])).to_be_visible()
        assert [role for role, name in controls(form) if not name.strip()] == []
    for kind, least in (("vf-word-search", 3), ("vf-submit-form", 15), ("vf-ask", 12), ("vf-live", 5)):
        found = controls(notebook.widget(kind))
        assert len(found) >= least
        assert [role for role, name in found if not name.strip()] == [], kind
    assert notebook.widget("vf-ask").locator(".vf-prompt").bounding_box()["height"] > 60
    long = form.locator("label", has_text="Least certainty of it").first
    assert long.evaluate("label => label.scrollWidth <= label.clientWidth")


def test_both_themes_and_a_narrow_page(notebook):
    """In the dark theme the background is dark and the text light; at 600 px nothing is wider than its cell."""
    page = notebook.page
    with dark_theme(page):
        page.set_viewport_size({"width": 700, "height": 1000})  # JupyterLab takes a hundred of them
        for kind in ("vf-word-search", "vf-submit-form", "vf-ask", "vf-live"):
            widget = notebook.widget(kind)
            widget.scroll_into_view_if_needed()
            wider = widget.evaluate("root => root.scrollWidth - root.parentElement.clientWidth")
            assert wider <= 2, kind
            # JupyterLab puts its sheet behind ours when it changes its theme.
            expect(widget.locator(".vf-button:visible:not(.vf-chips *)").first).to_have_css("border-radius", "6px")
            paper, ink = widget.evaluate(
                "root => [getComputedStyle(root).backgroundColor, getComputedStyle(root).color]"
            )
            assert sum(map(int, re.findall(r"\d+", paper)[:3])) < 150 < sum(map(int, re.findall(r"\d+", ink)[:3])) - 300
        keys = (
            notebook.widget("vf-word-search").get_by_role("button", name="Keyboard shortcuts").first
        )  # the second is the player
        keys.click()
        expect(notebook.widget("vf-word-search").locator(".vf-keys").first).to_have_css("padding", "10px 12px")
        keys.click()


def sound(seconds: float, rate: int) -> bytes:
    """Return the beginning of a recording as samples."""
    av = pytest.importorskip("av")
    resampler, samples = av.AudioResampler("s16", "mono", rate), b""
    with av.open(str(DATA / "call.flac")) as recording:
        for frame in recording.decode(audio=0):
            samples += b"".join(piece.to_ndarray().tobytes() for piece in resampler.resample(frame))
            if frame.time > seconds:
                break
    return samples
