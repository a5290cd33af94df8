"""Talk time, speech, silence and overlap of recordings, and the balance between speakers."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from voxframe._arrow import TEXT, takes_frames
from voxframe.analysis.grouping import By, durations_ms, key_list, ratio, time_bin, with_keys
from voxframe.analysis.over_time import split_spans
from voxframe.analysis.rows import (
    LONGEST_SILENCE_MS,
    MILLISECONDS,
    SPEAKER_COLUMNS,
    begins_spurt,
    floats,
    keeps_recordings,
    label_names,
    require,
    row_speakers,
    turns,
    uses,
    with_times,
    words_in_rows,
)
from voxframe.dictionary import defines
from voxframe.errors import OptionError
from voxframe.validators import Choice, checked

#: Denominators of a share of talk time.
Whole: TypeAlias = Literal["talk", "speech", "recording"]
#: Columns of `balance`, of `talk_time` (and times, which it needs) and of `speech_activity`.
_BALANCE = ("speakers", "gini", "entropy_bits", "evenness", "effective_speakers")
_TALK_TIME = ("turns", "words", "talk_s", "share", "words_per_minute", "start_ms", "end_ms")
_ACTIVITY = frozenset(
    "recordings duration_s speech_s silence_s speech_share silence_share overlap_s overlap_base_s overlap_share "
    "shows_overlap".split()
)
_SPOKEN = ("transcript_id", "text", "start_ms", "end_ms")


@takes_frames
@defines("talk_s", "share", "words_per_minute")
@keeps_recordings
@uses("start_ms", "end_ms")
def talk_time(
    spoken: pd.DataFrame,
    by: By = ("transcript_id", "speaker"),
    *,
    of: Whole = "talk",
    transcripts: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the talk time of each speaker per transcript, or of other groups.

    Definition: the talk time of a speaker is the sum of the lengths of their turns, including pauses inside a turn. If
    two people speak at the same time, it counts for both. Unit: seconds.

    Denominator of `share`: the time named by `of`, in the same groups without the speaker. For example, with
    `by=["customer", "speaker_name"]` it is the time of all recordings of the customer.

    - "talk" (default): talk time of all speakers, so shares add up to 1. If `by` has no speaker, of all rows.
    - "speech": time in which anybody speaks. Overlap counts once, so shares can add up to more than 1.
    - "recording": length of the recordings; the remainder is silence.

    Source: the definition is that of "speaking time" in D. Gatica-Perez, "Automatic nonverbal analysis of social
    interaction in small groups", Image and Vision Computing 27, 2009.

    Args:
        spoken: Turns (`voxframe.load_utterances`) or words (`voxframe.load_words`). Words are first grouped into turns
            by `turns`. Turns without a start or end, or that end before they start, are left out.
        by: Columns to group by; see `voxframe.analysis.grouping.with_keys`. Turns are cut at the limits of time bins;
            their words count where the turn begins.
        of: Denominator of `share`.
        transcripts: The table `transcripts`, whose `audio_duration_s` is the length of a recording. None (default): a
            recording ends with its last row.

    Returns:
        One row per group. Columns: those of `by`, `turns` int64, `words` int64, `talk_s` float64 (s), `share` float64
        (0 or more, NaN if the denominator is 0), `words_per_minute` float64 (`words / (talk_s / 60)`). By default,
        transcripts keep their order and the longest talk time is first; otherwise rows are sorted by group. `speaker`
        is "channel 1" if only channels are known, else null. `attrs["label_names"]` has the names by label, which
        plots use for colours; None if speakers have no names or there is more than one transcript.

    Raises:
        ValueError: A column is missing.
        OptionError: A group or `of` is unknown.

    Example:
        >>> import voxframe
        >>> payload = {"id": "a", "utterances": [
        ...     {"speaker": "A", "text": "How far is it?", "start": 0, "end": 1000},
        ...     {"speaker": "B", "text": "Two miles or so.", "start": 2000, "end": 5000}]}
        >>> turns = voxframe.load_utterances(payload)
        >>> talk_time(turns)[["speaker", "talk_s", "share"]].values.tolist()
        [['B', 3.0, 0.75], ['A', 1.0, 0.25]]
        >>> talk_time(turns, of="recording")["share"].tolist()
        [0.6, 0.2]
    """
    require(spoken, _SPOKEN, "talk_time")
    checked("of", of, Choice(("talk", "speech", "recording")))
    default = isinstance(by, tuple) and all(isinstance(k, str) for k in by) and by == ("transcript_id", "speaker")
    named = label_names(spoken) if spoken["transcript_id"].nunique() == 1 else None
    rows, names = _turn_rows(spoken, by)
    rows = rows[rows["talk_s"] >= 0]
    groups = rows.groupby(names, sort=not default, dropna=False) if names else rows.groupby(lambda _: 0)
    table = groups.agg(turns=("turns", "sum"), words=("words", "sum"), talk_s=("talk_s", "sum")).reset_index(
        drop=not names
    )
    within = [name for name in names if name not in SPEAKER_COLUMNS]
    if of == "talk":
        within = within if len(within) < len(names) else []
        total = table.groupby(within, sort=False, dropna=False)["talk_s"].transform("sum") if within else None
        table["share"] = ratio(table["talk_s"], table["talk_s"].sum() if total is None else total)
    else:
        extra = [key for key in key_list(by) if isinstance(key, pd.Series)]
        keyed = spoken.assign(**{str(key.name or "group"): key for key in extra})
        base = speech_activity(keyed, by=within, transcripts=transcripts)
        base = base[[*within, "speech_s" if of == "speech" else "duration_s"]].set_axis([*within, "whole"], axis=1)
        base = base.astype({name: TEXT for name in within if name == "transcript_id"})
        total = table.merge(base, how="left", on=within)["whole"] if within else base["whole"].iloc[0]
        table["share"] = ratio(table["talk_s"], total)
    table["words_per_minute"] = 60 * ratio(table["words"], table["talk_s"])
    if default:
        place, _ = pd.factorize(table["transcript_id"], use_na_sentinel=False)
        table = table.iloc[np.lexsort((-table["talk_s"].to_numpy(), place))].reset_index(drop=True)
    table.attrs["label_names"] = named
    return table


