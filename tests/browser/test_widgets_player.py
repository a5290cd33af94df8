"""The player in JupyterLab and in Voila, with real clicks and real sound."""

import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from tests.browser.open_notebook import controls, drag, pixel, rgb
from voxframe.colors import COLORS

pytestmark = pytest.mark.browser


def test_a_click_on_a_word_plays_from_it_and_highlights_words(notebook):
    """A click on a word plays from it; during playback, words are highlighted one after the other."""
    word = notebook.player.locator(".vf-w", has_text="42")
    word.click()
    start = notebook.kernel("int(player._passages.words.query('text == \"42\"')['start_ms'].iloc[0])")
    notebook.wait_heard(f"!sound.paused && sound.currentTime * 1000 >= {start} - 1")
    seen = notebook.player.evaluate("""async (root) => {
        const sound = soundOf('interview'), seen = [];
        for (const end = performance.now() + 2500; performance.now() < end; ) {
            await new Promise(requestAnimationFrame);
            seen.push([sound.currentTime * 1000, root.querySelector('.vf-on')?.textContent ?? '']);
        }
        return seen;
    }""")
    notebook.player.get_by_role("button", name="Pause").click()
    words = notebook.kernel("player._passages.words[['text', 'start_ms', 'end_ms']].values.tolist()")
    spoken = [
        (last, now, text) for (last, _), (now, text) in pairwise(seen) if any(a + 120 < now < b for _, a, b in words)
    ]
    assert spoken[-1][1] > start + 1000
    for last, now, text in spoken:  # drawn up to a tenth of a second later, or a frame of a busy machine
        assert text in [word for word, a, b in words if a - 1 <= now and last <= b + 120], (last, now, text)
    assert len(dict.fromkeys(text for *_, text in spoken)) >= 4
    assert notebook.until("player.time", lambda time: time > start + 1000) <= notebook.heard() * 1000 + 1


def test_the_kernel_seeks_while_it_plays(notebook):
    """Playback continues from a time set in the kernel, although the page reports its time meanwhile."""
    notebook.run("player.play()")
    for time in (90, 30, 60, 20, 80, 40, 100):
        notebook.wait_heard("!sound.paused")
        notebook.page.wait_for_timeout(300)
        notebook.run(f"player.time = {time}_000")
        notebook.wait_heard(f"sound.currentTime >= {time} && sound.currentTime < {time + 5}")
    notebook.run("player.pause()")
    notebook.wait_heard("sound.paused")
    assert 100_000 <= notebook.until("player.time", lambda now: now > 100_000) < 105_000


def test_the_recording_is_fetched_in_ranges(notebook):
    """Jupyter serves the recording at /files, the media server does so in Voila, and a range gives its bytes only."""
    address = notebook.page.evaluate("soundOf('interview').src")
    in_lab = "/lab/" in notebook.page.url
    assert ("/files/widgets/interview.flac" in address) == in_lab
    assert "127.0.0.1" in address
    ask = "async (url) => { const got = await fetch(url, { headers: { Range: 'bytes=100-199' } });"
    if in_lab:
        part = notebook.page.evaluate(f"{ask} return [got.status, (await got.arrayBuffer()).byteLength]; }}", address)
        assert part == [206, 100]
    notebook.wait_heard("sound.duration > 120 && sound.seekable.end(0) > 120")


def test_lanes_are_drawn_in_the_speakers_colours_and_a_click_on_them_seeks(notebook):
    """During a turn of B, B's lane has B's colour and A's lane has none; a click there seeks."""
    turn = notebook.kernel("player.result.loc[7, ['start_ms', 'end_ms']].to_list()")
    strip = notebook.player.locator(".vf-strip")
    middle = sum(turn) / 2 / notebook.page.evaluate("soundOf('interview').duration * 1000")
    notebook.until("len(player._peaks) > 0")
    lanes = 18 + 56 + 20 + 2  # axis, waveform and chapters are above them
    assert pixel(strip, middle, lanes + 18 + 9) == rgb(COLORS[1])
    assert pixel(strip, middle, lanes + 9) == [0, 0, 0]
    stage = notebook.player.locator(".vf-stage")
    box = stage.bounding_box()
    stage.click(position={"x": middle * box["width"], "y": box["height"] / 2})
    assert notebook.until("player.time") == pytest.approx(sum(turn) / 2, abs=400)
    expect(notebook.player.locator(".vf-row[aria-current]")).to_contain_text("The bad")


