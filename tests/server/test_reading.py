"""Answers of the reader: which sentence is quoted for them, and how good they are with the real model."""

import numpy as np
import pytest
from tests.benchmarks import meaning
from tests.server.conftest import Service

from voxframe import encoder, models, reader
from voxframe.errors import ModelError
from voxframe.reader import ShortAnswer
from voxframe.server.llm.bm25 import BM25Index
from voxframe.server.llm.context import from_text
from voxframe.server.llm.extractive import NOTHING_FITS, ExtractiveAnswerer
from voxframe.server.llm.llm_request import LLMQuestion, LLMRequest
from voxframe.server.llm.reading import read

TALK = (
    "A: The museum was a rope factory. Who runs the museum?\nB: Ingrid Moe runs it with twenty volunteers. "
    "The director is the only one with a salary. A ticket is nine euros. The fish soup is nine euros, too."
)


class Saying:
    """A reader that says what it is told to, and judges that passages with given words answer."""

    encoder = None

    def __init__(self, said, answering="", answered=5.0):
        self.said = ShortAnswer(said, answered)
        self.answering = answering

    def answer(self, sentences, question):
        self.read = sentences
        return self.said

    def judge(self, passages, question):
        return [1.0 if self.answering in passage else -1.0 for passage in passages]


def quotations(said, question, **judging):
    """Return the sentences that are found in the talk with a reader that says something."""
    index = BM25Index([from_text(TALK)])
    return [match.line.text for match in read(index, Saying(said, **judging), question, index.evidence(question))]


@pytest.mark.parametrize(
    ("question", "said", "quoted"),
    [
        ("What was it before?", "A rope factory", "The museum was a rope factory."),
        ("Who runs the museum?", "Ingrid Moe", "Ingrid Moe runs it with twenty volunteers."),
        ("Who is in charge?", "Moe runs the museum", "Ingrid Moe runs it with twenty volunteers."),  # not the question
        ("What is the price of the soup?", "Nine euros", "The fish soup is nine euros, too."),  # the closer of two
        ("How many help her?", "20 volunteers", "Ingrid Moe runs it with twenty volunteers."),
        ("When does it close?", "", None),
        ("What is the director called?", "The director", None),  # says no more than the question
    ],
)
def test_the_sentence_of_a_short_answer_is_quoted(question, said, quoted):
    """It holds the words of the answer; an answer that only repeats the question quotes none."""
    assert quotations(said, question)[:1] == ([] if quoted is None else [quoted])


def test_an_answer_without_content_is_from_the_passage_that_is_judged_best():
    """One such as "Yes" names no sentence."""
    asked = "Is the fish soup nine euros?"
    assert quotations("It is.", asked, answering="salary")[0] == "A ticket is nine euros."
    assert quotations("It is.", asked, answering="no such word", answered=1.5) == []
    assert quotations("It is.", asked, answering="no such word", answered=1.7)


def test_an_answer_that_the_reader_judges_wrong_is_refused_if_it_doubts_it():
    """The judgements of the text and of the sentence with its neighbours are added; one may outweigh the other."""
    asked = "Who is the mayor?"
    assert quotations("Ingrid Moe", asked, answering="volunteers", answered=-1.0)
    assert quotations("Ingrid Moe", asked, answering="fish", answered=1.0)
    assert quotations("Ingrid Moe", asked, answering="fish", answered=-1.0) == []
    assert quotations("Ingrid Moe", asked, answering="volunteers", answered=-2.0) == []


def test_without_a_sentence_of_the_answer_the_one_that_is_judged_well_is_quoted():
    """The reader may have said it in other words; if it judges no sentence to answer, it has invented the answer."""
    asked = "When does it close?"
    assert quotations("At eighteen thirty", asked, answering="no such word", answered=1.0) == []
    found = quotations("At eighteen thirty", "When is there soup?", answering="fish")
    assert found[0] == "The fish soup is nine euros, too."


class Turned:
    """An encoder that finds one sentence close to every question, and the others far from it."""

    def encode(self, texts):
        return np.array([[1.0, 0.0] if "soup" in text or text.endswith("?") else [0.0, 1.0] for text in texts])


def test_the_encoder_of_the_reader_says_which_sentences_are_judged():
    """Of those that the reader reads; vectors of the other encoder are not taken for its own."""
    index, model = BM25Index([from_text(TALK)]), Saying("It is.", answering="soup")
    scores = index.closeness("Is the museum run by volunteers?", encoder.load())
    assert "soup" not in read(index, model, "Is the museum run by volunteers?", scores)[0].line.text
    model.encoder = Turned()
    assert "soup" in read(index, model, "Is the museum run by volunteers?", scores)[0].line.text


def test_the_second_sentence_is_the_one_judged_better():
    """It is quoted beside the sentence of the answer, because the reader may be wrong."""
    asked = "What does the ticket of the director cost?"
    assert quotations("Nine euros", asked)[0] == "A ticket is nine euros."
    second = {quotations("Nine euros", asked, answering=words)[1] for words in ("Ingrid", "fish")}
    assert second == {"The director is the only one with a salary.", "The fish soup is nine euros, too."}


