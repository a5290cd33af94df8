import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

import voxframe
from voxframe.corpus.job import new_job
from voxframe.errors import CorpusWarning, OptionError
from voxframe.options import FIELDS
from voxframe.widgets import SubmitForm
from voxframe.widgets.submit_parts import (
    LABELS,
    Presets,
    _job_row,
    format_input,
    kind_of,
    parse_form,
    parse_input,
    safe_name,
)

CANARY = "canary-5f1b0c77d2"
HOSTILE = "<img src=x onerror='window.hurt=1'><script>window.hurt=1</script>"


@pytest.fixture
def form(tmp_path, service):
    form = SubmitForm(voxframe.Corpus(tmp_path / "corpus"), service, presets=tmp_path / "presets.json")
    yield form
    form.close()


def test_every_option_has_a_field_and_help():
    """The form has a field and a help text for every option of a job."""
    assert {name for name, field in FIELDS.items() if field.group} == set(FIELDS) - {"audio_url"}
    assert all(field.help.endswith((".", "dicarlo, di carlo")) for field in FIELDS.values())
    assert set(LABELS) == set(FIELDS) - {"audio_url"}
    assert len(set(LABELS.values())) == len(LABELS)


def test_fields_become_options():
    """Inputs become options and back; fields with their default are not sent."""
    typed = {
        "punctuate": False, "format_text": True, "language_code": "de", "boost_param": "", "speakers_expected": " 3 ",
        "speech_threshold": "0.5", "word_boost": "Voxframe\n\n Parquet ",
        "custom_spelling": "Decarlo = dicarlo, di carlo",
        "redact_pii_policies": ("date", "event"), "topics": " ",
    }  # fmt: skip
    options = parse_form(typed)
    assert options == {
        "punctuate": False, "language_code": "de", "speakers_expected": 3, "speech_threshold": 0.5,
        "word_boost": ["Voxframe", "Parquet"], "custom_spelling": [{"from": ["dicarlo", "di carlo"], "to": "Decarlo"}],
        "redact_pii_policies": ["date", "event"],
    }  # fmt: skip
    for name in FIELDS.keys() - {"audio_url"}:
        assert parse_input(name, format_input(name, options.get(name))) == options.get(name)
    assert kind_of(FIELDS["webhook_auth_header_value"]) == "secret"


def test_all_invalid_fields_are_reported_at_once():
    """Each invalid field is named, with the allowed values."""
    with pytest.raises(OptionError) as told:
        parse_form({"speakers_expected": "many", "speech_threshold": "7", "custom_spelling": "x"})
    for text in (
        "speakers_expected must be a number, got 'many'",
        "speech_threshold must be a number from 0 to 1",
        "must look like",
    ):
        assert text in str(told.value)


def test_nothing_is_sent_before_the_plan(form, short):
    """A plan shows number and duration; a change afterwards needs a new plan."""
    form.plan()
    form.wait(30)
    assert "there are no recordings yet" in form.error
    form.inputs.value = f"{short}\n{short}"
    form.plan()
    form.wait(30)
    assert form.error == ""
    assert "Plan: 1 of 1 recording to send to the embedded service" in form._summary
    assert "0.1 minutes of audio" in form._summary
    assert form._to_send == 1
    form.fields["punctuate"].value = False
    assert form._to_send is None
    form.send()
    form.wait(30)
    assert "press Plan first" in form.error
    with pytest.warns(CorpusWarning, match="there is no corpus in"):
        assert len(form.result) == 0


def test_a_missing_or_damaged_file_has_a_row_and_stops_no_other(form, short, tmp_path):
    """The plan has a row per file: one that is missing or empty is left out, and one without sound is named."""
    broken, empty, missing = tmp_path / "broken.mp3", tmp_path / "empty.mp3", tmp_path / "nowhere" / "gone.mp3"
    broken.write_bytes(b"this is no sound")
    empty.touch()
    form.inputs.value = "\n".join(map(str, (missing, short, broken, empty)))
    form.plan()
    form.wait(30)
    assert form.error == ""
    shown = {row["name"]: " ".join((row["plan"], row["length"], row["problem"])) for row in form._recordings}
    assert set(shown) == {"gone.mp3", short.name, "broken.mp3", "empty.mp3"}
    assert "left out" in shown["gone.mp3"]
    assert "there is no file" in shown["gone.mp3"]
    assert "will be sent" in shown[short.name]
    assert "0:03" in shown[short.name]
    assert "no sound was found in it" in shown["broken.mp3"]
    assert "left out" in shown["empty.mp3"]
    assert "is empty" in shown["empty.mp3"]
    assert form._to_send == 2