def _turn_rows(spoken: pd.DataFrame, by: By) -> tuple[pd.DataFrame, list[str]]:
    """Return turns, cut at the limits of time bins, as rows with their groups, `turns`, `words` and `talk_s`."""
    spoken, names = with_keys(spoken, by, result=_TALK_TIME, split=True)
    keys = [name for name in names if name in spoken.columns]
    if "word_idx" in spoken.columns:
        spoken = turns(spoken, keep=[name for name in keys if name not in {"transcript_id", "speaker"}])
    rows = spoken[["transcript_id", *(name for name in keys if name != "transcript_id"), "start_ms", "end_ms"]]
    rows = rows.assign(words=words_in_rows(spoken), turns=1)
    for name in names:
        if name not in keys:
            rows = split_spans(rows, **(time_bin(name) or {}))
            rows = rows.assign(
                **{name: rows["bin_idx"]}, **{n: rows[n] * rows["first_piece"] for n in ("words", "turns")}
            )
    rows["talk_s"] = (floats(rows["end_ms"]) - floats(rows["start_ms"])) / 1000
    text = [name for name in ("transcript_id", "speaker") if name in rows.columns]
    return rows.astype(dict.fromkeys(text, TEXT)), names


@takes_frames
@defines(
    "duration_s",
    "speech_s",
    "silence_s",
    "speech_share",
    "silence_share",
    "overlap_s",
    "overlap_base_s",
    "overlap_share",
)
@keeps_recordings
@uses("start_ms", "end_ms")
def speech_activity(
    spoken: pd.DataFrame,
    by: By = "transcript_id",
    *,
    transcripts: pd.DataFrame | None = None,
    max_pause_ms: float = LONGEST_SILENCE_MS,
) -> pd.DataFrame:
    """Return how long anybody speaks, nobody speaks, and several people speak at the same time.

    Definition: at each moment, the number of speakers whose spans contain it is 0 (silence), 1, or more (overlap).
    Spans of one speaker that are at most `max_pause_ms` apart are joined. Unit: seconds. Denominators: `speech_share`
    and `silence_share` are of the recording, `overlap_share` is of speech in recordings that can show overlap.

    A transcript can show overlap if it has several channels, or if two speakers do overlap in it. If an engine gives
    every moment to one speaker, overlap is unknown, not 0.

    Source: K. Laskowski et al., "Modeling vocal interaction for text-independent participant characterization in
    multi-party conversation", SIGdial 2008 (vocal activity); M. Heldner and J. Edlund, "Pauses, gaps and overlaps in
    conversations", Journal of Phonetics 38, 2010 (silence and overlap).

    Args:
        spoken: Words or turns with `transcript_id`, `start_ms` and `end_ms`. Words give silences inside turns too.
        by: Columns to group by that are the same for a whole recording, such as metadata, and a time bin.
        transcripts: The table `transcripts`, whose `audio_duration_s` is the length of a recording. None (default): a
            recording ends with its last row.
        max_pause_ms: Longest silence of one speaker, in ms, that belongs to their speech. Consonants such as p and t
            contain silences of up to about 200 ms.

    Returns:
        One row per group, sorted. Columns: those of `by`, `recordings` int64, then float64 `duration_s`, `speech_s`,
        `silence_s` (s), `speech_share`, `silence_share` (0-1), `overlap_s`, `overlap_base_s` (speech in recordings that
        can show overlap), `overlap_share` (0-1; both NaN if no recording can show overlap), and `shows_overlap` bool
        (True if all recordings can).

    Raises:
        ValueError: A column is missing.
        OptionError: A group is unknown or differs within a recording, or `max_pause_ms` is not allowed.

    Example:
        >>> words = pd.DataFrame({"transcript_id": "t", "speaker": ["A", "B", "A"],
        ...                       "start_ms": [0, 3000, 8000], "end_ms": [4000, 5000, 10_000]})
        >>> speech_activity(words)[["speech_s", "silence_s", "overlap_s", "overlap_share"]].values.tolist()
        [[7.0, 3.0, 1.0, 0.14285714285714285]]
    """
    require(spoken, ("transcript_id", "start_ms", "end_ms"), "speech_activity")
    spoken = with_times(spoken)
    max_pause_ms = checked("max_pause_ms", max_pause_ms, MILLISECONDS)
    rows, names = with_keys(spoken, by, result=_ACTIVITY, split=True)
    bins = [name for name in names if name not in rows.columns]
    if len(bins) > 1:
        raise OptionError(f"by can have one time bin, got {', '.join(bins)}")
    code, ids = pd.factorize(rows["transcript_id"], use_na_sentinel=False)
    groups = pd.DataFrame({name: rows[name].to_numpy() for name in names if name not in bins})
    of = groups.astype("object").groupby(code).agg(["first", "nunique"]) if len(groups.columns) else None
    if of is not None and (mixed := [name for name in groups if (of[name]["nunique"] > 1).any()]):
        raise OptionError(f"by={mixed[0]!r} differs within a recording; talk_time groups by speakers")
    cells = _activity(rows, code, ids, transcripts, max_pause_ms, (time_bin(bins[0]) or {}) if bins else {})
    first = pd.Series(np.arange(len(code))).groupby(code).first()
    for name in groups:
        cells[name] = rows[name].iloc[first.reindex(cells["code"]).to_numpy()].array
    cells = cells.rename(columns={"bin_idx": bins[0]} if bins else {})
    grouped = cells.groupby(names, dropna=False, sort=True) if names else cells.groupby(lambda _: 0)
    table = grouped.agg(
        recordings=("code", "nunique"),
        **{name: (name, "sum") for name in ("duration_s", "speech_s", "silence_s", "overlap_s", "overlap_base_s")},
        shows_overlap=("shows_overlap", "all"),
        any_shows=("shows_overlap", "any"),
    ).reset_index(drop=not names)
    table["overlap_s"] = table["overlap_s"].where(table.pop("any_shows"))
    table.insert(len(names) + 4, "speech_share", ratio(table["speech_s"], table["duration_s"]))
    table.insert(len(names) + 5, "silence_share", ratio(table["silence_s"], table["duration_s"]))
    table.insert(len(names) + 8, "overlap_share", ratio(table["overlap_s"], table["overlap_base_s"]))
    return table


