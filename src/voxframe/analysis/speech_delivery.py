"""Manner of speaking: pace, pauses, fillers, questions and low confidence."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import TEXT, takes_frames
from voxframe._text import join_words
from voxframe.analysis.grouping import By, ratio, with_keys
from voxframe.analysis.rows import (
    MILLISECONDS,
    floats,
    keeps_recordings,
    require,
    require_words,
    uses,
    with_times,
    words_in_rows,
)
from voxframe.analysis.search_terms import find_words
from voxframe.dictionary import defines
from voxframe.validators import Number, checked

#: English filled pauses. Source: H. Clark and J. Fox Tree, "Using uh and um in spontaneous speaking", Cognition 84,
#: 2002.
FILLERS = ("uh", "um", "uhm", "er", "erm", "hmm")
#: Silences from this length (ms) are pauses. Source: F. Goldman-Eisler, "Psycholinguistics: experiments in spontaneous
#: speech", 1968.
SHORTEST_PAUSE_MS = 250
_WORDS = ("transcript_id", "text", "start_ms", "end_ms")
_CLOSING = "\"'\u201d\u2019\u00bb)]"  # quotation marks and brackets after the mark that ends a sentence
_ASKS = ("?", "\uff1f", "\u061f")  # also of Chinese and Arabic
_ENDS = (*_ASKS, ".", "!", "\u3002", "\uff01")
#: Columns of `delivery`.
_DELIVERY = tuple(
    "words articulation_s pause_s words_per_minute articulation_wpm pauses pauses_per_minute mean_pause_ms fillers "
    "fillers_per_100 questions questions_per_100 low_share".split()
)
#: Those that rest on the pauses between words.
_OF_PAUSES = ("articulation_s", "pause_s", "articulation_wpm", "pauses", "pauses_per_minute", "mean_pause_ms")


@takes_frames
@keeps_recordings
@uses(
    "start_ms", "end_ms", needs=("text",), empty="no silence between words of one speaker is as long as min_ms",
    pauses=True,
)  # fmt: skip
def pauses(words: pd.DataFrame, *, min_ms: float = SHORTEST_PAUSE_MS) -> pd.DataFrame:
    """Return the silent pauses of speakers.

    Definition: silence of at least `min_ms` between two words that follow each other and have the same speaker, while
    nobody else speaks. Silence before a change of speaker is a gap: see `turn_taking`. Unit: ms. Denominator: none;
    `delivery` gives pauses per minute. Source: F. Goldman-Eisler, "Psycholinguistics: experiments in spontaneous
    speech", 1968 (250 ms); M. Heldner and J. Edlund, "Pauses, gaps and overlaps in conversations", Journal of Phonetics
    38, 2010 (pauses and gaps).

    Args:
        words: Words, as returned by `voxframe.load_words`.
        min_ms: Shortest pause, in ms.

    Returns:
        One row per pause. Columns: `transcript_id`, `speaker` str, `start_ms`, `end_ms`, `pause_ms` int64, `before`,
        `after` str (the words around it).

    Raises:
        ValueError: A column is missing.
        OptionError: The rows are turns, not words, or `min_ms` is not allowed.

    Example:
        >>> words = pd.DataFrame({"transcript_id": "t", "speaker": "A", "text": ["Well", "no"],
        ...                       "start_ms": [0, 900], "end_ms": [400, 1200]})
        >>> pauses(words)[["before", "after", "pause_ms"]].values.tolist()
        [['Well', 'no', 500]]
    """
    min_ms = checked("min_ms", min_ms, MILLISECONDS)
    rows, new_turn, reach = _in_order(words, "pauses")
    silence = _silence(rows, new_turn, reach, min_ms)
    at = np.flatnonzero(silence)
    return pd.DataFrame(
        {
            "transcript_id": rows["transcript_id"].array[at],
            "speaker": rows["speaker"].array[at],
            "start_ms": reach[at - 1].astype(np.int64),
            "end_ms": floats(rows["start_ms"])[at].astype(np.int64),
            "pause_ms": silence[at].astype(np.int64),
            "before": rows["text"].array[at - 1],
            "after": rows["text"].array[at],
        }
    )


@takes_frames
@keeps_recordings
@uses("start_ms", "end_ms", needs=("text",), empty="no sentence ends with a question mark")
def questions(words: pd.DataFrame) -> pd.DataFrame:
    """Return the sentences that end with a question mark.

    Definition: a sentence ends with ".", "?" or "!" or with the turn. What is a question is decided by the punctuation
    of the transcript, so rhetorical questions count and questions without a mark do not. Unit: sentences. Denominator:
    none; `delivery` gives questions per 100 words.

    Source: the rule is our own. It is simpler than that of T. Stivers and N. Enfield, "A coding scheme for
    question-response sequences in conversation", Journal of Pragmatics 42, 2010, which needs a listener.

    Args:
        words: Words, as returned by `voxframe.load_words`.

    Returns:
        One row per question. Columns: `transcript_id`, `speaker`, `text` str, `start_ms`, `end_ms`, `words` int64.

    Raises:
        ValueError: A column is missing.
        OptionError: The rows are turns, not words.

    Example:
        >>> words = pd.DataFrame({"transcript_id": "t", "speaker": "A", "text": ["Well.", "Is", "it?"],
        ...                       "start_ms": [0, 500, 800], "end_ms": [400, 700, 1000]})
        >>> questions(words)[["text", "start_ms"]].values.tolist()
        [['Is it?', 500]]
    """
    rows, new_turn, _ = _in_order(words, "questions")
    text = rows["text"].fillna("").astype(object).str.rstrip(_CLOSING)
    closed = text.str.endswith(_ENDS).to_numpy(bool)
    begins = new_turn | np.r_[True, closed[:-1]][: len(rows)]
    table = _runs(rows, begins)
    asked = text.str.endswith(_ASKS).to_numpy(bool)
    last = np.r_[np.flatnonzero(begins)[1:], len(rows)][: len(table)] - 1
    result: pd.DataFrame = table.drop(columns="mean_confidence")[asked[last]]
    return result.reset_index(drop=True)


@takes_frames
@defines("mean_confidence")
@keeps_recordings
@uses("confidence", empty="no word has a confidence under below=")
def low_confidence(words: pd.DataFrame, *, below: float = 0.5) -> pd.DataFrame:
    """Return runs of words whose recognition confidence is low, to check them first.

    Definition: words of one turn that follow each other and have a confidence (0-1) under `below`. Unit: words.
    Denominator: none; `delivery` gives the share of such words. Source: H. Jiang, "Confidence measures for speech
    recognition: a survey", Speech Communication 45, 2005.

    Args:
        words: Words, as returned by `voxframe.load_words`.
        below: Upper limit of a low confidence, 0-1.

    Returns:
        One row per run. Columns: `transcript_id`, `speaker`, `text` str, `start_ms`, `end_ms`, `words` int64,
        `mean_confidence` float64 (0-1).

    Raises:
        ValueError: A column is missing.
        OptionError: The rows are turns, not words, or `below` is not a number from 0 to 1.

    Example:
        >>> words = pd.DataFrame({"transcript_id": "t", "speaker": "A", "text": ["in", "Llan", "fair"],
        ...                       "start_ms": [0, 500, 800], "end_ms": [400, 700, 1000], "confidence": [0.9, 0.2, 0.4]})
        >>> low_confidence(words)[["text", "words"]].values.tolist()
        [['Llan fair', 2]]
    """
    require(words, (*_WORDS, "confidence"), "low_confidence")
    below = checked("below", below, Number(0, 1))
    rows, new_turn, _ = _in_order(words, "low_confidence")
    low = floats(rows["confidence"]) < below
    begins = new_turn | np.r_[True, low[1:] != low[:-1]][: len(rows)]
    table: pd.DataFrame = _runs(rows, begins)[low[begins]]
    return table.reset_index(drop=True)


def _in_order(words: pd.DataFrame, purpose: str) -> tuple[pd.DataFrame, npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """Return the timed words in order, a mask of those that begin a turn, and the latest end so far in the turn."""
    require_words(words, _WORDS, purpose)
    rows = with_keys(words, "speaker")[0].astype({"transcript_id": TEXT})
    rows = with_times(rows)
    code, _ = pd.factorize(rows["transcript_id"], use_na_sentinel=False)
    order = np.lexsort((floats(rows["start_ms"]), code))
    rows, code = rows.iloc[order], code[order]
    speaker, _ = pd.factorize(rows["speaker"], use_na_sentinel=False)
    new_turn: npt.NDArray[np.bool_] = np.ones(len(rows), bool)
    new_turn[1:] = (code[1:] != code[:-1]) | (speaker[1:] != speaker[:-1])
    return rows, new_turn, floats(pd.Series(floats(rows["end_ms"])).groupby(np.cumsum(new_turn)).cummax())


def _silence(
    rows: pd.DataFrame, new_turn: npt.NDArray[np.bool_], reach: npt.NDArray[np.float64], min_pause_ms: float
) -> npt.NDArray[np.float64]:
    """Return the length of the pause before each word, in ms; 0 if there is none."""
    gap = floats(rows["start_ms"]) - np.r_[0.0, reach[:-1]][: len(rows)]
    return np.where(new_turn | (gap < min_pause_ms), 0.0, gap)


def _begins(
    rows: pd.DataFrame,
    new_turn: npt.NDArray[np.bool_],
    reach: npt.NDArray[np.float64],
    silence: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return from when on the time of each word is speech: from the latest end so far, except after a pause.

    Overlapping words of one turn count once, and silences that are no pauses are speech.
    """
    return np.where(new_turn | (silence > 0), floats(rows["start_ms"]), np.r_[0.0, reach[:-1]][: len(rows)])


