"""Key phrases, with counts, ranks and times."""

import pytest
from tests.benchmarks import analyses as scores
from tests.benchmarks import labelled

from voxframe_engine.analyses.key_phrases import key_phrases

TALK = " ".join(sentence for part in labelled.talks("dev")[0].sections for sentence in part.sentences)


@pytest.mark.parametrize(("half", "precise", "found"), [("dev", 0.6, 0.7), ("held", 0.6, 0.65)])
def test_the_labelled_phrases_are_among_the_first(half, precise, found):
    """Precision of the first ten, and recall, stay above what was measured, less a little."""
    precision, recall = scores.score_key_phrases(half)
    assert precision >= precise
    assert recall >= found


def test_times_point_at_the_words():
    """Each occurrence begins with its first word and ends with its last, and there are as many as the count says."""
    said = labelled.words(TALK)
    plain = [word["text"].lower().strip(".,") for word in said]
    for result in key_phrases(labelled.sentences(TALK))["results"]:
        length = len(result["text"].split())
        assert result["count"] == len(result["timestamps"])
        for span in result["timestamps"]:
            first = next(at for at, word in enumerate(said) if word["start"] == span["start"])
            assert said[first + length - 1]["end"] == span["end"]
        assert plain[first : first + length][-1][:4] == result["text"].split()[-1].lower()[:4]


def test_a_phrase_is_counted_in_all_its_forms():
    """The phrases "tomato plants" and "the tomato plant" are one phrase with two occurrences."""
    text = "The tomato plants were tall. Nobody watered the tomato plant."
    first = key_phrases(labelled.sentences(text))["results"][0]
    assert (first["text"], first["count"]) == ("tomato plants", 2)


def test_no_two_phrases_say_the_same_and_none_begins_with_a_small_word():
    """No phrase holds another, and none begins or ends with an article, a number word or a filler."""
    texts = [result["text"].lower().split() for result in key_phrases(labelled.sentences(TALK))["results"]]
    assert len(texts) > 5
    for at, words in enumerate(texts):
        assert not {words[0], words[-1]} & {
            "the",
            "a",
            "two",
            "every",
            "most",
            "well",
            "you",
            "really",
            "thing",
            "their",
        }
        assert not any(set(words) <= set(other) for other in texts[:at] + texts[at + 1 :])


def test_ranks_fall_and_sum_to_one():
    """The best phrase is first."""
    ranks = [result["rank"] for result in key_phrases(labelled.sentences(TALK))["results"]]
    assert ranks == sorted(ranks, reverse=True)
    assert sum(ranks) == pytest.approx(1, abs=0.08)


def test_small_talk_has_no_key_phrases():
    """Nothing is better than something that says nothing."""
    assert key_phrases(labelled.sentences("Yes, I know. Well, you know what I mean."))["results"] == []


def test_small_words_with_a_capital_are_no_names():
    """A first person within a sentence is no phrase, and every phrase has a share."""
    results = key_phrases(labelled.sentences("Hi I'm late for the concert. Well I'm sorry about it."))["results"]
    assert "concert" in [result["text"] for result in results]
    assert not [result for result in results if "I'm" in result["text"] or result["rank"] <= 0]
