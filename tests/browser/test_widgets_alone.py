"""Live widgets on a page without Jupyter: edits of a player, and accessibility in every state and two themes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

import voxframe
from tests.browser.conftest import BOOT_S
from tests.browser.host import Host

DATA = Path(__file__).parents[2] / "data"
NAMES = ("interview", "panel")
AUDIO = {name: DATA / f"{name}.flac" for name in NAMES}


@pytest.fixture
def corpus(tmp_path: Path) -> voxframe.Corpus:
    """A corpus of two transcripts."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    for name in NAMES:
        corpus.add(DATA / "payloads" / f"{name}.json")
    return corpus


@pytest.fixture(params=["light", "dark"])
def themed_host(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Host]:
    """The page in a theme."""
    yield from _opened(Host(browser, theme=request.param), request)


@pytest.fixture
def host(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Host]:
    """The page in the light theme."""
    yield from _opened(Host(browser), request)


def _opened(host: Host, request: pytest.FixtureRequest) -> Iterator[Host]:
    try:
        yield host
        host.shot(request.node.name)
        assert not host.faults
    finally:
        host.close()


def violations(host: Host) -> list[tuple[str, str]]:
    """Return what axe-core reports of the page: rule and element."""
    response: Any = Axe().run(host.page).response
    return [(rule["id"], node["html"][:200]) for rule in response["violations"] for node in rule["nodes"]]


def test_changes_are_undone_redone_and_returned_to(host: Host, corpus: voxframe.Corpus) -> None:
    """Buttons undo and redo the last change of a turn, and the list of changes goes back to the first state."""
    player = voxframe.TranscriptPlayer("panel", corpus=corpus)
    before = player.result["text"].tolist()
    box = host.show(player)
    undo, redo = (box.get_by_role("button", name=name, exact=True) for name in ("Undo", "Redo"))
    expect(undo).to_be_disabled()
    box.locator(".vf-row").nth(1).locator(".vf-w").nth(3).click()
    for key, count in (("s", len(before) + 1), ("m", len(before))):
        box.locator(".vf-row").nth(1).press(key)
        expect(box.locator(".vf-row")).to_have_count(count)
    undo.click()
    expect(box.locator(".vf-row")).to_have_count(len(before) + 1)
    redo.click()
    expect(box.locator(".vf-row")).to_have_count(len(before))
    box.locator(".vf-reader").press("u")
    expect(box.locator(".vf-row")).to_have_count(len(before) + 1)
    box.locator(".vf-reader").press("Shift+U")
    expect(box.locator(".vf-row")).to_have_count(len(before))
    expect(redo).to_be_disabled()
    box.get_by_role("button", name="History").click()
    entries = box.locator(".vf-change")
    expect(entries).to_have_count(3)
    entries.filter(has_text="Split of turn 1").click()
    expect(box.locator(".vf-row")).to_have_count(len(before) + 1)
    entries.filter(has_text="As transcribed").click()  # the list stays open
    expect(undo).to_be_disabled()
    assert player.result["text"].tolist() == before
    assert corpus.corrections.history("panel")["undone"].notna().all()


def test_the_focus_stays_after_every_edit(host: Host, corpus: voxframe.Corpus) -> None:
    """The focus stays on the control that made an edit; if that is disabled or gone, it goes to the edited turn."""
    box = host.show(voxframe.TranscriptPlayer("panel", corpus=corpus))
    row, changes = box.locator(".vf-row").nth(2), box.locator(".vf-change")
    undo, redo = (box.get_by_role("button", name=name, exact=True) for name in ("Undo", "Redo"))
    history = box.get_by_role("button", name="History")
    row.hover()
    row.locator(".vf-edit").click()
    row.get_by_role("textbox").fill("Other words for this.")
    row.get_by_role("textbox").press("Enter")
    expect(row.locator(".vf-text")).to_contain_text("Other words")
    expect(row.locator(".vf-edit")).to_be_focused()
    history.press("Enter")
    expect(changes).to_have_count(2)
    expect(history).to_be_focused()
    row.focus()
    row.press("m")
    expect(changes).to_have_count(3)
    expect(row).to_be_focused()
    undo.press("Enter")
    expect(changes.nth(1)).to_have_attribute("aria-current", "step")
    expect(undo).to_be_focused()
    undo.press("Enter")
    expect(undo).to_be_disabled()
    expect(row).to_be_focused()
    for _ in range(2):
        redo.press("Enter")
        host.page.wait_for_timeout(100)
    expect(redo).to_be_disabled()
    expect(row).to_be_focused()
    changes.filter(has_text="As transcribed").press("Enter")
    expect(undo).to_be_disabled()
    expect(changes.filter(has_text="As transcribed")).to_be_focused()