def test_a_change_while_the_plan_is_made_discards_it(form, short, monkeypatch):
    """A plan of earlier options cannot be sent with later ones."""
    plan = form._corpus.plan

    def plan_slowly(*given, **options):
        form.fields["punctuate"].value = False  # a click of the user
        return plan(*given, **options)

    monkeypatch.setattr(form._corpus, "plan", plan_slowly)
    form.inputs.value = str(short)
    form.plan()
    form.wait(30)
    assert "press Plan again" in form.error
    assert (form._plan, form._to_send, form._summary) == (None, None, "")


@pytest.mark.speech
def test_jobs_are_sent_followed_and_fetched(form, short):
    """The table shows the states until the job is done, the transcript is in the corpus, and it is not sent again."""
    states = []
    form.observe(lambda change: states.extend(row["state"] for row in change["new"]), "_jobs")
    form.inputs.value = str(short)
    form.fields["speaker_labels"].value = True
    form.plan()
    form.wait(30)
    form.send()
    form.wait(120)
    assert form.error == ""
    assert form.result["state"].to_list() == ["completed"]
    assert states[-1] == "completed"
    assert "submitted" in states
    assert form._counts["finished"] == 1
    assert len(form._corpus.table("words")) > 5
    assert form._corpus.table("transcripts")["speaker_labels"].to_list() == [True]
    form.plan()
    form.wait(30)
    assert form._to_send == 0
    names: dict = {}
    code = form.code.replace("voxframe.connect()", "given")
    exec(code, {"given": form._client, "print": lambda *_: None}, names)
    assert names["corpus"].jobs()["state"].to_list() == ["completed"]
    assert ">short<" in form._repr_mimebundle_()[0]["text/html"]


@pytest.mark.speech
def test_progress_is_shown(form, long):
    """During a transcription the table shows its growing progress until the job is finished."""
    shares, said = [], []
    form.observe(lambda change: shares.extend(row["progress"] for row in change["new"]), "_jobs")
    form.observe(lambda change: said.extend(row["state_text"] for row in change["new"]), "_jobs")
    form.inputs.value = str(long)  # more stretches of speech than are decoded at once
    form.plan()
    form.wait(30)
    form.send()
    form.wait(240)
    assert form.error == ""
    going = [share for share in shares if share]
    assert 0 < going[0] < 1
    assert going == sorted(going)
    assert "transcribing" in said
    assert (said[-1], shares[-1]) == ("done", 0)
    waits = _job_row(new_job("b.wav", "m", {}, "here", state="submitted", transcript_id="b"), 0.0)
    assert (waits["state_text"], waits["progress"]) == ("queued at the service", 0)


def test_sending_can_be_stopped(form, short, tmp_path):
    """Recordings in progress are sent, the others are counted and are in the next plan."""
    for n in range(9):
        (tmp_path / f"{n}.wav").write_bytes(short.read_bytes()[: -64 * (n + 1)])
    form.inputs.value = str(tmp_path / "?.wav")
    form.plan()
    form.wait(30)
    form._background.submit("sending", form._stop.clear)
    form.observe(lambda _: form._stop.set(), "busy")
    form._background.submit("sending", form._send_planned)
    form.wait(60)
    sent = len(form.result)
    assert 0 < sent < 9
    assert f"Stopped: {9 - sent} of 9 were not sent" in form._summary
    form.plan()
    form.wait(30)
    assert form._to_send == 9 - sent
    for identifier in form.result["transcript_id"]:
        form._corpus.forget(identifier, remote=True, client=form._client)