def test_everything_can_be_done_with_the_keyboard(notebook):
    """Keys play, seek, select, move, loop and change the speed, and JupyterLab's own shortcuts do not act."""
    page, player = notebook.page, notebook.player
    cells = page.locator(".jp-Cell").count()
    player.locator(".vf-stage").focus()
    page.keyboard.press("ArrowRight")
    assert notebook.until("player.time") == 5000
    page.keyboard.press("ArrowLeft")
    notebook.until("player.time", lambda time: time == 0)
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert notebook.until("player.interval", lambda interval: interval[1:] == [2000]) == [0, 2000]
    page.keyboard.press("l")
    assert notebook.until("player.loop")
    page.keyboard.press("Escape")
    notebook.until("player.interval", lambda interval: interval == [])
    page.keyboard.press("Space")
    notebook.wait_heard("!sound.paused && sound.currentTime > 0.2")
    page.keyboard.press("Space")
    notebook.wait_heard("sound.paused")
    page.keyboard.press("]")
    notebook.wait_heard("sound.playbackRate === 1.25")
    assert notebook.until("player.speed", lambda speed: speed != 1) == 1.25
    for key in "abdxzm":  # what JupyterLab would do to cells
        page.keyboard.press(key)
    assert page.locator(".jp-Cell").count() == cells
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(player.locator(".vf-row:focus")).to_have_attribute("aria-label", "Ada, 0:12")
    page.keyboard.press("Enter")
    notebook.wait_heard("!sound.paused && sound.currentTime > 12")
    page.keyboard.press("Space")


def test_words_are_searched_with_the_keyboard(notebook):
    """A slash starts the search, which ignores case, steps through the matches, and ends with Escape."""
    page, player = notebook.page, notebook.player
    player.locator(".vf-stage").focus()
    page.keyboard.press("/")
    page.keyboard.type("TREES")
    found = notebook.kernel("len(voxframe.analysis.find_words(player._passages.words, 'trees'))")
    assert found > 2
    expect(player.locator(".vf-found")).to_have_text(re.compile(rf"^\d+ of {found}$"))
    before = player.locator(".vf-found").text_content()
    page.keyboard.press("Enter")
    expect(player.locator(".vf-found")).not_to_have_text(before)
    assert "trees" in player.locator(".vf-this").first.text_content().lower()
    expect(player.locator(".vf-this").first).to_be_in_viewport()
    assert notebook.until("player.query") == "TREES"
    page.keyboard.press("Escape")
    expect(player.locator(".vf-hit")).to_have_count(0)


def test_a_selection_is_looped(notebook):
    """A drag over the lanes selects; with the loop on, playback stays in the selection."""
    drag(notebook.page, notebook.player.locator(".vf-stage"), 0.2, 0.4)
    low, high = notebook.until("player.interval")
    assert [low, high] == [pytest.approx(0.2 * 125_000, rel=0.05), pytest.approx(0.4 * 125_000, rel=0.05)]
    words = notebook.kernel("player.selection[['start_ms', 'end_ms']].astype(int).values.tolist()")
    assert words
    assert all(start < high and end > low for start, end in words)
    notebook.run("player.interval = [20000, 20500]; player.seek(20100)")
    notebook.wait_heard("Math.abs(sound.currentTime - 20.1) < 0.05")
    loop = notebook.player.get_by_role("button", name="Loop selection")
    loop.click()
    expect(loop).to_have_attribute("aria-pressed", "true")
    back, outside = notebook.page.evaluate("""async () => {
        const sound = soundOf('interview');
        let back = 0, last = sound.currentTime, outside = 0;
        await sound.play();
        for (const end = performance.now() + 2500; performance.now() < end && back < 2; ) {
            await new Promise(requestAnimationFrame);
            if (sound.currentTime < last - 0.3) back++;
            if (sound.currentTime > 20.9) outside++;
            last = sound.currentTime;
        }
        sound.pause();
        return [back, outside];
    }""")
    assert back == 2
    assert outside == 0


