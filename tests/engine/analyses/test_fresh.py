"""Quality of the analyses on text by an author who had not seen them: not much below the measured figures."""

from tests.benchmarks import analyses as scores
from tests.benchmarks.labelled import FRESH

from voxframe_engine.analyses import chapters
from voxframe_engine.analyses.chapters import boundaries


def test_entities():
    """Nine of ten, and hardly any that are none."""
    score, covered = scores.score_entities(FRESH)
    assert score.precision >= 0.93
    assert score.recall >= 0.9
    assert covered >= 0.9


def test_sentiment():
    """Three sentences of four."""
    assert scores.score_sentiment("sentiment_fresh.txt")[0] >= 0.75


def test_topics():
    """Four passages of five get the right label first; small talk gets none; topics of one's own nearly as well."""
    first, _, empty = scores.score_topics(FRESH)
    assert first >= 0.8
    assert empty == 1
    assert scores.score_custom_topics(FRESH).f1 >= 0.78


def test_content_safety():
    """Labels are right, and two of three labelled passages are found."""
    score = scores.score_safety(FRESH)
    assert score.precision >= 0.9
    assert score.recall >= 0.65


def test_key_phrases():
    """Two of five."""
    precision, recall = scores.score_key_phrases(FRESH)
    assert precision >= 0.4
    assert recall >= 0.4


def test_chapters_and_summaries():
    """Changes of subject better than equal lengths; more than half of a summary belongs in it."""
    error, found = scores.score_chapters(FRESH, lambda texts, _: boundaries(texts))
    assert error < scores.score_chapters(FRESH, scores.equal)[0]
    assert found.precision >= 0.85
    assert scores.score_summaries(FRESH, chapters.scores) >= 0.55
