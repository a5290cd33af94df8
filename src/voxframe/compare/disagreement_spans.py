"""Disagreements of two transcripts as spans of time, to be listened to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from voxframe.analysis.speaker_turns import TEXT, require
from voxframe.compare.alignment import MATCH

_TYPES: dict[str, Any] = {
    "recording": TEXT,
    "edit": TEXT,
    "text": TEXT,
    "ref_text": TEXT,
    "hyp_text": TEXT,
    "left": TEXT,
    "right": TEXT,
    "speaker": TEXT,
    "start_ms": "Int64",
    "end_ms": "Int64",
    "edits": "int64",
}
_TIMES = [f"{side}_{edge}_ms" for side in ("ref", "hyp") for edge in ("start", "end")]


def disagreements(alignment: pd.DataFrame, *, context: int = 4) -> pd.DataFrame:
    """Return the places at which two transcripts differ, in order of time.

    Consecutive edits are one place. Its time is that of its words in both transcripts. If none of its words has times,
    as in a reference that is plain text, it lasts from the end of the word before to the start of the word after.

    To listen, link the places with a player, `player.link(voxframe.Timeline(places, by="edit"))`, and click on one; or
    play row by row: `player.cue(row.start_ms, row.end_ms)` and `player.play()`.

    Args:
        alignment: Result of `voxframe.compare.align`.
        context: Number of words to show on each side.

    Returns:
        One row per place. Columns:

        - `recording` str: as in the alignment.
        - `edit` str: "substitution" if both transcripts have words, otherwise "deletion" or "insertion".
        - `text` str: both versions, such as "trees → three"; "(nothing)" stands for no words.
        - `ref_text`, `hyp_text` str: the words of each version as written; empty if there are none.
        - `left`, `right` str: words of the reference before and after.
        - `speaker` str: speaker in the reference, else in the hypothesis.
        - `start_ms`, `end_ms` Int64: time; null if neither transcript has times nearby.
        - `edits` int64: number of edits of words.

    Raises:
        TypeError: `alignment` is not a DataFrame.
        ValueError: A column is missing.

    Example:
        >>> from voxframe.compare import align
        >>> heard = pd.DataFrame({"text": "we counted the three".split(), "start_ms": [0, 300, 800, 900],
        ...                       "end_ms": [200, 700, 880, 1300]})
        >>> disagreements(align("We counted the trees.", heard))[["text", "start_ms", "end_ms"]].values.tolist()
        [['trees. → three', 900, 1300]]
    """
    needed = [f"{side}_{name}" for side in ("ref", "hyp") for name in ("text", "idx", "speaker")]
    require(alignment, ("recording", "edit", *needed, *_TIMES), "disagreements")
    rows: list[tuple[Any, ...]] = []
    for _, part in alignment.groupby("recording", sort=False, dropna=False):
        differs = (part["edit"] != MATCH).to_numpy(bool)
        times = part[_TIMES].to_numpy(np.float64, na_value=np.nan)
        texts = {side: _values(part[f"{side}_text"]) for side in ("ref", "hyp")}
        places = {side: _values(part[f"{side}_idx"]) for side in ("ref", "hyp")}
        who = _values(part["ref_speaker"].fillna(part["hyp_speaker"]))
        refs = np.flatnonzero(part["ref_text"].notna())
        first = np.flatnonzero(differs & ~np.r_[False, differs[:-1]])
        last = np.flatnonzero(differs & ~np.r_[differs[1:], False])
        for start, end in zip(first.tolist(), (last + 1).tolist(), strict=True):
            said, heard = (_joined(texts[side][start:end], places[side][start:end]) for side in ("ref", "hyp"))
            edit = "substitution" if said and heard else "deletion" if said else "insertion"
            before, after = np.searchsorted(refs, (start, end))
            near = refs[max(0, before - context) : before], refs[after : after + context]
            left, right = (_joined([texts["ref"][n] for n in side], [places["ref"][n] for n in side]) for side in near)
            speaker = next((name for name in who[start:end] if name is not None), None)
            label = f"{said or '(nothing)'} → {heard or '(nothing)'}"
            begin, stop = _span(times, start, end)
            name = part["recording"].iloc[0]
            rows.append(
                (name, edit, label, said, heard, left, right, speaker, begin, stop, int(differs[start:end].sum()))
            )
    return pd.DataFrame(rows, columns=[*_TYPES]).astype(_TYPES)


def _values(column: pd.Series[Any]) -> list[Any]:
    return [None if pd.isna(value) else value for value in column]


def _joined(texts: Any, places: Any) -> str:
    """Return the text of rows once each, although a row with two normalised words has two edits."""
    found = [text for n, text in enumerate(texts) if text is not None and (n == 0 or places[n] != places[n - 1])]
    return " ".join(found)


def _span(times: Any, start: int, end: int) -> tuple[float | None, float | None]:
    """Return start and end of some rows of an alignment, in ms."""
    own = times[start:end]
    if not np.isnan(own[:, [0, 2]]).all() and not np.isnan(own[:, [1, 3]]).all():
        return float(np.nanmin(own[:, [0, 2]])), float(np.nanmax(own[:, [1, 3]]))
    before, after = times[:start][:, [1, 3]], times[end:][:, [0, 2]]
    before, after = before[~np.isnan(before).all(axis=1)], after[~np.isnan(after).all(axis=1)]
    begin = float(np.nanmax(before[-1])) if len(before) else None
    stop = float(np.nanmin(after[0])) if len(after) else None
    if begin is None or stop is None:
        return (begin if stop is None else stop, stop if begin is None else begin)
    return min(begin, stop), max(begin, stop)
