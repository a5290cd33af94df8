import pandas as pd
import pytest

import voxframe
from voxframe import plots
from voxframe.errors import OptionError


def words(transcript_id: str, text: str, speakers: str = "A") -> pd.DataFrame:
    """One word per second, with speakers in turns."""
    said = [
        {"text": word, "start": 1000 * n, "end": 1000 * n + 500, "speaker": speakers[n % len(speakers)]}
        for n, word in enumerate(text.split())
    ]
    return voxframe.load_words({"id": transcript_id, "words": said})


ONE = words("a", "The tree, the TREES; a river bank. The tree.", "AB")


def strokes(ax, n: int) -> list[float]:
    return [segment[0][0] for segment in ax.collections[n].get_segments()]


def lanes(ax) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def test_each_query_has_a_lane_with_its_occurrences():
    """In one transcript, each query has a lane, also one without matches; phrases and wildcards are found."""
    ax = plots.dispersion(ONE, ["tree", "tree*", "river bank", "lake"])
    assert lanes(ax) == ["tree", "tree*", "river bank", "lake"]
    assert [strokes(ax, n) for n in range(4)] == [[1, 8], [1, 3, 8], [5], []]
    assert ax.get_legend() is None
    assert ax.get_xlim() == (0, 8.5)


def test_transcripts_have_lanes_and_queries_colours():
    """For several transcripts, queries share a lane without overlap and have a legend; a lane ends with its words."""
    ax = plots.dispersion(pd.concat([ONE, words("b", "A river. A tree.")]), ["tree", "river"])
    assert lanes(ax) == ["a", "b"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["tree", "river"]
    tree, river, line = ax.collections
    assert strokes(ax, 0) == [1, 8, 3]
    ends = [sorted({float(y) for segment in of.get_segments() for _, y in segment}) for of in (tree, river)]
    assert ends[0] == pytest.approx([-0.4, 0.0, 0.6, 1.0])
    assert ends[1] == pytest.approx([0.0, 0.4, 1.0, 1.4])
    assert [segment[-1][0] for segment in line.get_segments()] == [8.5, 3.5]


def test_search_results_are_drawn(tmp_path):
    """Search results are drawn as they are, with a lane for each recording, also for one without a match."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    for name, text in (("t1", "so it goes"), ("t2", "it is"), ("t3", "no")):
        said = ", ".join(
            f'{{"text": "{word}", "start": {n * 1000}, "end": {n * 1000 + 9}}}' for n, word in enumerate(text.split())
        )
        (tmp_path / f"call {name}.json").write_text(
            f'{{"id": "{name}", "audio_duration": 60, "words": [{said}]}}', encoding="utf-8"
        )
    corpus.add(tmp_path / "call *.json")
    ax = plots.dispersion(corpus.search("it"), transcripts=corpus.table("transcripts"))
    assert lanes(ax) == ["call t1", "call t2", "call t3"]
    assert strokes(ax, 0) == [1, 0]
    assert ax.get_xlim() == (0, 60)
    assert lanes(corpus.search(["it", "is"], ids="t2").vox.plot_dispersion()) == ["it", "is"]


def test_lanes_can_be_speakers():
    """`by="speaker"` draws one lane per speaker."""
    ax = plots.dispersion(ONE, ["the"], by="speaker")
    assert lanes(ax) == ["A", "B"]
    assert [(x, round(y + 0.4)) for (x, y), _ in ax.collections[0].get_segments()] == [(0, 0), (2, 0), (7, 1)]


def test_any_column_may_have_lanes_over_several_transcripts():
    """Lanes of several transcripts can be the values of any column, such as joined names."""
    found = pd.DataFrame({"term": "it", "transcript_id": ["a", "b"], "start_ms": [1000, 2000], "name": ["x", "y"]})
    ax = plots.dispersion(found, by="name")
    assert lanes(ax) == ["x", "y"]
    assert [tuple(segment[0].round(1)) for segment in ax.collections[0].get_segments()] == [(1.0, -0.4), (2.0, 0.6)]


def test_very_many_occurrences_are_few_strokes():
    """A hundred thousand occurrences become at most four thousand strokes over the same time."""
    found = pd.DataFrame({"term": "uh", "start_ms": range(0, 10_000_000, 100)})
    at = strokes(plots.dispersion(found), 0)
    assert 3_000 < len(at) <= 4_001
    assert at[0] < 5
    assert at[-1] > 9_990


def test_invalid_input_is_refused_with_a_next_step():
    """Words without queries, a missing column, and a query without a word raise errors."""
    with pytest.raises(ValueError, match="needs queries"):
        plots.dispersion(ONE)
    with pytest.raises(OptionError, match="no word"):
        plots.dispersion(ONE, "...")
    many = pd.DataFrame({"transcript_id": [f"t{n}" for n in range(201)], "term": "a", "start_ms": 0})
    with pytest.raises(ValueError, match="201 lanes are too many, at most 200 can be shown"):
        plots.dispersion(many)
    assert len(lanes(plots.dispersion(many.head(200)))) > 1


def test_a_repeated_query_has_one_lane():
    """A query that is given twice is drawn once."""
    assert lanes(plots.dispersion(ONE, ["tree", "tree"])) == ["tree"]


def test_terms_and_speakers_of_many_transcripts_have_lanes():
    """Lanes of terms or speakers are those of each transcript, in the order of transcripts."""
    two = pd.concat([ONE, ONE.assign(transcript_id="b", recording="b")])
    ax = plots.dispersion(two, ["a", "zzz"], by="term")
    ids = two["transcript_id"].unique()
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [f"{i} · {q}" for i in ids for q in ("a", "zzz")]
    many = plots.dispersion(two, ["a"], by="speaker")
    assert [tick.get_text() for tick in many.get_yticklabels()] == [f"{i} · A" for i in ids]
