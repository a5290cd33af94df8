"""The model that finds the sentences of a text that answer a question."""

import numpy as np
import pytest
from tests.benchmarks import meaning

from voxframe_engine.answers import Line, LLMQuestion, LLMRequest, Source, from_text
from voxframe_engine.answers.extractive import NOTHING_FITS, ExtractiveAnswerer
from voxframe_engine.answers.ranking import AnswerModel, BM25Index, EncodedText, find_model


class Counting:
    """An encoder that counts the sentences it is given. Each token gets a vector of its own, without context."""

    def __init__(self) -> None:
        self.count = 0

    def tokens(self, texts):
        self.count += len(texts)
        return [[1000 + sum(map(ord, word)) for word in text.split()] for text in texts]

    def states(self, tokens):
        for at, row in reversed([*enumerate(tokens)]):
            yield at, np.array([np.random.default_rng(number).normal(size=384) for number in row], np.float32)


@pytest.fixture
def stub():
    """The model with its weights, on an encoder whose vectors have no context."""
    return AnswerModel(Counting())


def compared(model, question, *sources):
    """The scores of the sentences of sources, and that of none."""
    index = BM25Index(sources)
    texts = [line.text for line in index.lines]
    return EncodedText(model, texts, index.is_first, index.is_question).compare(question, index.shared(question))


def slowly(model, question, sentences, firsts):
    """Compare token by token, as the formula says."""
    weights = model._weights
    questions = [one.endswith("?") for one in sentences]

    def unit(vector):
        return vector / np.sqrt((vector * vector).sum())

    def encoded(text):
        ((_, states),) = Counting().states([[101, *Counting().tokens([text])[0], 102]])
        return states

    asked = encoded(question)
    importance = [np.exp(state @ weights["importance"]) for state in asked]
    own = []
    for sentence in sentences:
        said = encoded(sentence)[1:-1]
        best = 0.0
        for state, weight in zip(asked, importance, strict=True):
            cosines = [unit(weights["projection"] @ state) @ unit(weights["projection"] @ other) for other in said]
            best += weight / sum(importance) * max(cosines)
        close = unit(asked.mean(axis=0)) @ unit(said.mean(axis=0))
        own.append(weights["parts"] @ [best, close])
    scores = []
    for at, value in enumerate(own):
        before = value if firsts[at] else own[at - 1]
        after = value if at + 1 == len(own) or firsts[at + 1] else own[at + 1]
        by_before, by_after, by_question, by_form = weights["beside"]
        share = by_before + (by_question if not firsts[at] and questions[at - 1] else 0)
        scores.append(value + share * (before - value) + by_after * (after - value) + by_form * questions[at])
    return scores, asked[0] @ weights["nothing"][:-1] + weights["nothing"][-1]


def test_scores_are_those_of_the_formula(stub):
    """Scores of the sentences of two sources, in several blocks, equal those of a token-by-token computation."""
    chance = np.random.default_rng(1)
    words = "it is open and who runs the tower now my aunt does ninety steps red door".split()
    sentences = [" ".join(chance.choice(words, chance.integers(1, 9))) + "?" * (n % 3 == 0) for n in range(30)]
    scores, nothing = compared(
        stub, "who runs the tower", Source([*map(Line, sentences[:19])]), Source([*map(Line, sentences[19:])])
    )
    expected, none = slowly(stub, "who runs the tower", sentences, [at in (0, 19) for at in range(30)])
    assert scores == pytest.approx(expected, abs=0.03)  # half precision
    assert nothing == pytest.approx(none, abs=1e-3)


def test_a_note_and_a_new_source_end_the_context():
    """Sentences have the same scores whether or not another source or passage stands before them."""
    model, text = find_model(), "The tower is old.\nIt leans to the left."
    alone, _ = compared(model, "How old is the tower?", from_text(text))
    second, _ = compared(model, "How old is the tower?", from_text("Is it open?\nNo."), from_text(text))
    passage, _ = compared(model, "How old is the tower?", from_text(f"Is it open?\nNo.\n[2 call, 0:10]\n{text}"))
    assert second[2:] == pytest.approx(alone, abs=0.3)  # 8-bit weights
    assert passage == pytest.approx(second, abs=0.3)


def test_sentences_are_encoded_once_for_several_questions(stub):
    """A second question about a text encodes only the question."""
    text = EncodedText(stub, [f"Sentence {number}." for number in range(30)], np.arange(30) == 0, np.zeros(30, bool))
    text.compare("What is the third?", np.zeros(30))
    before = stub._encoder.count
    text.compare("What is the fourth?", np.zeros(30))
    assert stub._encoder.count == before + 1


def test_of_a_very_long_text_the_blocks_with_words_of_the_question_are_encoded(stub):
    """Of 5,000 sentences, at most 4,000 and those before their blocks are encoded; the right one is among them."""
    lines = [Line(f"Number {number} is here.") for number in range(5000)]
    lines[4500] = Line("The heron nests by the weir.")
    scores, _ = compared(stub, "Where does the heron nest?", Source(lines))
    assert np.isfinite(scores[4500])
    assert np.isfinite(scores).sum() == 4000
    assert stub._encoder.count < 4000 * 1.3 + 2


