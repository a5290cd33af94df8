"""Answers of a local model, checked against the text: a stand-in writes them, so that each case is certain."""

from voxframe_engine.answers import LLMQuestion, LLMRequest, from_text, from_transcript
from voxframe_engine.answers.chat import ModelReply, without_repetition
from voxframe_engine.answers.evidence import CheckedAnswerer
from voxframe_engine.answers.extractive import NO_ACTIONS, NOTHING_FITS

TALK = (
    "Ann: Welcome back. Last winter the bridge over the Sava was closed for thirty-five days. Ships had hit a pillar.\n"
    "Bob: The repair cost two million euros. I will send the report to the council on Friday.\n"
    "Ann: Next, the swimming pool. It opens in May, and tickets cost four euros."
)


class Writes:
    """A model that writes a given text."""

    name = "tiny"

    def __init__(self, text):
        self.text = text

    def ask(self, system, request, size, temperature, report=None):
        return ModelReply(self.text, 10, 5)


def write(text, task="summary", source=None, **more):
    """Return the answer to a request when the model writes this text."""
    return CheckedAnswerer(Writes(text)).answer(LLMRequest(task, input_text=TALK, **more), [source or from_text(TALK)])


def test_what_is_supported_stays_and_is_cited():
    """Paraphrases, and numbers written otherwise, are supported; each sentence has its passage."""
    text = (
        "The bridge over the Sava was shut for 35 days after ships struck a pillar. Repairing it cost 2,000,000 euros."
    )
    answer = write(text)
    assert answer.response == text
    assert answer.model == "tiny"
    first, second = answer.citations
    assert "thirty-five days" in first["text"]
    assert "two million euros" in second["text"]
    assert second["sentence"] == "Repairing it cost 2,000,000 euros."


def test_what_is_invented_is_left_out():
    """Other subjects, other numbers and other names are not in the text, whatever else the sentence says."""
    for invented in (
        "The airport will be enlarged by a new terminal.",
        "The bridge over the Sava was closed for 45 days.",
        "The bridge over the Danube was closed last winter.",
    ):
        answer = write(f"The pool opens in May. {invented}\n- {invented}")
        assert answer.response == "The pool opens in May."
        assert len(answer.citations) == 1


def test_a_citation_has_the_times_of_its_passage():
    """Of a transcript, a citation names id, start and end in ms."""
    said = "The bridge was closed for repairs. It was cold. Nobody came. It rained. The pool opens in May.".split()
    words = [{"text": text, "start": 1000 * n, "end": 1000 * n + 500, "speaker": "A"} for n, text in enumerate(said)]
    source = from_transcript({"id": "t1", "words": words, "audio_duration": 20})
    (citation,) = write("They closed the bridge to repair it.", source=source).citations
    assert (citation["transcript_id"], citation["start"]) == ("t1", 0)
    assert citation["end"] == 1000 * said.index("came.") + 500
    assert citation["text"] == "The bridge was closed for repairs. It was cold. Nobody came."


def test_a_summary_without_support_is_quoted_instead():
    """Nobody gets an empty summary: the key sentences come instead, and the model's name says so."""
    answer = write("The new airport terminal is enormous.")
    assert answer.model == "voxframe-extractive"
    assert answer.response
    assert set(answer.response.split()) <= set(TALK.split())


def test_action_items_and_answers_without_support_say_so():
    """An invented action item or answer is replaced by the statement that there is none."""
    assert write("- Tim will buy a car.", "action-items").response == NO_ACTIONS
    kept = write("- Bob will send the report to the council on Friday.\n- Tim will buy a car.", "action-items")
    assert kept.response == "- Bob will send the report to the council on Friday."
    questions = (LLMQuestion("How much do tickets for the pool cost?"), LLMQuestion("Open?", answer_options=("yes",)))
    answer = write("Four euros.", "question-answer", questions=questions)
    assert [reply["answer"] for reply in answer.response] == ["Four euros.", "Four euros."]
    assert [citation["question"] for citation in answer.citations] == [0]
    answer = write("Nine euros.", "question-answer", questions=questions[:1])
    assert answer.response == [{"question": questions[0].question, "answer": NOTHING_FITS}]


def test_other_texts_are_returned_as_they_were_written():
    """A poem or JSON cannot be checked sentence by sentence: it is returned without citations."""
    answer = write("O airport, o moon!", "task", prompt="Write a poem about it")
    assert (answer.response, answer.citations) == ("O airport, o moon!", None)


def test_a_repetition_ends_a_text():
    """A sentence that comes again, and words in a loop, end the text; lines of a table and short answers do not."""
    once = "The bus was late. They took a taxi instead. "
    assert without_repetition(once + once * 3) == once.rstrip()
    assert without_repetition("and then the bus " + "came and went and " * 9) == "and then the bus came and went and "
    for text in ("| a | b |\n|---|---|---|---|---|---|\n| 1 | 2 |", "Yes. No. Yes. No.", once):
        assert without_repetition(text) == text
