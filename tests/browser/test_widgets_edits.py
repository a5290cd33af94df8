"""Edits, sounds and panels in JupyterLab, with and without a kernel."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.open_notebook import WAIT_MS, Notebook, pixel, rgb, write_notebook
from voxframe.colors import COLORS

DATA = Path(__file__).parents[2] / "data"

CELLS = [
    f"""
import os, signal, voxframe
from pathlib import Path
from IPython.display import Audio, display
corpus = voxframe.Corpus("corpus")
for name in ("interview", "panel"):
    _ = corpus.raw.put(name, (Path({str(DATA / "payloads")!r}) / f"{{name}}.json").read_bytes())
player = voxframe.TranscriptPlayer("interview", "interview.flac", corpus=corpus, title="Interview")
timeline = voxframe.Timeline(voxframe.load_utterances(corpus.raw.get("interview")))
player.link(timeline)
display(player, timeline)""",
    'other = voxframe.TranscriptPlayer("panel", "panel.flac", corpus=corpus, title="Panel")\nother',
    "Audio(url=next(source for source in player._sources if source.startswith('http')), embed=False)",
    """
recordings = {name: f"{name}.flac" for name in ("interview", "panel")}
search = voxframe.WordSearch(corpus, audio=recordings, query="trees")
panel = voxframe.AskPanel(corpus, voxframe.connect("http://127.0.0.1:9", api_key="key"))
display(search, panel)""",
    """
import json
spoken = [dict(text=text, start=n * 300, end=n * 300 + 200)
          for n, text in enumerate("我们 今天 在 北京 用 pandas 吧".split())]
chinese = voxframe.TranscriptPlayer({"id": "zh", "utterances": None, "words": spoken}, title="Chinese")
_ = corpus.raw.put("one", json.dumps({"id": "one", "utterances": None, "words": spoken}).encode())
stored = voxframe.TranscriptPlayer("one", corpus=corpus, title="Stored")
timeless = voxframe.TranscriptPlayer(
    {"id": "t", "utterances": None, "words": [
        {"text": "never", "speaker": "A"}, {"text": "later", "start": 5000, "end": 5900, "speaker": "B"}]},
    Path("interview.flac"), title="Timeless")
display(chinese, stored, timeless)""",
    """
jobs = voxframe.SubmitForm(voxframe.Corpus("sent"))
jobs._act = lambda *_: None
jobs._jobs = [dict(key=key, name=f"{key}.mp3", source=key, state=state, state_text=said, progress=0.0, length="0:10",
                   error=error, since=None, cancel=state == "submitted", retry=state != "submitted")
              for key, state, said, error in (
                  ("a", "error", "failed", "The service could not read the recording: it holds no sound. " * 4),
                  ("b", "submitted", "is being transcribed", ""),
                  ("c", "uncertain", "uncertain", "The connection was lost."))]
