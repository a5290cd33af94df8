"""cpWER and diarization error rate against hand-worked cases, meeteval and pyannote.metrics."""

import itertools

import numpy as np
import pandas as pd
import pytest
from tests.compare.test_alignment import noisy

from voxframe.compare import cpwer, diarization_error_rate
from voxframe.compare.error_rates import _assignment
from voxframe.errors import OptionError

_TALK = pd.DataFrame(
    {
        "speaker": ["A", "B", "A", "C"],
        "text": ["how are you", "fine thanks", "good to hear", "hello"],
        "start_ms": [0, 3_000, 5_000, 8_000],
        "end_ms": [3_000, 5_000, 8_000, 9_000],
    }
)


def _spoken(seed: int, speakers: int) -> pd.DataFrame:
    """Return turns with random speakers and times, of which some overlap; no speaker overlaps with itself."""
    drawn = np.random.default_rng(seed)
    rows = []
    for speaker in range(speakers):
        ends = np.cumsum(drawn.integers(100, 4_000, 20))
        rows += [(f"s{speaker}", start, end) for start, end in ends.reshape(-1, 2).tolist()]
    spans = pd.DataFrame(rows, columns=["speaker", "start_ms", "end_ms"]).sort_values("start_ms", ignore_index=True)
    words = [f"w{n}" for n in drawn.integers(0, 30, 6 * len(spans))]
    return spans.assign(text=[" ".join(noisy(words[6 * n : 6 * n + 6], seed)) for n in range(len(spans))])


def test_a_speaker_without_a_partner_is_all_errors() -> None:
    """Labels do not matter; the words of a missing or additional speaker are deletions or insertions."""
    heard = _TALK.iloc[:3].assign(speaker=["2", "1", "2"])
    table = cpwer(_TALK, heard, by="speaker")
    assert table.drop(columns=["recording"]).fillna("").values.tolist() == [
        ["A", "2", 6, 0, 0, 0, 0],
        ["B", "1", 2, 0, 0, 0, 0],
        ["C", "", 1, 0, 1, 0, 1],
    ]
    assert cpwer(_TALK, heard)["cpwer"].to_list() == [1 / 9]
    assert cpwer(heard, _TALK)[["words", "insertions"]].values.tolist() == [[8, 1]]
    assert cpwer(heard.iloc[:0], heard.iloc[:0])["cpwer"].isna().all()


def test_recordings_add_up() -> None:
    """Edits and words are summed over recordings before they are divided."""
    two = pd.concat([_TALK.assign(take="x"), _TALK.assign(take="y")])
    heard = two.assign(text=[*_TALK["text"], "", "", "", ""])
    assert cpwer(two, heard, on="take", by="recording")["cpwer"].to_list() == [0.0, 1.0]
    assert cpwer(two, heard, on="take")["cpwer"].to_list() == [0.5]
    for by in (None, "recording", "speaker"):
        counts = cpwer(two, heard, on="take", by=by)[["words", "substitutions", "deletions", "insertions"]]
        assert (counts.dtypes == "int64").all()


def test_parts_of_the_diarization_error() -> None:
    """Missed speech, false alarm and confusion of a hand-worked case, with and without overlap and collar."""
    reference = pd.DataFrame(
        {"speaker": ["A", "B"], "start_ms": [0, 4_000], "end_ms": [5_000, 10_000]},
    )
    hypothesis = pd.DataFrame(
        {"speaker": ["x", "y", "x"], "start_ms": [0, 6_000, 10_000], "end_ms": [6_000, 10_000, 11_000]}
    )
    rates = diarization_error_rate(reference, hypothesis).iloc[0]
    assert rates.to_list() == pytest.approx([11.0, 1.0, 1.0, 1.0, 3 / 11])
    rates = diarization_error_rate(reference, hypothesis, skip_overlap=True).iloc[0]
    assert rates.to_list() == pytest.approx([9.0, 0.0, 1.0, 1.0, 2 / 9])
    rates = diarization_error_rate(reference, hypothesis, collar_ms=500).iloc[0]
    assert rates.to_list() == pytest.approx([7.0, 0.0, 0.5, 0.5, 1 / 7])