def _activity(
    rows: pd.DataFrame,
    code: np.ndarray,
    ids: pd.Index,
    transcripts: pd.DataFrame | None,
    max_pause_ms: float,
    cut: dict[str, Any],
) -> pd.DataFrame:
    """Return the seconds of speech, silence and overlap per recording and time bin.

    A sweep over all starts and ends counts the speakers between each two of them.
    """
    speaker, _ = pd.factorize(row_speakers(rows), use_na_sentinel=False)
    start, end = np.maximum(floats(rows["start_ms"]), 0), floats(rows["end_ms"])
    usable = np.flatnonzero(end > start)
    order = usable[np.lexsort((start[usable], speaker[usable], code[usable]))]
    whose, start, end = code[order] * (speaker.max(initial=0) + 1) + speaker[order], start[order], end[order]
    first = np.flatnonzero(begins_spurt(whose, start, end, max_pause_ms))
    spurts = pd.DataFrame({"code": code[order][first], "start": start[first]})
    spurts["end"] = np.maximum.reduceat(end, first) if len(first) else end
    length = durations_ms(rows, transcripts).to_numpy(np.float64)  # in the order of the codes
    step = 1000.0 * cut["window_s"] if "window_s" in cut else length / cut["parts"] if cut else length
    step = np.maximum(np.broadcast_to(step, length.shape), 1e-9)
    bins = np.maximum(np.ceil(length / step - 1e-9), 1).astype(np.intp)
    edge_code = np.repeat(np.arange(len(length)), bins + 1)
    edge_bin = np.arange(len(edge_code)) - np.repeat(np.cumsum(bins + 1) - bins - 1, bins + 1)
    edge = np.minimum(edge_bin * step[edge_code], length[edge_code])

    at = np.r_[spurts["start"], spurts["end"], edge]
    of = np.r_[spurts["code"], spurts["code"], edge_code].astype(np.intp)
    change = np.r_[np.ones(len(spurts)), -np.ones(len(spurts)), np.zeros(len(edge))]
    rank = np.r_[np.zeros(2 * len(spurts)), np.where(edge_bin < bins[edge_code], 1, 0)]
    order = np.lexsort((at, of))
    at, of, change, opens = at[order], of[order], change[order], rank[order]
    active = np.cumsum(change)
    span = np.where(of[1:] == of[:-1], at[1:] - at[:-1], 0.0) / 1000
    place = np.cumsum(opens)  # bins follow each other over all recordings
    cell = np.maximum(place[:-1].astype(np.intp) - 1, 0)
    total = int(bins.sum())
    sums = [np.bincount(cell, span * (active[:-1] >= n), total) for n in (0, 1, 2)] if len(span) else [np.zeros(0)] * 3
    cells = pd.DataFrame({"code": np.repeat(np.arange(len(length)), bins), "duration_s": sums[0], "speech_s": sums[1]})
    cells["bin_idx"] = np.arange(total) - np.repeat(np.cumsum(bins) - bins, bins)
    cells["silence_s"] = cells["duration_s"] - cells["speech_s"]
    cells["overlap_s"] = sums[2]
    channels = rows["channel"].groupby(code).nunique() if "channel" in rows.columns else pd.Series(0, range(len(ids)))
    shows = (channels.to_numpy() > 1) | (np.bincount(cells["code"], sums[2], len(ids)) > 0)
    cells["shows_overlap"] = shows[cells["code"]]
    cells["overlap_base_s"] = cells["speech_s"].where(cells["shows_overlap"], 0.0)
    return cells