jobs._counts = dict(all=3, finished=2, error=1)
jobs""",
]

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("page_without_faults")]


@pytest.fixture(scope="module")
def notebook(lab, browser) -> Iterator[Notebook]:
    """The notebook of this module in JupyterLab."""
    folder = lab.folder / "edits"
    folder.mkdir()
    for name in ("interview", "panel"):
        shutil.copy(DATA / f"{name}.flac", folder)
    notebook = Notebook(browser, folder / "edits.ipynb")
    write_notebook(notebook.path, CELLS)
    notebook.open_in_lab(lab.base, lab.token, lab.folder)
    expect(notebook.page.locator(".vf-player[data-ready]")).to_have_count(5, timeout=WAIT_MS)
    yield notebook
    notebook.context.close()


def player_of(page: Page, title: str = "Interview"):
    return page.locator(f".vf-player[aria-label='{title}']").first


def rename(page: Page, player, before: str, after: str) -> None:
    player.get_by_role("button", name=f"Rename {before}").first.click()
    page.keyboard.type(after)
    page.keyboard.press("Enter")


def test_a_rename_keeps_the_colour_in_player_and_timeline(notebook):
    """A renamed speaker keeps the colour of its label, and the timeline shows the name."""
    page, player = notebook.page, player_of(notebook.page)
    turn = sum(notebook.kernel("player.result.loc[0, ['start_ms', 'end_ms']].to_list()")) / 2
    until = page.evaluate("soundOf('interview').duration * 1000")
    notebook.until("len(player._peaks) > 0")
    lane = 18 + 56 + 2 + 9  # axis and waveform are above the lanes
    assert pixel(player.locator(".vf-strip"), turn / until, lane) == rgb(COLORS[0])
    rename(page, player, "A", "Zoe")
    expect(player.locator(".vf-name[aria-label='Rename Zoe']").first).to_be_visible()
    color = f"rgb({', '.join(map(str, rgb(COLORS[0])))})"
    expect(player.locator(".vf-name .vf-dot").first).to_have_css("background-color", color)
    page.wait_for_timeout(100)  # the lanes are drawn with the next frame
    assert pixel(player.locator(".vf-strip"), turn / until, lane) == rgb(COLORS[0])
    timeline = page.locator(".vf-timeline").first
    expect(timeline.locator(".vf-label").first).to_have_text("Zoe")
    lane = pixel(timeline.locator(".vf-lanes"), turn / notebook.kernel("timeline._until"), 6)
    assert lane == rgb(COLORS[0])


def test_the_focus_stays_in_place_after_an_edit(notebook):
    """After Enter or Escape the focus is on the button that began the edit; a click elsewhere moves it there."""
    page, player = notebook.page, player_of(notebook.page)
    row = player.locator(".vf-row").nth(1)
    for key, name in (("Escape", "B"), ("Enter", "Bo")):
        row.locator(".vf-name").click()
        page.keyboard.type("Bo")
        page.keyboard.press(key)
        expect(row.locator(".vf-name")).to_be_focused()
        expect(row.locator(".vf-name")).to_have_text(name)
    for key in ("Escape", "Enter"):
        row.hover()
        row.locator(".vf-edit").click()
        row.get_by_role("textbox").fill("Good morning to all.")
        page.keyboard.press(key)
        expect(row.locator(".vf-edit")).to_be_focused()
    notebook.until("player.corrections")
    page.wait_for_timeout(300)  # the kernel's echo draws the rows again
    expect(row.locator(".vf-edit")).to_be_focused()
    row.locator(".vf-edit").click()
    row.get_by_role("textbox").fill("Good morning to everyone.")
    player.get_by_role("searchbox").click()
    expect(row.locator(".vf-text")).to_contain_text("everyone")
    expect(player.get_by_role("searchbox")).to_be_focused()
    player.locator(".vf-row").nth(2).focus()
    page.keyboard.press("e")
    page.keyboard.press("Escape")
    expect(player.locator(".vf-row:focus")).to_have_count(1)


def test_one_sound_plays_at_a_time(notebook):
    """A player that starts pauses the other player and any sound of the page, and is paused by them."""
    page = notebook.page
    playing = "() => [...window.sounds, ...document.querySelectorAll('audio')].filter((s) => !s.paused).length"
    for title in ("Interview", "Panel"):
        player_of(page, title).get_by_role("button", name="Play").click()
        page.wait_for_function(f"soundOf('{title.lower()}').currentTime > 0.2 && !soundOf('{title.lower()}').paused")
        assert page.evaluate(playing) == 1
    notebook.run("player.play(); other.play()")
    page.wait_for_function("!soundOf('panel').paused")
    page.wait_for_timeout(300)
    assert page.evaluate(playing) == 1
    page.evaluate("document.querySelector('audio').play()")
    page.wait_for_function("soundOf('panel').paused && soundOf('interview').paused")
    assert page.evaluate(playing) == 1
    player_of(page).get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('audio').paused")
    player_of(page).get_by_role("button", name="Pause").click()
    assert page.evaluate(playing) == 0


def test_a_hit_plays_its_passage_and_stops(notebook):
    """Playback starts at the match and stops at the end of the turn; if started by hand, it continues."""
    page, search = notebook.page, notebook.page.locator(".vf-word-search").first
    lines = search.locator(".vf-line")
    hits = notebook.kernel("search.result[['transcript_id', 'start_ms', 'end_ms']].values.tolist()")
    turns = notebook.kernel("corpus.table('utterances')[['transcript_id', 'start_ms', 'end_ms']].values.tolist()")
    left = [next(e - a for i, s, e in turns if i == t and s <= a < e) for t, a, _ in hits]
    n = left.index(min(length for length in left if length > 700))
    (_, start, _), length = hits[n], left[n]
    lines.nth(n).click()
    page.wait_for_function("window.sounds.length > 2 && !window.sounds.at(-1).paused")
    page.wait_for_function("window.sounds.at(-1).paused", timeout=length + 20_000)
    now = page.evaluate("window.sounds.at(-1).currentTime * 1000")
    assert start + length - 50 <= now <= start + length + 700
    embedded = search.locator(".vf-player").first
    embedded.get_by_role("button", name="Play").click()
    page.wait_for_function(f"window.sounds.at(-1).currentTime * 1000 > {now} + 500")
    embedded.get_by_role("button", name="Pause").click()


def test_each_task_of_the_ask_panel_has_its_own_text(notebook):
    """A question is hidden for a summary, and returns for questions."""
    panel = notebook.page.locator(".vf-ask").first
    text = panel.locator(".vf-prompt")
    text.fill("How many trees?")
    panel.get_by_role("button", name="Summary").click()
    expect(text).to_have_value("")
    text.fill("in haiku")
    panel.get_by_role("button", name="Questions").click()
    expect(text).to_have_value("How many trees?")
    assert notebook.until("panel.prompts", lambda texts: len(texts) == 2)["summary"] == "in haiku"


def test_failed_stands_beside_its_reason(notebook):
    """State and reason of a failed job are side by side on one line."""
    jobs = notebook.page.locator(".vf-jobs").first
    row = jobs.locator("tr[data-state=error]")
    state, why = (row.locator(part).bounding_box() for part in (".vf-state", ".vf-why"))
    assert state["x"] + state["width"] <= why["x"]
    assert abs(state["y"] - why["y"]) < 6
    cell = row.locator("td").nth(1).bounding_box()
    assert why["x"] + why["width"] <= cell["x"] + cell["width"] + 1
    expect(jobs.get_by_role("button", name="Send c.mp3 again (may be charged twice)")).to_be_visible()
    retry = row.get_by_role("button", name="Retry a.mp3")
    retry.click()
    notebook.run("jobs._jobs = [dict(row, name='new') for row in jobs._jobs]")
    expect(row.get_by_role("button", name="Retry new")).to_be_focused()


def test_a_failed_action_can_be_repeated(notebook):
    """A button acts once; if its action failed and nothing was rendered, it acts again."""
    page = notebook.page
    cancel = page.locator(".vf-jobs").first.get_by_role("button", name="Cancel")
    cancel.click()
    expect(cancel).to_have_attribute("aria-disabled", "true")
    notebook.run("jobs.busy = 'cancelling'")
    expect(cancel).to_have_attribute("aria-disabled", "true")
    notebook.run("jobs.busy = ''")
    expect(cancel).not_to_have_attribute("aria-disabled", "true")
    notebook.run("""
