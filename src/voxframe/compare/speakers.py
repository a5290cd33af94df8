"""Compare transcripts whose speaker labels differ: cpWER and diarization error rate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import takes_frames
from voxframe.analysis.speaker_turns import TEXT, floats, require, row_speakers
from voxframe.compare.alignment import Spoken, by_recording, common, pairs
from voxframe.compare.normalization import DEFAULT, Normalization
from voxframe.errors import OptionError
from voxframe.measures import defines
from voxframe.validators import Boolean, Number, checked

_Matrix = npt.NDArray[np.float64]


@takes_frames
@defines("cpwer")
def cpwer(
    reference: Spoken,
    hypothesis: Spoken,
    *,
    on: str | None = None,
    by: Literal["recording", "speaker"] | None = None,
    normalize: Normalization = DEFAULT,
) -> pd.DataFrame:
    """Return the concatenated minimum-permutation word error rate (cpWER).

    The words of each speaker are joined, in the order of the rows. Each speaker of the reference is paired with at most
    one of the hypothesis such that the sum of edits is smallest. All words of a speaker without a partner are deletions
    or insertions. cpWER is (substitutions + deletions + insertions) / words of the reference: a fraction, 0 or more. It
    counts a word given to the wrong speaker as an error. Source: S. Watanabe et al., "CHiME-6 challenge", CHiME 2020.
    cpWER, words and the sum of edits equal those of meeteval for the same text. Alignments with the same number of
    edits can divide them differently into substitutions, deletions and insertions.

    Args:
        reference: The correct words with their speakers: rows with `text` and `speaker`, such as words or turns. Rows
            without a speaker count as one more speaker.
        hypothesis: The words to be judged, in the same form.
        on: Column of both that identifies the recording, as for `align`.
        by: "recording" for a row per recording, "speaker" for a row per recording and pair of speakers. None (default):
            one row, with edits and words summed over recordings.
        normalize: Names of rules from `voxframe.compare.RULES`, or a function from text to text.

    Returns:
        Columns: with `by`, `recording` str; with `by="speaker"`, `ref_speaker` and `hyp_speaker` str, null if there is
        no partner; then `words` (of the reference), `substitutions`, `deletions`, `insertions` int64, and `cpwer`
        float64, NaN if there are no words.

    Raises:
        TypeError: An argument is neither a DataFrame nor str.
        OptionError: A column or an argument is invalid.

    Example:
        >>> reference = pd.DataFrame({"speaker": ["A", "B", "A"], "text": ["good day", "hello", "all well"]})
        >>> hypothesis = pd.DataFrame({"speaker": ["2", "1", "1"], "text": ["good day", "hello", "all well"]})
        >>> cpwer(reference, hypothesis)[["words", "deletions", "insertions", "cpwer"]].values.tolist()
        [[5.0, 2.0, 2.0, 0.8]]
    """
    from rapidfuzz.distance import Levenshtein

    if by not in (None, "recording", "speaker"):
        raise OptionError(f"by must be None, 'recording' or 'speaker', not {by!r}")
    rows: list[tuple[Any, ...]] = []
    for ref, hyp in pairs(reference, hypothesis, on, normalize, "cpwer"):
        texts = [
            {name: side.tokens[code == n].tolist() for n, name in enumerate(names)}
            for side in (ref, hyp)
            for code, names in [pd.factorize(side.table["speaker"].to_numpy()[side.rows], use_na_sentinel=False)]
        ]
        speakers = [[*side] for side in texts]
        size = max(map(len, speakers))
        edits = np.array(
            [[Levenshtein.distance(_nth(texts[0], n), _nth(texts[1], m)) for m in range(size)] for n in range(size)],
            np.float64,
        ).reshape(size, size)
        for n, m in enumerate(_assignment(edits)):
            ref_words, heard = _nth(texts[0], n), _nth(texts[1], m)
            tags = [op.tag for op in Levenshtein.editops(ref_words, heard)]
            names = [side[at] if at < len(side) else None for side, at in zip(speakers, (n, m), strict=True)]
            counts = [tags.count(tag) for tag in ("replace", "delete", "insert")]
            rows.append((ref.recording, *names, len(ref_words), *counts))
    counted = ["words", "substitutions", "deletions", "insertions"]
    types = dict.fromkeys(["recording", "ref_speaker", "hyp_speaker"], TEXT) | dict.fromkeys(counted, "int64")
    table = pd.DataFrame(rows, columns=[*types]).astype(types)
    if by is None:
        table = table[counted].sum().to_frame().T
    elif by == "recording":
        table = table.groupby("recording", sort=False, dropna=False)[counted].sum().reset_index()
    edited = table["substitutions"] + table["deletions"] + table["insertions"]
    table["cpwer"] = edited / table["words"].where(table["words"] > 0)
    return table


@takes_frames
@defines("reference_s", "missed_s", "false_alarm_s", "confusion_s", "der")
def diarization_error_rate(
    reference: pd.DataFrame,
    hypothesis: pd.DataFrame,
    *,
    on: str | None = None,
    by: Literal["recording"] | None = None,
    collar_ms: float = 0,
    skip_overlap: bool = False,
) -> pd.DataFrame:
    """Return the diarization error rate (DER) and its parts.

    DER is (missed speech + false alarm + confusion) / speech of the reference: a fraction, 0 or more. All four are
    seconds; speech of two people at the same time counts twice. Speakers are paired one to one such that the time in
    which paired speakers speak together is longest. Source: NIST Rich Transcription 2009 evaluation plan. Values equal
    those of `pyannote.metrics.diarization.DiarizationErrorRate`, whose `collar` is twice `collar_ms`.

    Args:
        reference: Who spoke when: rows with `start_ms`, `end_ms` and `speaker`, such as those of
            `voxframe.load_utterances`. Rows of one speaker that touch or overlap are merged. Rows without times or
            speaker are left out.
        hypothesis: The rows to be judged, in the same form. With words instead of turns, pauses between words are not
            speech.
        on: Column of both that identifies the recording, as for `align`.
        by: "recording" for one row per recording. None (default): one row, with seconds summed over recordings.
        collar_ms: Time on each side of the boundaries of the reference that is not evaluated, in ms. Usual values: 0,
            and 250.
        skip_overlap: Do not evaluate times at which several speakers of the reference speak.

    Returns:
        Columns: with `by`, `recording` str; then float64 `reference_s` (of the reference), `missed_s`, `false_alarm_s`,
        `confusion_s` and `der`, NaN if there is no speech.

    Raises:
        TypeError: An argument is not a DataFrame.
        OptionError: A column or an argument is invalid.

    Example:
        >>> reference = pd.DataFrame({"speaker": ["A", "B"], "start_ms": [0, 6000], "end_ms": [6000, 10000]})
        >>> hypothesis = pd.DataFrame({"speaker": ["1", "2"], "start_ms": [0, 5000], "end_ms": [5000, 10000]})
        >>> diarization_error_rate(reference, hypothesis)[["reference_s", "confusion_s", "der"]].values.tolist()
        [[10.0, 1.0, 0.1]]
    """
    if by not in (None, "recording"):
        raise OptionError(f"by must be None or 'recording', not {by!r}")
    collar_ms = checked("collar_ms", collar_ms, Number(0, 1e9, "ms"))
    skip_overlap = checked("skip_overlap", skip_overlap, Boolean())
    sides = []
    for df in (reference, hypothesis):
        require(df, ("start_ms", "end_ms", "speaker"), "diarization_error_rate")
        sides.append(by_recording(df.assign(text=""), on, "diarization_error_rate"))
    rows = []
    for name in common(sides[0], sides[1], on):
        ref, hyp = (_spans(side[name]) for side in sides)
        rows.append((name, *_der(ref, hyp, collar_ms, skip_overlap=skip_overlap)))
    names = ["reference_s", "missed_s", "false_alarm_s", "confusion_s"]
    table = pd.DataFrame(rows, columns=["recording", *names]).astype({"recording": TEXT})
    if by is None:
        table = table[names].sum().to_frame().T
    wrong = table["missed_s"] + table["false_alarm_s"] + table["confusion_s"]
    table["der"] = wrong / table["reference_s"].where(table["reference_s"] > 0)
    return table


def _nth(texts: dict[Any, list[str]], n: int) -> list[str]:
    return [*texts.values()][n] if n < len(texts) else []


def _spans(df: pd.DataFrame) -> list[_Matrix]:
    """Return start and end of the speech of each speaker, in milliseconds."""
    start, end = floats(df["start_ms"]), floats(df["end_ms"])
    spans = pd.DataFrame({"speaker": row_speakers(df).array, "start_ms": start, "end_ms": end}).dropna()
    return [_merged(rows[["start_ms", "end_ms"]].to_numpy()) for _, rows in spans.groupby("speaker", sort=False)]


def _merged(spans: _Matrix) -> _Matrix:
    spans = spans[(spans[:, 1] > spans[:, 0])]
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    if not len(spans):
        return spans
    latest = np.maximum.accumulate(spans[:, 1])
    begins = np.flatnonzero(np.r_[True, spans[1:, 0] > latest[:-1]])
    return np.stack([spans[begins, 0], latest[np.r_[begins[1:] - 1, len(spans) - 1]]], axis=1)


def _der(ref: list[_Matrix], hyp: list[_Matrix], collar: float, *, skip_overlap: bool) -> Iterator[float]:
    """Yield seconds of speech, missed speech, false alarm and confusion."""
    edges = np.concatenate([np.zeros((0, 2)), *ref]).ravel()
    ignored = np.stack([edges - collar, edges + collar], axis=1) if collar else np.zeros((0, 2))
    points = np.unique(np.concatenate([ignored.ravel(), edges, *(spans.ravel() for spans in hyp)]))
    length = np.diff(points) / 1000
    ref_active, heard = (_active(spans, points) for spans in (ref, hyp))
    length = length * ~_active([_merged(ignored)], points)[0]
    if skip_overlap:
        length = length * (ref_active.sum(0) < 2)
    together = (ref_active * length) @ heard.T
    size = max(together.shape)
    padded = np.zeros((size, size))
    padded[: len(ref_active), : len(heard)] = together
    right = sum(
        (
            ref_active[n] & heard[m]
            for n, m in enumerate(_assignment(-padded))
            if n < len(ref_active) and m < len(heard)
        ),
        np.zeros(len(length), int),
    )
    speaking, detected = ref_active.sum(0), heard.sum(0)
    yield float((speaking * length).sum())
    yield float((np.maximum(speaking - detected, 0) * length).sum())
    yield float((np.maximum(detected - speaking, 0) * length).sum())
    yield float(((np.minimum(speaking, detected) - right) * length).sum())


def _active(speakers: list[_Matrix], points: _Matrix) -> npt.NDArray[np.bool_]:
    """Return a mask of the speakers who speak in each interval between two points."""
    active = np.zeros((len(speakers), max(0, len(points) - 1)), bool)
    for row, spans in zip(active, speakers, strict=True):
        step = np.zeros(len(points) + 1, int)
        np.add.at(step, np.searchsorted(points, spans[:, 0]), 1)
        np.add.at(step, np.searchsorted(points, spans[:, 1]), -1)
        row[:] = np.cumsum(step)[: len(row)] > 0
    return active


def _assignment(cost: _Matrix) -> list[int]:
    """Return the column of each row of a square matrix such that the sum of costs is smallest.

    Source: the Hungarian algorithm with potentials; R. Jonker and A. Volgenant, "A shortest augmenting path algorithm
    for dense and sparse linear assignment problems", Computing 38, 1987.

    Example:
        >>> _assignment(np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]]))
        [1, 0, 2]
    """
    size = len(cost)
    row_potential, column_potential = np.zeros(size + 1), np.zeros(size + 1)
    row_of = np.full(size + 1, -1)  # the last column is virtual: it holds the row that is being assigned
    for row in range(size):
        row_of[size], column = row, size
        distance, before = np.full(size, np.inf), np.full(size, size)
        used = np.zeros(size + 1, bool)
        while row_of[column] >= 0:
            used[column] = True
            at = row_of[column]
            reduced = cost[at] - row_potential[at] - column_potential[:size]
            closer = ~used[:size] & (reduced < distance)
            distance[closer], before[closer] = reduced[closer], column
            nearest = int(np.argmin(np.where(used[:size], np.inf, distance)))
            delta = distance[nearest]
            row_potential[row_of[used]] += delta
            column_potential[used] -= delta
            distance[~used[:size]] -= delta
            column = nearest
        while column != size:
            row_of[column] = row_of[before[column]]
            column = before[column]
    columns = np.empty(size, int)
    columns[row_of[:size]] = np.arange(size)
    return [int(n) for n in columns]
