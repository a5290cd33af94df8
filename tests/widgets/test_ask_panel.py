import html
import json
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

import voxframe
from voxframe.client.llm import LlmReply
from voxframe.corpus.llm import Answers, NumberedPassage, citations, cite
from voxframe.errors import NotFoundError
from voxframe.widgets import AskPanel

DATA = Path(__file__).parents[2] / "data"
HOSTILE = "<img src=x onerror='window.hurt=1'><script>window.hurt=1</script>"


@pytest.fixture
def corpus(tmp_path) -> voxframe.Corpus:
    """Two transcripts with speaker names, so that they are sent as text and need not exist at the service."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    for name, speaker in (("interview", "A"), ("call", "1")):
        corpus.raw.put(name, (DATA / "payloads" / f"{name}.json").read_bytes())
        corpus.speakers.set(name, {speaker: "Ada"})
    return corpus


@pytest.fixture
def panel(corpus, service):
    panel = AskPanel(corpus, service, audio={"interview": DATA / "interview.flac"})
    yield panel
    panel.close()


def asked(panel: AskPanel, task: str, prompt: str) -> dict:
    """Ask and return the newest answer."""
    panel._on_browser_message({"do": "ask", "form": {"task": task, "prompt": prompt}}, [])
    panel.wait(60)
    return panel._answers[0]


def test_answers_have_usage_rate_limit_and_citations(panel, corpus):
    """Each task is answered, and every citation is a passage of the answer and of the transcript, with its time."""
    panel.chosen = ["interview"]
    for task, prompt in (("question-answer", "How many trees?\nWho pays?"), ("summary", ""), ("task", "List the trees"),
                         ("action-items", "")):  # fmt: skip
        answer = asked(panel, task, prompt)
        assert panel.error == ""
        assert answer["task"] == task
        assert answer["usage"]["output_tokens"] > 0
    assert [len(answer["replies"]) for answer in panel._answers] == [1, 1, 1, 2]
    assert panel._limit["remaining"] < panel._limit["limit"]
    found = panel.citations
    assert len(found) >= 3
    words = corpus.table("words", "interview")
    for row in found.itertuples():
        reply = next(a for a in panel._answers if a["request_id"] == row.request_id)["replies"][row.answer_idx]
        said = words[(words["start_ms"] >= row.start_ms) & (words["end_ms"] <= row.end_ms)]["text"]
        assert " ".join(said) == row.text
        assert (
            voxframe.analysis.search_terms.spoken(reply["answer"][row.begin : row.end])[-4:]
            == (voxframe.analysis.search_terms.spoken(row.text)[-4:])
        )
    assert panel.result["task"].unique().tolist() == ["question-answer", "summary", "task", "action-items"]
    still = panel.static_html()
    for text in found["text"]:
        assert f"\u201c{html.escape(text)}\u201d" in still
    assert f"{panel._answers[0]['usage']['output_tokens']} tokens" in still
    assert "Quotes from the transcripts, no language model" in still
    row = found.iloc[0]
    panel._on_browser_message(
        {"do": "cite", "transcript_id": row["transcript_id"], "start_ms": int(row["start_ms"])}, []
    )
    assert panel.player.time == row["start_ms"]


def test_only_verbatim_text_is_cited(corpus):
    """Sentences of at least five words and quotations of at least three are cited, each once; other text is not."""
    first = corpus.table("words", "interview")["text"].iloc[:8].tolist()
    quoted = " ".join(first[2:6])
    answer = f"They talk about a garden in spring. As she says, “{quoted.upper()}” is how it began. Yes.\n- "
    answer += " ".join(first)
    found = citations(answer, corpus.search, ["interview", "call"])
    assert answer[found[0].begin : found[0].end] == quoted.upper()
    assert [cited.start_ms for cited in found] == sorted((cited.start_ms for cited in found), reverse=True)
    assert len(found) == 2
    assert citations(answer, corpus.search, ["call"]) == []
    assert citations("* * * * * *. ?! “... ... ...”", corpus.search, ["call"]) == []


def test_missing_input_is_reported(panel):
    """Without a transcript or a question, the error pane shows the next step and nothing is sent."""
    panel.chosen = []
    panel.prompt = "How many trees?"
    panel.ask()
    panel.wait(10)
    assert "no transcripts are selected" in panel.error
    panel.chosen, panel.prompt = ["interview"], " "
    panel.ask()
    panel.wait(10)
    assert "there is no question" in panel.error
    assert panel._answers == []


def test_each_task_has_its_own_text(panel):
    """Each task keeps its text, which returns when the task is selected again."""
    panel.chosen, panel.prompt = ["interview"], "How many trees?"
    panel.task = "summary"
    assert (panel.prompt, panel._options()) == ("", {})
    panel.prompt = "in haiku"
    panel.task = "question-answer"
    assert panel.prompt == "How many trees?"
    assert panel.prompts == {"question-answer": "How many trees?", "summary": "in haiku"}
    panel._on_browser_message({"do": "ask", "form": {"prompt": "List the trees", "task": "task"}}, [])
    panel.wait(60)
    assert panel._answers[0]["prompt"] == "List the trees"
    assert panel.prompts["question-answer"] == "How many trees?"


def test_an_answer_is_purged_everywhere(panel, corpus, service):
    """A purged answer is deleted from the service, the corpus and the panel, and would be requested again."""
    panel.chosen = ["call"]
    answer = asked(panel, "summary", "in two sentences")
    assert panel._earlier == []  # a format is kept with no answer
    text = answer["replies"][0]["answer"]
    assert len(corpus.raw.responses()) == 1
    panel._on_browser_message({"do": "purge", "request_id": answer["request_id"]}, [])
    panel.wait(30)
    assert panel.error == ""
    assert (panel._answers, len(panel.result), len(corpus.raw.responses())) == ([], 0, 0)
    assert text not in json.dumps(panel.get_state(), default=str)
    with pytest.raises(NotFoundError):
        service.llm_response(answer["request_id"])


def test_earlier_prompts_are_offered(panel, corpus, service):
    """Prompts of earlier sessions are offered once each, newest first, until their answers are purged."""
    panel.chosen = ["interview"]
    asked(panel, "question-answer", "Who pays?")
    asked(panel, "task", "List the trees")
    last = asked(panel, "question-answer", "How many trees?\nWho pays?")
    again = AskPanel(corpus, service)
    assert again._earlier[0] in ("How many trees?", "Who pays?")
    assert sorted(again._earlier) == ["How many trees?", "List the trees", "Who pays?"]
    panel.purge(last["request_id"])
    panel.wait(30)
    assert panel._earlier == ["List the trees", "Who pays?"]


def test_the_code_returns_the_same_answer(panel, service):
    """Run with the same client, `.code` returns the answer shown without a new request."""
    panel.chosen, panel.temperature = ["interview", "call"], 0.5
    answer = asked(panel, "question-answer", "How many trees?")
    names: dict = {"given": service, "print": lambda *_: None}
    exec(panel.code.replace("voxframe.connect()", "given"), names)
    assert [reply.answer for reply in names["answers"].replies] == [reply["answer"] for reply in answer["replies"]]
    assert names["answers"].responses[-1].request_id == answer["request_id"]
    pd.testing.assert_frame_equal(names["result"].drop(columns="created"), panel.result.drop(columns="created"))


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag, attrs) -> None:
        self.seen.add(tag)


def test_questions_and_answers_are_text(panel):
    """Markup in a prompt, or in an answer that repeats it, is text in the saved notebook."""
    panel.chosen, panel.title = ["interview"], HOSTILE
    asked(panel, "question-answer", HOSTILE)
    tags = Tags()
    tags.feed(panel._repr_mimebundle_()[0]["text/html"])
    assert tags.seen == {"div", "p", "small", "strong"}


def test_a_panel_shows_the_citations_of_ask(panel, corpus):
    """A paraphrase that ask() gave a passage for leads to that passage, in the order of the answer."""
    table = next(iter(corpus._search.meaning.passages(["How many trees?"], ["interview"], 1)))
    answer = "Trees are counted [1]. Nothing here is quoted."
    cited = cite([answer], [NumberedPassage(1, table)], corpus.search, ["interview"])
    answered = Answers(answer, (LlmReply(answer),), ("interview",), (), cited)
    (found,) = panel._citations(answered, 0, ["interview"])
    assert answer[found["begin"] : found["end"]] == "[1]"
    assert found["text"] == " ".join(table["match"].to_pylist())
    json.dumps(found)  # as it goes to the browser
    panel._on_browser_message({"do": "cite", **found}, [])
    assert panel.error == ""
    assert panel.player.interval == [found["start_ms"], found["end_ms"]]