def test_selected_text_is_the_selection(notebook):
    """Selecting words with the mouse selects from the first to the last of them, and does not seek."""
    page = notebook.page
    first, last = (notebook.player.locator(".vf-w", has_text=text).first for text in ("counted", "public"))
    first.scroll_into_view_if_needed()
    a, b = first.bounding_box(), last.bounding_box()
    page.mouse.move(a["x"] + 2, a["y"] + a["height"] / 2)
    page.mouse.down()
    page.mouse.move(b["x"] + b["width"] - 2, b["y"] + b["height"] / 2, steps=5)
    page.mouse.up()
    notebook.until("player.interval")
    texts = notebook.kernel("player.selection['text'].to_list()")
    assert (texts[0], texts[-1]) == ("counted", "public")
    assert notebook.kernel("player.time") == 0
    page.evaluate("getSelection().removeAllRanges()")


def test_a_speaker_is_renamed_in_place_and_the_corpus_keeps_it(notebook):
    """A name is shown at every turn of the label, in the result and in the corpus; Escape changes nothing."""
    page, player = notebook.page, notebook.player
    turns = player.locator(".vf-name[aria-label='Rename B']")
    count = turns.count()
    turns.first.click()
    page.keyboard.type("Dr Baker")
    page.keyboard.press("Enter")
    expect(player.locator(".vf-name[aria-label='Rename Dr Baker']")).to_have_count(count)
    expect(turns).to_have_count(0)
    assert notebook.until("player.names", lambda names: len(names) == 2) == {"A": "Ada", "B": "Dr Baker"}
    assert set(notebook.kernel("player.result['speaker'].to_list()")) == {"Ada", "Dr Baker"}
    player.get_by_role("button", name="Rename Ada").first.click()
    page.keyboard.type("Nobody")
    page.keyboard.press("Escape")
    expect(player.locator(".vf-name", has_text="Nobody")).to_have_count(0)
    kept = notebook.until("corpus.speakers.get('interview')['speaker_name'].to_list()", lambda names: len(names) > 1)
    assert kept == ["Ada", "Dr Baker"]


def test_one_turn_is_assigned_to_another_speaker(notebook):
    """With "This turn only", the turn moves to that speaker's lane, and the corpus stores it."""
    page, player = notebook.page, notebook.player
    row = player.locator(".vf-row").nth(1)
    row.locator(".vf-name").click()
    row.get_by_role("textbox", name="Name of B").or_(row.get_by_role("combobox", name="Name of B")).fill("Ada")
    row.get_by_label("This turn only").check()
    page.keyboard.press("Enter")
    expect(row).to_have_attribute("aria-label", "Ada, 0:09")
    assert notebook.until("player.turn_names") == {"1": "A"}
    assert notebook.kernel("player.result['speaker'].to_list()[:4]") == ["Ada", "Ada", "Ada", "B"]
    turn = notebook.kernel("player.result.loc[1, ['start_ms', 'end_ms']].to_list()")
    middle = sum(turn) / 2 / page.evaluate("soundOf('interview').duration * 1000")
    assert pixel(player.locator(".vf-strip"), middle, 18 + 56 + 20 + 2 + 9) == rgb(COLORS[0])
    kept = notebook.until(
        "corpus.table('utterances', 'interview')['speaker_name'].to_list()[:4]", lambda n: n[1] == "Ada"
    )
    assert kept == ["Ada", "Ada", "Ada", "B"]