@pytest.mark.parametrize("kind", ["form", "ask", "search", "live"])
def test_a_silent_kernel_is_said_on_every_page(
    host: Host, corpus: voxframe.Corpus, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A page that cannot see the state of the kernel says that nothing answered; the next answer takes that away."""
    widget, name = {
        "form": (voxframe.SubmitForm(corpus), "Plan"),
        "ask": (voxframe.AskPanel(corpus), "Ask"),
        "search": (voxframe.WordSearch(corpus, query="street"), "Street"),
        "live": (voxframe.LiveTranscript(), "Stream file"),
    }[kind]
    box = host.show(widget)
    button = box.locator(".vf-line").first if kind == "search" else box.get_by_role("button", name=name, exact=True)
    silent = "The kernel has not responded"
    with monkeypatch.context() as dead:
        dead.setattr(type(widget), "_handle_custom_msg", lambda *_: None)
        button.click()
        expect(box.get_by_role("alert").first).to_contain_text(silent)
    button.click()
    expect(box.get_by_role("alert").filter(has_text=silent)).to_have_count(0)


def test_keys_of_a_live_transcript(host: Host) -> None:
    """A key shows the list of keys, and a key starts and stops a session without losing the focus."""
    live = voxframe.LiveTranscript()
    box = host.show(live)
    microphone, stop = (box.get_by_role("button", name=name, exact=True) for name in ("Microphone", "Stop"))
    microphone.press("?")
    expect(box.locator(".vf-keys")).to_contain_text("Start the microphone, or stop")
    live.running = True
    expect(stop).to_be_focused()
    live.running = False
    expect(microphone).to_be_focused()
    host.page.evaluate("() => { navigator.mediaDevices.getUserMedia = async () => { throw new Error('the key'); }; }")
    microphone.press("m")
    expect(box.get_by_role("alert")).to_have_text("the key")


def test_a_boundary_is_moved_on_the_waveform(host: Host, corpus: voxframe.Corpus) -> None:
    """A drag of a turn's handle over two words of the next turn gives it these words."""
    player = voxframe.TranscriptPlayer("panel", corpus=corpus)
    words = corpus.tables("panel")["words"]
    first, second = (words[words["utterance_idx"] == turn] for turn in (0, 1))
    box = host.show(player)
    stage = box.locator(".vf-stage").bounding_box()
    player.seek(int(first["start_ms"].iloc[2]))
    expect(box.locator(".vf-row[aria-current]")).to_have_count(1)
    host.page.wait_for_timeout(100)  # the handles are drawn with the next frame

    def place(time_ms: float) -> float:
        return stage["x"] + time_ms / player._until * stage["width"]

    edge = (first["end_ms"].iloc[-1] + second["start_ms"].iloc[0]) / 2
    host.page.mouse.move(place(edge), stage["y"] + 40)
    host.page.mouse.down()
    host.page.mouse.move(place(second["end_ms"].iloc[1]), stage["y"] + 40, steps=4)
    host.page.mouse.up()
    taken = " ".join(second["text"].iloc[:2])
    expect(box.locator(".vf-row").first).to_contain_text(taken)
    assert corpus.corrections.turns("panel")["word_count"].iloc[0] == len(first) + 2
    assert player.interval == []


def test_every_control_of_a_player_has_a_key(host: Host, corpus: voxframe.Corpus) -> None:
    """Keys change volume, skipping of silences, speed and time as the buttons do."""
    player = voxframe.TranscriptPlayer("panel", AUDIO["panel"], corpus=corpus)
    box = host.show(player)
    stage = box.locator(".vf-stage")
    expect(box.locator(".vf-play")).to_be_enabled()
    stage.press("Shift+ArrowDown")
    expect(box.get_by_role("slider", name="Volume")).to_have_value("0.9")
    stage.press("k")
    expect(box.get_by_role("button", name="Skip silences of more than a second")).to_have_attribute(
        "aria-pressed", "true"
    )
    stage.press("]")
    expect(box.get_by_role("combobox", name="Speed")).to_have_value("1.25")
    stage.press("ArrowRight")
    expect(box.locator(".vf-clock")).to_have_text("0:05 / 1:42\N{MINUS SIGN}1:37")


def test_no_player_state_violates_accessibility_rules(themed_host: Host, corpus: voxframe.Corpus) -> None:
    """axe-core finds nothing with keys, history, a menu, a field or an error open, and with every layer shown."""
    player = voxframe.TranscriptPlayer("panel", AUDIO["panel"], corpus=corpus, names={"A": "Ada"})
    player.layers = ["confidence", "chapters", "entities", "safety"]
    player.query = "street"
    box = themed_host.show(player)
    row = box.locator(".vf-row").nth(1)
    row.locator(".vf-w").nth(2).click()
    box.get_by_role("button", name="Pause").click()
    row.press("s")
    expect(box.locator(".vf-change")).to_have_count(2)
    row.hover()
    row.locator(".vf-turn").click()
    box.get_by_role("button", name="History").click()
    box.get_by_role("button", name="Keyboard shortcuts").click()
    player.error = "A message."
    box.locator(".vf-error").wait_for()
    assert violations(themed_host) == []
    box.locator(".vf-row").nth(3).press("e")
    expect(box.locator("textarea")).to_have_count(1)
    assert violations(themed_host) == []


def test_widgets_on_a_page_violate_no_accessibility_rules(themed_host: Host, corpus: voxframe.Corpus) -> None:
    """axe-core finds nothing on a page with every widget, two of a kind, with results and with messages."""
    words, turns = corpus.table("words"), corpus.table("utterances")
    search = voxframe.WordSearch(corpus, audio=AUDIO, query="street")
    widgets = [
        search,
        voxframe.WordSearch(corpus),
        voxframe.PassageList(corpus.search("the"), corpus=corpus),
        voxframe.Timeline(turns, title="Turns"),
        voxframe.Dispersion(words, ["street", "zebra"], corpus=corpus),
        voxframe.GroupComparison(turns, "word_count", "speaker", corpus=corpus),
        voxframe.SubmitForm(corpus),
        voxframe.AskPanel(corpus),
        voxframe.LiveTranscript(),
    ]
    for widget in widgets:
        themed_host.show(widget)
    widgets[-2].error = "A message."
    search.play("panel", 1000)
    expect(themed_host.page.locator(".vf-player")).to_have_count(1)
    for button in themed_host.page.get_by_role("button", name="Keyboard shortcuts").all():
        button.click()
    assert violations(themed_host) == []


def test_no_state_of_a_form_violates_accessibility_rules(
    themed_host: Host, corpus: voxframe.Corpus, tmp_path: Path
) -> None:
    """A plan with a missing, a damaged and a hostile name, jobs, all fields, and an error: axe-core finds nothing."""
    bad = tmp_path / "<img src=x onerror='window.hurt=1'>.mp3"
    bad.write_bytes(b"this is no sound")
    form = voxframe.SubmitForm(corpus, presets=tmp_path / "presets.json")
    form.save_preset("meetings")
    box = themed_host.show(form)
    recordings = box.get_by_role("textbox", name="Recordings")
    recordings.fill(f"{bad}\n{tmp_path / 'gone.mp3'}\n{AUDIO['panel']}")
    rows = box.locator(".vf-recordings tbody tr")
    expect(rows).to_have_count(0)
    recordings.press("Tab")  # they are probed as soon as they are chosen
    expect(rows).to_have_count(3)
    recordings.press("Control+Enter")
    damaged = rows.filter(has_text="no sound was found in it")
    expect(damaged).to_contain_text("will be sent", timeout=BOOT_S * 1000)
    expect(rows.filter(has_text="there is no file")).to_contain_text("left out")
    expect(rows.filter(has_text="panel.flac")).to_contain_text("1:42")
    expect(box.get_by_role("button", name="Send 2")).to_be_enabled()
    states = [("a", "error", "failed"), ("b", "submitted", "transcribing"), ("c", "uncertain", "uncertain")]
    form._jobs = [
        {
            "key": key, "name": f"{key}.mp3", "source": key, "state": state, "state_text": text, "progress": 0.3,
            "length": "0:10", "error": "No sound.", "since": 1, "cancel": True, "retry": True,
        }
        for key, state, text in states
    ]  # fmt: skip
    form._counts = {"all": 3, "finished": 2, "error": 2}
    form.error = "A message."
    box.locator(".vf-error").wait_for()
    box.locator("summary").click()
    box.locator(".vf-title").first.click()
    box.get_by_role("button", name="Plan").press("?")
    expect(box.locator(".vf-keys")).to_contain_text("Send what was planned")
    for group in box.get_by_role("group", name="Options").get_by_role("button").all():
        group.click()
        assert violations(themed_host) == []
    assert themed_host.page.evaluate("window.hurt") is None


def test_a_change_after_the_plan_needs_a_new_one(host: Host, corpus: voxframe.Corpus, tmp_path: Path) -> None:
    """An option that is changed, in the page or by a preset, switches the button to send off."""
    form = voxframe.SubmitForm(corpus, presets=tmp_path / "presets.json")
    form.fields["speaker_labels"].value = True
    form.save_preset("people")
    form.fields["speaker_labels"].value = False
    form.inputs.value = str(AUDIO["panel"])
    box = host.show(form)
    box.get_by_role("button", name="Plan").press("Enter")
    send = box.get_by_role("button", name="Send")
    expect(send).to_have_text("Send 1", timeout=BOOT_S * 1000)
    box.get_by_role("button", name="Who speaks").click()
    box.get_by_label("Number of speakers").fill("3")
    expect(send).to_be_disabled()
    assert form.options == {"speakers_expected": 3}
    box.get_by_role("button", name="Plan").press("Enter")
    expect(send).to_have_text("Send 1")
    box.get_by_role("combobox", name="Preset").select_option("people")
    expect(box.get_by_label("Tell speakers apart")).to_be_checked()
    expect(send).to_be_disabled()
    assert form.options == {"speaker_labels": True}


@pytest.mark.parametrize(("width", "theme"), [(360, "light"), (700, "dark"), (1280, "light")])
def test_widgets_fit_every_width(browser: Browser, corpus: voxframe.Corpus, width: int, theme: str) -> None:
    """At three widths, nothing is wider than its widget, and what is cut off ends in an ellipsis."""
    host = Host(browser, width, theme)  # before the widgets, which open their comms when they are made
    turns = corpus.table("utterances")
    search = voxframe.WordSearch(corpus, query="street")
    widgets = [
        search,
        voxframe.PassageList(corpus.search("the"), corpus=corpus),
        voxframe.Timeline(turns),
        voxframe.Dispersion(corpus.table("words"), ["street"]),
        voxframe.GroupComparison(turns, "word_count", "speaker"),
        voxframe.SubmitForm(corpus),
        voxframe.AskPanel(corpus),
        voxframe.LiveTranscript(),
        voxframe.TranscriptPlayer("panel", corpus=corpus),
    ]
    try:
        for widget in widgets:
            host.show(widget)
        host.page.wait_for_selector(".vf-player[data-ready]")
        wide = """() => [...document.querySelectorAll('main .voxframe *')].filter((part) => {
            const [own, all] = [part, part.closest('.voxframe')].map((one) => one.getBoundingClientRect());
            return own.width && own.right > all.right + 1 && getComputedStyle(part).position !== 'absolute'
                && !part.closest('.vf-reader, .vf-lines'); }).map((part) => part.outerHTML.slice(0, 200))"""
        cut = """() => [...document.querySelectorAll('.voxframe *')].filter((part) => {
            const style = getComputedStyle(part);
            return part.clientWidth && part.scrollWidth > part.clientWidth + 1 && style.overflowX === 'hidden'
                && style.textOverflow !== 'ellipsis' && style.clipPath === 'none';
            }).map((part) => part.outerHTML.slice(0, 200))"""
        assert host.page.evaluate(wide) == []
        assert host.page.evaluate(cut) == []
        assert not host.faults
    finally:
        host.close()


def test_bars_of_a_timeline_have_the_colours_of_their_speakers(host: Host, corpus: voxframe.Corpus) -> None:
    """Every bar of a lane is drawn in the colour of the lane, also after one with text."""
    box = host.show(voxframe.Timeline(corpus.table("utterances", "panel")))
    host.page.wait_for_timeout(200)
    colours = box.locator(".vf-lanes").evaluate(
        """(canvas) => { const { width, height } = canvas, ink = canvas.getContext('2d');
            const lane = height / 4, colours = [];
            for (let n = 0; n < 4; n++) {
                const row = ink.getImageData(0, Math.round(n * lane + lane * 0.2), width, 1).data, seen = new Map();
                for (let i = 0; i < row.length; i += 4) if (row[i + 3] === 255) {
                    const key = row.slice(i, i + 3).join(); seen.set(key, (seen.get(key) ?? 0) + 1); }
                colours.push([...seen].filter(([, count]) => count > 12).map(([key]) => key));
            }
            return colours; }"""
    )
    assert [len(lane) for lane in colours] == [1, 1, 1, 1]
    assert len({lane[0] for lane in colours}) == 4