from types import SimpleNamespace
usage = dict(input_tokens=1, output_tokens=1)
panel._responses = {"r1": (SimpleNamespace(request_id="r1"),)}
panel._answers = [dict(request_id="r1", task="summary", prompt="", about=[], requests=1, usage=usage,
                       replies=[dict(question=None, answer="Yes.", citations=[])])]""")
    delete = page.locator(".vf-ask").first.get_by_role("button", name="Delete")
    delete.click()
    notebook.until("panel.error and not panel.busy")  # the service cannot be reached
    expect(delete).not_to_have_attribute("aria-disabled", "true")
    notebook.run("panel._responses = {}; panel._answers = []; panel.error = ''")


def test_a_passage_without_times_is_not_played(notebook):
    """Enter on it does not start the recording from the beginning, and its time is no button."""
    page, player = notebook.page, player_of(notebook.page, "Timeless")
    row = player.locator(".vf-row").filter(has_text="never")
    notebook.run("timeless.time = 5000")
    expect(player.locator(".vf-clock")).to_contain_text("0:05 /")
    row.locator(".vf-text").click()
    row.focus()
    page.keyboard.press("Enter")
    page.wait_for_timeout(300)
    assert (notebook.kernel("timeless.time"), page.evaluate("window.sounds.every((sound) => sound.paused)")) == (
        5000,
        True,
    )
    expect(row.get_by_role("button", name="No time")).to_be_disabled()


@pytest.mark.parametrize("width", [1280, 700])
def test_the_list_of_keys_fits(notebook, width):
    """No shortcut is cut off, covered, or outside the list, in any widget with a list of shortcuts."""
    page = notebook.page
    page.set_viewport_size({"width": width, "height": 1000})
    for kind in ("vf-player", "vf-timeline", "vf-word-search", "vf-ask", "vf-submit-form"):
        widget = page.locator(f".{kind}").first
        button = widget.get_by_role("button", name="Keyboard shortcuts", exact=True).first
        button.click()
        keys = widget.locator(".vf-keys").first
        keys.scroll_into_view_if_needed()
        page.screenshot(path=Path(os.environ.get("BROWSER_SHOTS", "/tmp")) / f"keys_{kind}_{width}.png")
        wrong = keys.evaluate("""(list) => {
            const outer = list.getBoundingClientRect();
            const root = list.closest('.voxframe').getBoundingClientRect();
            const boxes = [...list.children].map((part) => [part, part.getBoundingClientRect()]);
            const out = boxes.filter(([part, box]) => box.left < outer.left - 1 || box.right > outer.right + 1 ||
                box.top < outer.top - 1 || box.bottom > outer.bottom + 1 || part.scrollWidth > part.clientWidth + 1);
            const meet = boxes.filter(([, a], n) => boxes.slice(n + 1).some(([, b]) =>
                a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1));
            const rows = boxes.filter(([part]) => part.tagName === 'DT')
                .filter(([part, box]) => Math.abs(part.nextSibling.getBoundingClientRect().top - box.top) > 4);
            return [...out, ...meet, ...rows].map(([part]) => part.textContent)
                .concat(outer.right > root.right + 1 ? ['the list'] : []);
        }""")
        assert wrong == [], kind
        button.focus()
        for key in ("?", "?", "?"):  # hides, shows and hides the list
            page.keyboard.press(key)
        expect(keys).to_be_hidden()
    page.set_viewport_size({"width": 1280, "height": 1000})


def test_turns_are_split_merged_and_retimed(notebook):
    """A turn is split before the word clicked last, by menu or key; merge, boundary, time and undo have keys, too."""
    page, player = notebook.page, player_of(notebook.page)
    row = player.locator(".vf-row").first
    text = row.locator(".vf-text")
    words = row.locator(".vf-w").all_inner_texts()
    row.locator(".vf-w").nth(6).click()
    row.hover()
    row.get_by_role("button", name="Change this turn").click()
    row.get_by_role("button", name=f"Split before “{words[6]}” (S)").click()
    expect(text).to_have_text(" ".join(words[:6]))
    expect(player.locator(".vf-row").nth(1).locator(".vf-text")).to_have_text(" ".join(words[6:]))
    row.focus()
    page.keyboard.press("<")
    expect(text).to_have_text(" ".join(words[:5]))
    expect(row).to_be_focused()
    page.keyboard.press(">")
    expect(text).to_have_text(" ".join(words[:6]))
    row.locator(".vf-w").nth(1).click()
    row.focus()
    page.keyboard.press("t")
    row.get_by_role("textbox").fill("0.9 to 1.1")
    page.keyboard.press("Enter")
    notebook.until("corpus.words('interview', columns=['start_ms', 'end_ms']).loc[1].to_list() == [900, 1100]")
    row.focus()
    page.keyboard.press("m")
    expect(text).to_have_text(" ".join(words))
    for _ in range(5):
        before = notebook.kernel("int(corpus.corrections.history('interview')['undone'].isna().sum())")
        row.focus()
        page.keyboard.press("u")
        notebook.until(f"corpus.corrections.history('interview')['undone'].isna().sum() == {before - 1}")
    expect(text).to_have_text(" ".join(words))
    assert not notebook.kernel(
        "'split' in set(corpus.corrections.history('interview').query('undone.isna()')['action'])"
    )


def correct(page: Page, row, text: str) -> None:
    row.hover()
    row.get_by_role("button", name="Correct this passage").click()
    row.get_by_role("textbox").fill(text)
    page.keyboard.press("Enter")


def test_a_payload_says_that_changes_are_not_stored(notebook):
    """From the first edit on, the player says how to keep changes; its menu of turns says so instead of actions."""
    page, player = notebook.page, player_of(notebook.page, "Chinese")
    advice = player.locator(".vf-not-stored")
    row = player.locator(".vf-row").first
    expect(advice).to_be_hidden()
    row.hover()
    row.get_by_role("button", name="Change this turn").click()
    expect(row.locator(".vf-menu")).to_contain_text("corpus.add(source)")
    expect(row.locator(".vf-menu button")).to_have_count(0)
    row.get_by_role("button", name="Change this turn").click()
    expect(row.locator(".vf-text")).to_have_text("我们今天在北京用 pandas 吧")
    correct(page, row, "我们昨天在北京用 pandas 吧")
    expect(row.locator(".vf-text")).to_have_text("我们昨天在北京用 pandas 吧")
    expect(advice).to_be_visible()
    assert row.locator(".vf-w").all_inner_texts() == ["我们", "昨天", "在", "北京", "用", "pandas", "吧"]
    player.get_by_role("searchbox").fill("昨天在")
    expect(player.locator(".vf-found")).to_have_text("1 of 1")
    correct(page, row, "我们今天在北京用 pandas 吧")
    notebook.until("not chinese.corrections")


def test_a_transcript_without_turns_is_split(notebook):
    """All words without labels are one turn of the corpus, which is split, corrected and merged again."""
    page, player = notebook.page, player_of(notebook.page, "Stored")
    row = player.locator(".vf-row").first
    row.locator(".vf-w").nth(4).click()
    row.focus()
    page.keyboard.press("s")
    expect(row.locator(".vf-text")).to_have_text("我们今天在北京")
    correct(page, player.locator(".vf-row").nth(1), "用 polars 吧")
    expect(player.locator(".vf-row").nth(1).locator(".vf-text")).to_have_text("用 polars 吧")
    notebook.until("corpus.words('one')['text'].to_list()[4:] == ['用', 'polars', '吧']")
    row.focus()
    page.keyboard.press("m")
    expect(row.locator(".vf-text")).to_have_text("我们今天在北京用 polars 吧")


def test_edits_are_refused_visibly_without_a_kernel(notebook):
    """Without a kernel, an edit is not applied, the error pane says so, and the field keeps the input."""
    page, player = notebook.page, player_of(notebook.page)
    notebook.page.evaluate("void window.askKernel('os.kill(os.getpid(), signal.SIGKILL)', '0')")
    page.get_by_role("dialog").get_by_role("button", name="Ok").click(timeout=WAIT_MS)
    rename(page, player, "Zoe", "Nobody")
    alert = player.get_by_role("alert")
    expect(alert).to_contain_text("kernel")
    field = player.locator(".vf-field")
    expect(field).to_have_value("Nobody")
    page.keyboard.press("Escape")
    expect(player.locator(".vf-name").first).to_have_text("Zoe")
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    page.wait_for_function("!window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel")
    row = player.locator(".vf-row").first
    row.hover()
    row.locator(".vf-edit").click()
    row.get_by_role("textbox").fill("Not this.")
    page.keyboard.press("Enter")
    expect(alert).to_contain_text("the kernel is not running")
    expect(row.get_by_role("textbox")).to_have_value("Not this.")
    panel = page.locator(".vf-ask").first
    panel.get_by_role("button", name="Ask", exact=True).click()
    expect(panel.get_by_role("alert")).to_contain_text("the kernel is not running")
    form = page.locator(".vf-submit-form").first
    form.get_by_role("button", name="Plan").click()
    expect(form.get_by_role("alert")).to_contain_text("the kernel is not running")
    # JupyterLab itself throws for what it had asked of the kernel that died.
    notebook.faults[:] = [fault for fault in notebook.faults if "Canceled future" not in fault]