def test_a_turn_is_corrected_in_place_and_the_corpus_keeps_it(notebook):
    """A correction has times to seek to, and is in the result and the corpus; Escape changes nothing."""
    page, player = notebook.page, notebook.player
    row = player.locator(".vf-row").nth(1)
    row.locator(".vf-text").dblclick(position={"x": 5, "y": 5})
    field = row.get_by_role("textbox")
    expect(field).to_be_focused()
    corrected = "Good morning Susan. Thank you very much for having me."
    field.fill(corrected)
    page.keyboard.press("Enter")
    expect(row.locator(".vf-text")).to_contain_text("Susan. Thank you very much")
    expect(row.locator(".vf-corrected")).to_be_visible()
    assert notebook.until("player.corrections") == {"1": corrected}
    assert notebook.kernel("player.result.loc[1, 'text']") == corrected
    row.locator(".vf-w", has_text="much").click()
    start, end = notebook.kernel("player.result.loc[1, ['start_ms', 'end_ms']].to_list()")
    assert start < notebook.until("player.time") < end
    notebook.player.get_by_role("button", name="Pause").click()
    row.hover()
    row.get_by_role("button", name="Correct this passage").click()
    row.get_by_role("textbox").fill("nothing of this")
    page.keyboard.press("Escape")
    expect(row.locator(".vf-text")).to_contain_text("Thank you very much")
    assert notebook.until("corpus.corrections.get('interview')['text'].to_list()") == [corrected]


def test_layers_are_shown_and_hidden(notebook):
    """Uncertain words, chapters, entities and safety labels can be shown and hidden."""
    player = notebook.player
    expect(player.locator(".vf-chapter").first).to_have_text("How many trees0:00")
    assert player.locator(".vf-entity").count() >= 1
    bad = player.locator(".vf-row", has_text="The bad").last
    bad.scroll_into_view_if_needed()
    expect(bad.locator(".vf-safety", has_text="disasters")).to_be_visible()
    unsure = player.locator(".vf-c3").first
    sure = player.locator(".vf-w:not(.vf-c1, .vf-c2, .vf-c3, .vf-on)").first
    ground = "element => getComputedStyle(element).backgroundColor"
    assert unsure.evaluate(ground) != sure.evaluate(ground)
    for layer in ("confidence", "chapters", "safety"):
        player.get_by_role("button", name=f"Show {layer}").click()
    expect(player.locator(".vf-chapter").first).to_be_hidden()
    expect(player.locator(".vf-safety").first).to_be_hidden()
    assert unsure.evaluate(ground) == sure.evaluate(ground)
    assert notebook.until("player.layers", lambda layers: len(layers) == 1) == ["entities"]
    notebook.run("player.layers = ['confidence', 'chapters', 'entities', 'safety']")
    expect(player.locator(".vf-chapter").first).to_be_visible()


def test_every_control_has_a_name(notebook):
    """Each button, field and other control of player and timeline has an accessible name."""
    for widget in (notebook.player, notebook.timeline):
        found = controls(widget)
        assert len(found) >= 5
        assert [role for role, name in found if not name.strip()] == []


def test_an_unplayable_recording_is_reported(notebook):
    """If a file is not a recording, the text is readable, the button is disabled, and the error pane says so."""
    broken = notebook.page.locator(".vf-player[aria-label='Broken']")
    expect(broken.get_by_role("alert")).to_contain_text("This browser cannot play the recording")
    expect(broken.get_by_role("button", name="Play")).to_be_disabled()
    notebook.run("timeline.error = 'Something <b>else</b> failed.'")
    expect(notebook.timeline.get_by_role("alert")).to_have_text("Something <b>else</b> failed.")
    notebook.run("timeline.error = ''")
    expect(notebook.timeline.get_by_role("alert")).to_have_count(0)