def test_recordings_of_a_diarization() -> None:
    """Recordings have a row each with `by`, and are summed otherwise."""
    two = pd.concat([_TALK.assign(take="x"), _TALK.assign(take="y")])
    heard = two.assign(speaker=["a", "b", "a", "c", None, None, None, None])
    rates = diarization_error_rate(two, heard, on="take", by="recording")
    assert rates[["recording", "der"]].values.tolist() == [["x", 0.0], ["y", 1.0]]
    assert diarization_error_rate(two, heard, on="take")["der"].to_list() == [0.5]


def test_invalid_arguments_are_named() -> None:
    """Values that are not allowed are errors."""
    with pytest.raises(OptionError, match="by must be"):
        cpwer(_TALK, _TALK, by="minute")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"collar_ms must be a number from 0 .*, got -1"):
        diarization_error_rate(_TALK, _TALK, collar_ms=-1)
    with pytest.raises(OptionError, match=r"collar_ms must be a number from 0 .*, got 'x'"):
        diarization_error_rate(_TALK, _TALK, collar_ms="x")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="skip_overlap must be True or False, got 'no'"):
        diarization_error_rate(_TALK, _TALK, skip_overlap="no")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lacks speaker"):
        diarization_error_rate(_TALK.drop(columns="speaker"), _TALK)


@pytest.mark.parametrize("seed", range(20))
def test_the_assignment_is_the_cheapest(seed: int) -> None:
    """No permutation of up to six columns costs less."""
    drawn = np.random.default_rng(seed)
    cost = drawn.integers(-5, 9, (seed % 6 + 1,) * 2).astype(float)
    rows = range(len(cost))
    best = min(sum(cost[row, columns[row]] for row in rows) for columns in itertools.permutations(rows))
    assert sum(cost[row, column] for row, column in enumerate(_assignment(cost))) == best


@pytest.mark.parametrize(
    ("seed", "speakers", "found", "errors", "words"),
    [(0, 1, 1, 0, 60), (1, 3, 2, 158, 180), (2, 2, 4, 302, 140), (3, 5, 5, 50, 300)],
)
def test_cpwer_equals_that_of_meeteval(seed: int, speakers: int, found: int, errors: int, words: int) -> None:
    """Words, edits and cpWER are those of meeteval, also if the numbers of speakers differ.

    meeteval is built from source, which takes minutes; its results (version 0.4.3, `wer.cp_word_error_rate`) are here.
    """
    reference, hypothesis = _spoken(seed, speakers), _spoken(seed, found)
    hypothesis["text"] = [" ".join(noisy(text.split(), seed)) for text in hypothesis["text"]]
    rates = cpwer(reference, hypothesis).iloc[0]
    assert (rates["words"], sum(rates[["substitutions", "deletions", "insertions"]])) == (words, errors)
    assert rates["cpwer"] == errors / words


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:'uem' was approximated")
@pytest.mark.parametrize("collar", [0, 250])
@pytest.mark.parametrize("skip_overlap", [False, True])
@pytest.mark.parametrize(("seed", "speakers", "found"), [(0, 1, 1), (1, 3, 2), (2, 2, 4), (3, 5, 5)])
def test_the_diarization_error_equals_that_of_pyannote(
    seed: int, speakers: int, found: int, collar: int, skip_overlap: bool
) -> None:
    """All parts of the diarization error rate equal those of pyannote.metrics."""
    from pyannote.core import Annotation, Segment
    from pyannote.metrics.diarization import DiarizationErrorRate

    sides = _spoken(seed, speakers), _spoken(seed + 50, found)
    annotations = []
    for side in sides:
        annotation = Annotation()
        for track, row in enumerate(side.itertuples()):
            annotation[Segment(row.start_ms / 1000, row.end_ms / 1000), track] = row.speaker
        annotations.append(annotation)
    metric = DiarizationErrorRate(collar=2 * collar / 1000, skip_overlap=skip_overlap)
    expected = metric(*annotations, detailed=True)
    rates = diarization_error_rate(*sides, collar_ms=collar, skip_overlap=skip_overlap).iloc[0]
    parts = ["total", "missed detection", "false alarm", "confusion", metric.name]
    assert rates.to_list() == pytest.approx([expected[part] for part in parts])