def speech_pieces(words: pd.DataFrame, purpose: str) -> pd.DataFrame:
    """Return the speech of each word, as `delivery` counts it: `transcript_id`, `start_ms`, `end_ms` and `row`."""
    rows, new_turn, reach = _in_order(words.assign(row=np.arange(len(words))), purpose)
    begin = _begins(rows, new_turn, reach, _silence(rows, new_turn, reach, SHORTEST_PAUSE_MS))
    return rows[["transcript_id", "row"]].assign(start_ms=begin, end_ms=np.maximum(floats(rows["end_ms"]), begin))


def _runs(rows: pd.DataFrame, begins: npt.NDArray[np.bool_]) -> pd.DataFrame:
    """Join words that follow each other."""
    first = np.flatnonzero(begins)
    edges = np.r_[first, len(rows)]
    text = rows["text"].fillna("").to_numpy(object)
    end = floats(rows["end_ms"])
    sure = pd.Series(floats(rows["confidence"]) if "confidence" in rows.columns else np.nan, index=rows.index)
    return pd.DataFrame(
        {
            "transcript_id": rows["transcript_id"].array[first],
            "speaker": rows["speaker"].array[first],
            "text": pd.array([join_words(filter(None, text[a:b])) for a, b in pairwise(edges)], dtype=TEXT),
            "start_ms": floats(rows["start_ms"])[first].astype(np.int64),
            "end_ms": (np.maximum.reduceat(end, first) if len(first) else end).astype(np.int64),
            "words": np.add.reduceat(words_in_rows(rows).to_numpy(np.int64), first) if len(first) else np.diff(edges),
            "mean_confidence": sure.groupby(np.cumsum(begins)).mean().to_numpy(np.float64),
        }
    )