def test_of_a_long_text_the_closest_sentences_are_read_in_their_order():
    """Questions about long recordings take no longer than about short ones."""
    text = "\n".join(f"A: Sentence number {number} is here." for number in range(200))
    index, model = BM25Index([from_text(f"{text}\nA: The ferry costs nine euros.\nB: So cheap.")]), Saying("Nine euros")
    found = read(index, model, "What does the ferry cost?", index.evidence("What does the ferry cost?"))
    assert found[0].line.text == "The ferry costs nine euros."
    assert len(model.read) == 48
    places = [[line.text for line in index.lines].index(text) for text in model.read]
    assert places == sorted(places)


def test_long_sentences_are_fewer():
    """A transcript without punctuation is read up to 1,000 words."""
    index, model = BM25Index([from_text("\n".join(f"A: {'word ' * 55}{number}." for number in range(60)))]), Saying("")
    assert read(index, model, "Which word?", index.evidence("Which word?")) == []
    assert len(model.read) == 1000 // 56


@pytest.fixture
def with_reader(monkeypatch):
    """The reader is used if its model is in the cache."""
    monkeypatch.delenv(reader.NO_READER_VARIABLE, raising=False)
    reader._usable.cache_clear()
    yield
    reader._usable.cache_clear()


@pytest.fixture
def real_reader(model_folder, with_reader):
    """The reader is used with its sentence encoder."""
    for name in models.ON_REQUEST:
        model_folder(name)


def test_without_its_model_there_is_no_reader(with_reader, tmp_path, monkeypatch):
    """Nothing is downloaded; a damaged copy gives a warning with the next step."""
    monkeypatch.setenv("VOXFRAME_MODEL_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert reader.find() is None
    with pytest.raises(ModelError, match=f"voxframe models get {models.READER}"):
        reader.load()
    models.derived_dir(models.READER).mkdir()
    with pytest.warns(UserWarning, match=f"closest in meaning: .*voxframe models get {models.READER}"):
        assert reader.find() is None
    assert reader.find() is None  # warned once


def test_without_its_encoder_the_reader_does_with_the_other_one(tmp_path, monkeypatch):
    """That there is a better one is said, with the next step."""
    monkeypatch.setenv("VOXFRAME_MODEL_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.warns(UserWarning, match=f"right less often: .*voxframe models get {models.READER_SENTENCES}"):
        assert reader._find_encoder() is None


@pytest.mark.long
@pytest.mark.timeout(1500)  # it may download and convert the model first
def test_the_reader_answers_and_refuses(real_reader):
    """The real model answers in a few words, always the same, and says that a text does not answer."""
    said = ["We opened in 1934. <|im_end|>", "The hardest part of the job is the fog.", "The ferry is red."]
    model = reader.load()
    assert {model.answer(said, "When did they open?").text for _ in range(3)} == {"1934"}
    fog = model.answer(said, "What is the most difficult thing?")
    mayor = model.answer(said, "What is the name of the mayor?")
    assert "fog" in fog.text.lower()
    assert mayor.text == ""
    assert fog.answered > 0 > mayor.answered
    judged = model.judge(said, "What is the most difficult thing?")
    assert max(judged) == judged[1] > 0
    assert model.judge(said[1:2], "What is the most difficult thing?") == pytest.approx(judged[1:2])


@pytest.mark.long
@pytest.mark.timeout(1500)  # it may download and convert the model first
def test_questions_about_a_talk(real_reader):
    """Most questions that were written before the method are answered right, and most others refused.

    That is a fifth of them, because each takes seconds; `python -m tests.benchmarks analyses` asks all of them.
    """
    right, whole, refused, others = meaning.score_questions("held", every=5)
    assert (whole, others) == (4, 2)
    assert right >= 3
    assert refused >= 1


@pytest.mark.long
@pytest.mark.timeout(1500)  # it may download and convert the model first
def test_the_service_names_the_reader(real_reader, tmp_path):
    """Responses to questions say which model found the sentences, which are quoted; other tasks do without it."""
    service = Service(tmp_path / "data", environment={reader.NO_READER_VARIABLE: "0"})
    try:
        body = {"input_text": TALK, "questions": [{"question": "Who is in charge?"}]}
        url = f"{service.url}/llm/v3/generate/question-answer"
        answer = service.session.post(url, json=body, timeout=300).json()  # the model is read first
        assert "Ingrid Moe runs it with twenty volunteers." in answer["response"][0]["answer"]
        assert answer["model"] == f"voxframe-extractive with {models.READER}"
        summary = service.request("POST", "/llm/v3/generate/summary", json={"input_text": TALK}).json()
        assert summary["model"] == "voxframe-extractive"
    finally:
        service.stop()


@pytest.mark.long
@pytest.mark.timeout(1500)  # it may download and convert the model first
def test_what_the_text_does_not_say_is_refused(real_reader):
    """The answer is the same message as without a reader."""
    asked = LLMRequest("question-answer", questions=(LLMQuestion("What is the capital of Mongolia?"),))
    said = ExtractiveAnswerer().answer(asked, [from_text(TALK)])
    assert said.response[0]["answer"] == NOTHING_FITS