@takes_frames
@defines("gini", "entropy_bits", "evenness", "effective_speakers")
@keeps_recordings
@uses("start_ms", "end_ms", "speaker")
def balance(
    spoken: pd.DataFrame, by: By = "transcript_id", *, of: Literal["talk_s", "words", "turns"] = "talk_s"
) -> pd.DataFrame:
    """Return how evenly the speakers of a recording share the talk time, words or turns.

    Definition: with the share p of each of n speakers,

    - `gini` is the mean absolute difference of all pairs of shares, relative to twice the mean share: 0 if all are
      equal, (n - 1) / n if one speaker has everything.
    - `entropy_bits` is -sum(p log2 p), 0 to log2(n).
    - `evenness` is `entropy_bits` / log2(n), 0 to 1; NaN for one speaker.
    - `effective_speakers` is 2 ** `entropy_bits`: the number of equal speakers with the same entropy.

    Units: bits for `entropy_bits`, speakers for `effective_speakers`; the others have none. Denominator: the sum over
    the speakers of the group. Rows without a speaker are left out.

    Source: C. Gini, "Variabilità e mutabilità", 1912; C. Shannon, "A mathematical theory of communication", 1948; E.
    Pielou, "The measurement of diversity in different types of biological collections", 1966; M. Hill, "Diversity and
    evenness", Ecology 54, 1973.

    Args:
        spoken: Turns or words, as for `talk_time`.
        by: Columns to group by, as for `talk_time`. `transcript_id` is added, because speakers belong to a recording.
        of: Quantity to share: talk time, words or turns.

    Returns:
        One row per group, sorted. Columns: those of `by`, `speakers` int64, `gini`, `entropy_bits`, `evenness` and
        `effective_speakers` float64.

    Raises:
        ValueError: A column is missing.
        OptionError: A group or `of` is unknown.

    Example:
        >>> turns = pd.DataFrame({"transcript_id": "t", "speaker": ["A", "B"], "text": "hi",
        ...                       "start_ms": [0, 3000], "end_ms": [3000, 4000]})
        >>> balance(turns)[["speakers", "gini", "evenness"]].round(3).values.tolist()
        [[2.0, 0.25, 0.811]]
    """
    checked("of", of, Choice(("talk_s", "words", "turns")))
    groups = key_list(by, _BALANCE)
    further = (key for key in groups if isinstance(key, pd.Series) or key not in ("transcript_id", "speaker"))
    table = talk_time(spoken, by=["transcript_id", *further, "speaker"])
    names = [name for name in table.columns[: list(table.columns).index("turns")] if name != "speaker"]
    table = table[table["speaker"].notna() & (table[of] > 0)]
    rows = []
    for key, values in table.groupby(names, dropna=False, sort=True)[of]:
        share = np.sort(values.to_numpy(np.float64) / values.sum())
        n = len(share)
        gini = float((2 * np.arange(1, n + 1) - n - 1) @ share / n)
        entropy = float(-(share * np.log2(share)).sum()) + 0.0
        rows.append((*key, n, gini, entropy, entropy / np.log2(n) if n > 1 else np.nan, 2**entropy))
    columns = [*names, *_BALANCE]
    dtypes = (
        {name: table[name].dtype for name in names} | {"speakers": "int64"} | dict.fromkeys(columns[-4:], "float64")
    )
    return pd.DataFrame(rows, columns=columns).astype(dtypes)