@pytest.mark.speech
def test_failed_jobs_are_retried_and_waiting_ones_cancelled(form, short, tmp_path):
    """A failed job shows its reason and a retry button; a job at the service can be cancelled."""
    broken = tmp_path / "broken.mp3"
    broken.write_bytes(b"this is no sound" * 100)
    form.inputs.value = str(broken)
    form.plan()
    form.wait(30)
    form.send()
    form.wait(60)
    row = form._jobs[0]
    assert (row["state"], row["retry"], row["cancel"]) == ("error", True, False)
    assert row["error"]
    form._on_browser_message({"do": "retry", "key": row["key"]}, [])
    form.wait(60)
    assert form.result["attempts"].to_list() == [2]
    assert form.result["state"].to_list() == ["error"]
    form._corpus.submit([short], client=form._client, progress=False)
    key = form.result.query("state == 'submitted'")["key"].item()
    form._on_browser_message({"do": "cancel", "key": key}, [])
    form.wait(60)
    assert form.error == ""
    assert key not in form.result["key"].to_list()


def test_a_new_form_follows_jobs_of_another(form, short, service):
    """Jobs that another form sent are in the table and fetched."""
    form._corpus.submit([short], client=service, progress=False)
    again = SubmitForm(form._corpus, service)
    again.wait(120)
    assert again.result["state"].to_list() == ["completed"]
    again.close()


def test_presets_leave_out_webhook_options(form):
    """Presets are saved, loaded and deleted by name; options that may be secret are left out."""
    form.fields["auto_chapters"].value = True
    form.fields["word_boost"].value = "Voxframe"
    form.fields["webhook_url"].value = f"https://example.org/{CANARY}"
    form.save_preset("meetings")
    assert Presets(form._presets.path).all() == {"meetings": {"auto_chapters": True, "word_boost": ["Voxframe"]}}
    form.fields["auto_chapters"].value = False
    form._on_browser_message({"do": "load preset", "name": "meetings"}, [])
    kept = {"auto_chapters": True, "word_boost": ["Voxframe"]}
    assert form.options == kept | {"webhook_url": form.fields["webhook_url"].value}
    form._remove_preset("meetings")
    assert Presets(form._presets.path).all() == {}
    with pytest.raises(OptionError, match="no preset 'meetings'"):
        form.load_preset("meetings")
    with pytest.raises(OptionError, match="needs a name"):
        form.save_preset(" ")
    form._on_browser_message({"do": "delete preset", "name": "meetings"}, [])
    assert "no preset 'meetings'; available: none" in form.error
    form.fields["auto_chapters"].value = True
    form._presets.path.write_text('{"old": {"speech_model": "gone", "from_the_future": 1}}')
    form._list_presets()
    form._on_browser_message({"do": "load preset", "name": "old"}, [])
    assert "'from_the_future'" in form.error
    assert "speech_model" in form.error
    assert form.options["auto_chapters"]  # nothing is changed by half
    form._remove_preset("old")
    form._presets.path.write_text("{")
    form._background.run_now(form._list_presets)
    assert "repair or remove the file" in form.error


def test_a_secret_is_sent_but_not_stored(form, tmp_path):
    """A typed key is among the options sent, and in no trait, code, preset, repr or static HTML."""
    for name in ("webhook_auth_header_value", "api_key"):
        form._on_browser_message({"do": "secret", "name": name, "text": CANARY}, [])
    form.fields["webhook_auth_header_name"].value = "X-Key"
    assert form._all_options()["webhook_auth_header_value"] == CANARY
    form.save_preset("with a key")
    shown = [
        json.dumps(form.get_state(), default=str),
        form.code,
        repr(form),
        str(form.options),
        form.static_html(),
        form._presets.path.read_text(),
    ]
    assert not [text for text in shown if CANARY in text]
    assert "getpass" in form.code
    form._on_browser_message({"do": "secret", "name": "api_key", "text": ""}, [])
    assert form._secrets_set == ["webhook_auth_header_value"]