def test_odd_texts_are_compared():
    """Empty sentences never win; signs, a sentence of a thousand words and an endless question are no problem."""
    model = find_model()
    texts = ["", "…", "word " * 1000, "\u200b", "It costs nine euros.", *["long " * 90] * 12]
    scores, _ = compared(model, "What does it cost?", Source([*map(Line, texts)]))
    assert scores.argmax() == texts.index("It costs nine euros.")
    assert [text for text, score in zip(texts, scores, strict=True) if score == -np.inf] == ["", "\u200b"]
    endless, nothing = compared(model, "What " * 500, Source([*map(Line, texts)]))
    assert np.isfinite(endless).sum() == len(texts) - 2
    assert np.isfinite(nothing)
    assert len(compared(model, "What?", Source([]))[0]) == 0


def test_the_end_of_a_long_sentence_is_read():
    """Of text without punctuation, which is cut into pieces of 60 words, the right piece is found by its last words."""
    filler = "and then we went on along the path and talked about this and that " * 4
    pieces = [
        f"{filler}{end}".split() for end in ("we had tea", "the heron nests by the weir", "it rained", *["so"] * 7)
    ]
    lines = [Line(" ".join(words[-60:])) for words in pieces]
    scores, _ = compared(find_model(), "Where does the heron nest?", Source(lines))
    assert scores.argmax() == 1


def test_the_context_of_a_sentence_counts():
    """A sentence with "it" answers a question better if the sentence before it names what the question is about."""
    mill, ship = (f"The {name} was built by Jan Vos.\nIt has six sails." for name in ("mill", "ship"))
    (_, about_it), nothing = compared(find_model(), "What does the mill have?", from_text(mill))
    (_, about_another), _ = compared(find_model(), "What does the mill have?", from_text(ship))
    assert about_it - nothing > -1.5 > about_another - nothing


def test_answers_of_a_talk_that_was_not_used_for_training():
    """At least 17 of 20 paraphrased questions are right, and at least 8 of 10 that it does not answer are refused."""
    right, whole, refused, others = meaning.score_questions("held")
    assert (whole, others) == (20, 10)
    assert right >= 17
    assert refused >= 8


def reply(text, question, **more):
    """Return the answer to a question about a text."""
    asked = LLMRequest("question-answer", questions=(LLMQuestion(question, **more),))
    return ExtractiveAnswerer().answer(asked, [from_text(text)]).response[0]["answer"]


MUSEUM = """A: The museum has a ship from Bergen.
A: It was built in 1881.
B: Is the museum open in winter?
A: No, we are closed from November to March.
B: How much is a ticket?
A: It is nine euros.
B: And the fish soup?
A: Eight euros, and it is famous."""


def test_a_question_of_the_text_is_no_answer():
    """A question that is asked in the text, too, gets the sentence after it."""
    assert "closed from November" in reply(MUSEUM, "Is the museum open in winter?")
    assert reply("A: Is it far?\nB: Who knows?", "Is it far?") == NOTHING_FITS


def test_a_context_does_not_hide_the_question():
    """An answer is the same with a long context; the context counts if the question has no words of its own."""
    context = "This is a conversation at the counter of a museum by the sea. " * 20
    for question in ("How much is a ticket?", "Is the museum open in winter?"):
        assert reply(MUSEUM, question, context=context) == reply(MUSEUM, question) != NOTHING_FITS
    assert "Eight euros" in reply(MUSEUM, "How much is it?", context="It is about the fish soup.")
    assert reply(MUSEUM, "What is the capital of Mongolia?", context=MUSEUM) == NOTHING_FITS


def test_a_number_of_sentences_is_a_maximum():
    """Only sentences that answer the question are quoted, even if more are wanted."""
    said = reply(MUSEUM, "When was the ship built?", answer_format="5 bullet points")
    assert "- It was built in 1881." in said.splitlines()
    assert "soup" not in said


def test_without_the_model_words_are_compared(tmp_path, monkeypatch):
    """Questions are answered by common words, after one warning that says how to get the model."""
    for name in ("VOXFRAME_MODEL_CACHE", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("VOXFRAME_OFFLINE", "1")
    find_model.cache_clear()
    try:
        source = from_text("A: The ferry costs nine euros.")
        asked = LLMRequest("question-answer", questions=(LLMQuestion("What does the ferry cost?"),) * 2)
        with pytest.warns(UserWarning, match="voxframe models get all-MiniLM-L6-v2") as told:
            answers = ExtractiveAnswerer().answer(asked, [source]).response
        assert {one["answer"] for one in answers} == {"The ferry costs nine euros."}
        assert len(told) == 1
    finally:
        find_model.cache_clear()