@takes_frames
@defines(
    "articulation_s",
    "pause_s",
    "words_per_minute",
    "articulation_wpm",
    "pauses_per_minute",
    "mean_pause_ms",
    "fillers_per_100",
    "questions_per_100",
    "low_share",
)
@keeps_recordings
@uses("start_ms", "end_ms", pauses=True)
def delivery(
    words: pd.DataFrame,
    by: By = ("transcript_id", "speaker"),
    *,
    fillers: Iterable[str] = FILLERS,
    min_pause_ms: float = SHORTEST_PAUSE_MS,
    low: float = 0.5,
) -> pd.DataFrame:
    """Return pace, pauses, fillers, questions and low confidence of each speaker, or of other groups.

    Definition: pauses are those of `pauses`: silences inside a turn of `min_pause_ms` or more. If all words of a group
    share the times of their segments (`timing` is "segment"), its pauses are not known: what rests on them is null.

    Source: F. Goldman-Eisler, "Psycholinguistics: experiments in spontaneous speech", 1968; H. Clark and J. Fox Tree,
    "Using uh and um in spontaneous speaking", Cognition 84, 2002; N. de Jong and T. Wempe, "Praat script to detect
    syllable nuclei and measure speech rate automatically", Behavior Research Methods 41, 2009. These count syllables;
    we count words. Recognizers that leave out fillers make their rate too low.

    Args:
        words: Words, as returned by `voxframe.load_words`.
        by: Columns to group by; see `voxframe.analysis.grouping.with_keys`. A pause belongs to the word after it, a
            question to its last word.
        fillers: Filled pauses: words or phrases, as for `find_words`.
        min_pause_ms: Shortest pause, in ms.
        low: Upper limit of a low confidence, 0-1.

    Returns:
        One row per group, sorted. Columns: those of `by`, `words` int64, `articulation_s`, `pause_s` float64 (s),
        `words_per_minute`, `articulation_wpm` float64, `pauses` Int64, `pauses_per_minute`, `mean_pause_ms` float64,
        `fillers` int64, `fillers_per_100` float64, `questions` int64, `questions_per_100`, `low_share` float64.

    Raises:
        ValueError: A column is missing.
        OptionError: A group is unknown, the rows are turns, not words, or an argument is not allowed.

    Example:
        >>> words = pd.DataFrame({"transcript_id": "t", "speaker": "A", "text": ["Um,", "is", "it?"],
        ...                       "start_ms": [0, 1200, 1500], "end_ms": [400, 1400, 2000]})
        >>> delivery(words)[["words_per_minute", "articulation_wpm", "pauses", "fillers"]].round().values.tolist()
        [[90.0, 150.0, 1, 1]]
    """
    min_pause_ms = checked("min_pause_ms", min_pause_ms, MILLISECONDS)
    low = checked("low", low, Number(0, 1))
    rows, new_turn, reach = _in_order(words, "delivery")
    rows, names = with_keys(rows, by, result=_DELIVERY)
    silence = _silence(rows, new_turn, reach, min_pause_ms)
    begin = _begins(rows, new_turn, reach, silence)
    sure = floats(rows["confidence"]) if "confidence" in rows.columns else np.full(len(rows), np.nan)
    text = rows["text"].fillna("").astype(object).str.rstrip(_CLOSING)
    hits = find_words(rows.assign(_at=np.arange(len(rows))), fillers)
    sums = pd.DataFrame(
        {
            "words": words_in_rows(rows),
            "articulation_s": np.maximum(floats(rows["end_ms"]) - begin, 0) / 1000,
            "pause_s": silence / 1000,
            "pauses": (silence > 0).astype(np.int64),
            "fillers": np.bincount(hits["_at"].to_numpy(np.intp), minlength=len(rows)),
            "questions": text.str.endswith(_ASKS).to_numpy(np.int64),
            "_low": (sure < low).astype(np.int64),
            "_known": np.isfinite(sure).astype(np.int64),
            "_timed": (rows["timing"] != "segment").fillna(True).astype(np.int64) if "timing" in rows.columns else 1,
        },
        index=rows.index,
    )
    keys = [rows[name] for name in names] or [pd.Series(0, index=rows.index)]
    table = sums.groupby(keys, dropna=False, sort=True).sum().reset_index(drop=not names)
    spoken = table["articulation_s"] + table["pause_s"]
    table["words_per_minute"] = 60 * ratio(table["words"], spoken)
    table["articulation_wpm"] = 60 * ratio(table["words"], table["articulation_s"])
    table["pauses_per_minute"] = 60 * ratio(table["pauses"], spoken)
    table["mean_pause_ms"] = 1000 * ratio(table["pause_s"], table["pauses"])
    for name in ("fillers", "questions"):
        table[f"{name}_per_100"] = 100 * ratio(table[name], table["words"])
    table["low_share"] = ratio(table["_low"], table["_known"])
    table["pauses"] = table["pauses"].astype("Int64")
    table.loc[table["_timed"] == 0, list(_OF_PAUSES)] = pd.NA
    return table[[*names, *_DELIVERY]]