class Page:
    """A simulated browser that sends the requested chunk for each "next" message."""

    def __init__(self, form: SubmitForm) -> None:
        self.form, self.files, self.done = form, {}, []
        form._uploads._send = self.said

    def said(self, message) -> None:
        if message["do"] == "next":
            at = message["at"]
            piece = self.files[message["key"]][at : at + 1000]
            self.form._on_browser_message({"do": "chunk", "key": message["key"], "at": at}, [memoryview(piece)])
        else:
            self.done.append((message["do"], message["key"]))

    def put(self, key: str, name: str, data: bytes) -> None:
        self.files[key] = data
        self.form._on_browser_message({"do": "begin", "key": key, "name": name, "size": len(data)}, [])


def test_dropped_files_arrive_in_chunks_under_safe_names(form):
    """Every byte arrives, equal names give two files, no name is a path, and no trait holds the data."""
    page = Page(form)
    dropped = form._corpus.path / "dropped"
    data = bytes(range(256)) * 40
    page.put("a", "../../talk.wav", data)
    page.put("b", "talk.wav", b"")
    page.put("c", HOSTILE, b"x")
    paths = [Path(source) for source in form.sources]
    assert [path.parent for path in paths] == [dropped] * 3
    assert [path.name for path in paths][:2] == ["talk.wav", "talk (2).wav"]
    assert paths[0].read_bytes() == data
    form.wait(30)
    problems = {row["name"]: row["problem"] for row in form._recordings}
    assert "it may be damaged" in problems["../../talk.wav"]
    assert "is empty; there is no audio to send" in problems["talk.wav"]
    assert "it may be damaged" in problems[HOSTILE]
    assert len(str(form.get_state())) < 200_000
    assert "<img" not in form.static_html()
    form._on_browser_message({"do": "remove", "source": str(paths[0])}, [])
    form.wait(30)
    assert {row["name"] for row in form._recordings} == {"talk.wav", HOSTILE}
    assert not list(dropped.glob(".*"))
    assert safe_name("a" * 300 + ".mp3").endswith("a.mp3")


def test_paths_are_probed_when_they_are_chosen(form, short, tmp_path):
    """Before a plan, each recording of a pattern has a row: its length, or that it holds no sound."""
    (tmp_path / "broken.mp3").write_bytes(b"this is no sound")
    typed = {"recordings": f"{tmp_path}/*.*3\n{short}"}
    form._on_browser_message({"do": "look", "values": typed}, [])
    form.wait(30)
    rows = {row["name"]: (row["length"], row["problem"]) for row in form._recordings}
    assert rows == {"broken.mp3": ("", "no sound was found in it; it may be damaged"), short.name: ("0:03", "")}
    assert form._to_send is None


def test_incomplete_files_are_discarded_when_the_form_closes(tmp_path):
    """The form leaves no partial file behind, and waiting for a closed form returns."""
    form = SubmitForm(voxframe.Corpus(tmp_path / "corpus"), presets=tmp_path / "presets.json")
    form._on_browser_message({"do": "begin", "key": "k", "name": "a.mp3", "size": 9}, [])
    form._on_browser_message({"do": "chunk", "key": "k", "at": 0}, [b"1234"])
    assert len(list((tmp_path / "corpus" / "dropped").iterdir())) == 1
    form.close()
    assert list((tmp_path / "corpus" / "dropped").iterdir()) == []
    form.wait(1)


def test_a_full_disk_is_reported(form):
    """If a file cannot be saved, the error pane shows the reason and no partial file remains."""
    form._corpus.path.mkdir()
    (form._corpus.path / "dropped").write_text("a file where the folder should be")
    page = Page(form)
    page.put("a", "talk.wav", b"x")
    assert "cannot save the file" in form.error
    assert page.done == [("failed", "a")]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag, attrs) -> None:
        self.seen.add(tag)


def test_names_and_errors_are_text(form, short, tmp_path):
    """Markup in the name of a recording is text in the plan, the table and the errors."""
    bad = tmp_path / "<b onclick=hurt()>.wav"
    shutil.copy(short, bad)
    form._corpus.submit([bad], client=form._client, progress=False)
    form.error = HOSTILE
    form._draw()
    tags = Tags()
    tags.feed(form._repr_mimebundle_()[0]["text/html"])
    assert tags.seen <= {"div", "p", "strong", "table", "tr", "th", "td"}
    assert form._jobs[0]["name"] == bad.stem
    assert Path(form._jobs[0]["source"]) == bad
