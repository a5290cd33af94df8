"""Turn-taking: gaps, overlaps, interruptions, backchannels, response latency, and the matrix of next speakers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import TEXT, takes_frames
from voxframe._text import join_words
from voxframe.analysis.grouping import By, key_list, ratio, with_keys
from voxframe.analysis.rows import (
    LONGEST_SILENCE_MS,
    MILLISECONDS,
    begins_spurt,
    floats,
    keeps_recordings,
    require,
    uses,
    words_in_rows,
)
from voxframe.analysis.search_terms import spoken as spoken_words
from voxframe.dictionary import defines
from voxframe.errors import OptionError, caller
from voxframe.validators import ListOf, Text, checked

#: English words that show attention without taking the floor. Source: the tags "acknowledge (backchannel)",
#: "appreciation" and "backchannel in question form" of D. Jurafsky et al., "Switchboard SWBD-DAMSL
#: shallow-discourse-function annotation coders manual", 1997.
BACKCHANNELS = tuple("uh-huh mhm mm-hmm mm hmm hm huh yeah yep yes right okay ok oh ah sure really wow".split())
_LONGEST_BACKCHANNEL = 3  # words
#: Kinds of turns that took the floor from another speaker.
TRANSFERS = ("gap", "latch", "overlap")
_NEEDED = ("transcript_id", "text", "start_ms", "end_ms")
#: Columns of a turn.
_TURN = tuple(
    "transcript_id turn_idx speaker text start_ms end_ms word_count kind offset_ms previous_idx previous_speaker "
    "after_question interruption".split()
)
#: Columns of `turn_statistics`.
_STATISTICS = tuple(
    "turns words mean_turn_s longest_turn_s longest_start_ms transfers median_offset_ms overlaps "
    "transfer_overlap_share interruptions interruption_share interruption_recordings responses "
    "response_ms within backchannels".split()
)


@takes_frames
@keeps_recordings
@uses("start_ms", "end_ms")
def turn_taking(
    spoken: pd.DataFrame,
    by: By = None,
    *,
    backchannels: Iterable[str] = BACKCHANNELS,
    max_pause_ms: float = LONGEST_SILENCE_MS,
    interruption_ms: float = 500,
) -> pd.DataFrame:
    """Return the turns of conversations with the way in which each took the floor.

    Definition: speech of one speaker with silences of at most `max_pause_ms` is a spurt. A spurt takes the floor if it
    ends after all spurts before it. If spurts have equal times, that of the first speaker by name takes it. Spurts of
    one speaker form a turn until another speaker takes the floor.
    `offset_ms` is the floor transfer offset: the start of the turn minus the end of the turn before. Unit: ms.
    Denominator: none; `turn_statistics` gives shares.

    Values of `kind`:

    - "start": first turn of the recording.
    - "gap", "latch", "overlap": took the floor from another speaker, with an offset above, equal to or below 0.
    - "within": lies within the turn of another speaker and did not take the floor.
    - "backchannel": at most three words, all of them in `backchannels`, that did not take the floor: the speaker before
      goes on, and had not asked a question.

    An `interruption` is an overlap of at least `interruption_ms`. Shorter ones are usually projections of the end of a
    turn. If the transcript cannot show overlap (see `speech_activity`), there are neither overlaps nor interruptions.

    Source: H. Sacks, E. Schegloff and G. Jefferson, "A simplest systematics for the organization of turn-taking for
    conversation", Language 50, 1974; M. Heldner and J. Edlund, "Pauses, gaps and overlaps in conversations", Journal of
    Phonetics 38, 2010 (offsets); V. Yngve, "On getting a word in edgewise", 1970 (backchannels); E. Schegloff,
    "Overlapping talk and the organization of turn-taking for conversation", Language in Society 29, 2000. Heldner and
    Edlund do not tell backchannels apart; `backchannels=()` gives their measure.

    Args:
        spoken: Turns (`voxframe.load_utterances`) or words, of any number of recordings. Rows without times are left
            out.
        by: Columns to keep, with the value of the first row of each turn; see `voxframe.analysis.grouping.with_keys`.
        backchannels: Words that show attention. Case and punctuation are ignored.
        max_pause_ms: Longest silence within a spurt, in ms.
        interruption_ms: Shortest overlap of an interruption, in ms.

    Returns:
        One row per turn, in order of start. Columns: `transcript_id` str, `turn_idx` int64 (counts from 0 in each
        recording), `speaker` str, `text` str, `start_ms`, `end_ms`, `word_count` int64, `kind` str, `offset_ms` Int64
        (null for "start"), `previous_idx` Int64 (`turn_idx` of the turn that had the floor), `previous_speaker` str,
        `after_question` bool (that turn ended with a question mark), `interruption` bool, and those of `by`.

    Raises:
        ValueError: A column is missing.
        OptionError: A group is unknown or has the name of a column of the result, or an argument is invalid.

    Example:
        >>> spoken = pd.DataFrame({"transcript_id": "t", "speaker": ["A", "B", "A", "B"],
        ...                        "text": ["Is it far?", "No, two miles,", "Mhm.", "or three."],
        ...                        "start_ms": [0, 1200, 2500, 2900], "end_ms": [1000, 2400, 2700, 3500]})
        >>> turn_taking(spoken)[["speaker", "kind", "offset_ms", "end_ms"]].values.tolist()
        [['A', 'start', <NA>, 1000], ['B', 'gap', 200, 3500], ['A', 'backchannel', 100, 2700]]
    """
    require(spoken, _NEEDED, "turn_taking")
    listed = checked("backchannels", backchannels, ListOf(Text(), "words"))
    max_pause_ms = checked("max_pause_ms", max_pause_ms, MILLISECONDS)
    interruption_ms = checked("interruption_ms", interruption_ms, MILLISECONDS)
    rows, names = with_keys(spoken, by, result={*_TURN} - {"transcript_id", "speaker"})
    rows = with_keys(rows, "speaker")[0]
    rows["transcript_id"] = rows["transcript_id"].astype(TEXT)
    rows["word_count"] = words_in_rows(rows)
    start, end = floats(rows["start_ms"]), floats(rows["end_ms"])
    rows = rows[np.isfinite(start) & np.isfinite(end) & (end >= start)]
    rows = _of_known_speakers(rows)
    keep = [name for name in names if name not in {"transcript_id", "speaker"}]
    spurts = _spurts(rows, keep, max_pause_ms)
    heard = _acknowledges(spurts["text"], listed)
    floor = _Floor(spurts, heard)
    before, after = floor.before, floor.after
    answered = spurts["text"].str.rstrip().str.endswith("?").to_numpy(bool)
    goes_on = (after >= 0) & (floor.speaker[before] == floor.speaker[after])
    heard &= (before >= 0) & (floor.speaker != floor.speaker[before]) & ~answered[before] & (goes_on | floor.inside)
    table = _joined(spurts, _Floor(spurts, heard), heard, keep)
    table["interruption"] = ((table["kind"] == "overlap") & (table["offset_ms"] <= -interruption_ms)).astype(bool)
    return table[[*_TURN, *keep]]


def _of_known_speakers(rows: pd.DataFrame) -> pd.DataFrame:
    """Leave out rows without a speaker, with a warning, in recordings that name speakers: they may be of anyone."""
    unknown = rows["speaker"].isna()
    named = (~unknown).groupby(rows["transcript_id"], dropna=False).transform("any")
    if count := int((unknown & named).sum()):
        warnings.warn(
            f"{count:,} of {len(rows):,} rows have no speaker and are left out: a turn without a speaker may be of "
            "anyone",
            stacklevel=caller(),
        )
    return rows[~(unknown & named)]


def _spurts(rows: pd.DataFrame, keep: list[str], max_pause_ms: float) -> pd.DataFrame:
    """Join the rows of each speaker with short silences between them, and sort by transcript and start."""
    code, _ = pd.factorize(rows["transcript_id"], use_na_sentinel=False)
    speaker, _ = pd.factorize(rows["speaker"], sort=True, use_na_sentinel=False)
    order = np.lexsort((floats(rows["start_ms"]), speaker, code))
    rows, code, speaker = rows.iloc[order], code[order], speaker[order]
    start, end = floats(rows["start_ms"]), floats(rows["end_ms"])
    whose = code * (speaker.max(initial=0) + 1) + speaker
    begins = begins_spurt(whose, start, end, max_pause_ms)
    spurts = _combined(rows.assign(_code=code, _who=speaker), np.cumsum(begins), keep)
    order = np.lexsort((-floats(spurts["end_ms"]), floats(spurts["start_ms"]), spurts["_code"]))
    return spurts.iloc[order].reset_index(drop=True)


def _combined(rows: pd.DataFrame, group: npt.NDArray[Any], keep: list[str]) -> pd.DataFrame:
    """Return one row per group of rows, with the groups as index, in their order."""
    order = np.argsort(group, kind="stable")
    rows, group = rows.iloc[order], group[order]
    first = np.flatnonzero(np.r_[True, group[1:] != group[:-1]][: len(rows)])
    table = rows.iloc[first][["transcript_id", "speaker", "_code", "_who", "start_ms", *keep]].set_axis(group[first])
    text = rows["text"].fillna("").to_numpy(object)
    edges = np.r_[first, len(rows)]
    joined = [text[a] if b - a == 1 else join_words(filter(None, text[a:b])) for a, b in pairwise(edges)]
    end, count = (rows[name].to_numpy(np.int64) for name in ("end_ms", "word_count"))
    table["text"] = pd.array(joined, dtype=TEXT)
    table["end_ms"] = np.maximum.reduceat(end, first) if len(first) else end
    table["word_count"] = np.add.reduceat(count, first) if len(first) else count
    return table.astype({"start_ms": "int64"})


def _acknowledges(texts: pd.Series[str], backchannels: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Return which texts are short and contain only words of a list."""
    words = {word for text in backchannels for word in spoken_words(text)}
    if not words:
        return np.zeros(len(texts), bool)
    code, unique = pd.factorize(texts.astype(object))
    short = [len(text) <= 60 and text.count(" ") < _LONGEST_BACKCHANNEL for text in unique]
    tokens = [spoken_words(text) if brief else [] for text, brief in zip(unique, short, strict=True)]
    fits = np.array([bool(parts) and set(parts) <= words for parts in tokens], bool)
    return fits[code] if len(fits) else np.zeros(len(texts), bool)


class _Floor:
    """The spurts that take the floor, and those around them.

    Args:
        spurts: Spurts, sorted by transcript and start.
        ignored: Spurts that cannot take the floor.

    Attributes:
        speaker: Number of the speaker of each spurt.
        takes: True for spurts that end after all before them.
        before: Last spurt before each one that took the floor, -1 if none did.
        after: Next one after it, -1 if there is none.
        reach: Latest end before each spurt, in ms; NaN if there is none.
        inside: True for spurts that end before the floor holder does.
    """

    def __init__(self, spurts: pd.DataFrame, ignored: npt.NDArray[np.bool_]) -> None:
        code, end = spurts["_code"].to_numpy(), floats(spurts["end_ms"])
        self.speaker = spurts["_who"].to_numpy()
        counted = pd.Series(np.where(ignored, -np.inf, end))
        reach = counted.groupby(code).cummax().groupby(code).shift(fill_value=-np.inf).to_numpy(np.float64)
        self.takes = ~ignored & (end > reach)
        row = np.arange(len(code))
        last = np.maximum.accumulate(np.where(self.takes, row, -1)) if len(row) else row
        before = np.r_[-1, last[:-1]][: len(row)]
        following = np.minimum.accumulate(np.where(self.takes, row, len(row))[::-1])[::-1] if len(row) else row
        after = np.r_[following[1:], len(row)][: len(row)]
        self.before = np.where((before >= 0) & (code[before] == code), before, -1) if len(row) else row
        after = np.where(after < len(row), after, -1)
        self.after = np.where((after >= 0) & (code[after] == code), after, -1) if len(row) else row
        self.reach = np.where(np.isfinite(reach), reach, np.nan)
        self.inside = end <= reach


def _joined(spurts: pd.DataFrame, floor: _Floor, heard: npt.NDArray[np.bool_], keep: list[str]) -> pd.DataFrame:
    """Join consecutive spurts of the speaker who has the floor, and describe each turn."""
    before, takes = floor.before, floor.takes
    goes_on = takes & (before >= 0) & (floor.speaker == floor.speaker[before])
    row = np.arange(len(spurts))
    # A turn is numbered by its first spurt.
    head = np.where(takes & ~goes_on, row, -1)
    turn = np.maximum.accumulate(head) if len(row) else row
    group = np.where(takes, turn, row)
    turns = _combined(spurts, group, keep)
    first = turns.index.to_numpy()
    previous = np.where(before[first] >= 0, group[before[first]], -1)
    offset = floats(spurts["start_ms"])[first] - floor.reach[first]
    how = np.select([previous < 0, offset > 0, offset < 0], ["start", "gap", "overlap"], "latch").astype(object)
    kind = np.where(heard[first], "backchannel", np.where(takes[first], how, "within"))
    number = turns.groupby("_code").cumcount()
    place = pd.Series(np.arange(len(turns)), index=first)
    holder = place.reindex(previous).to_numpy(np.float64)
    asked = turns["text"].str.rstrip().str.endswith("?").to_numpy(bool)
    at = np.where(np.isnan(holder), -1, holder).astype(np.intp)
    any_turn = len(turns) > 0
    turns["kind"] = pd.array(kind, dtype=TEXT)
    turns["offset_ms"] = pd.Series(offset, index=first).astype("Int64")
    turns["previous_idx"] = pd.array(
        np.where(at >= 0, number.to_numpy()[at], np.nan) if any_turn else [], dtype="Int64"
    )
    turns["previous_speaker"] = turns["speaker"].array.take(at, allow_fill=True)
    turns["after_question"] = (at >= 0) & asked[at] if any_turn else np.zeros(0, bool)
    turns.insert(1, "turn_idx", number.astype("int64"))
    return turns.reset_index(drop=True)


@takes_frames
@defines(
    "mean_turn_s", "longest_turn_s", "median_offset_ms", "transfer_overlap_share", "interruption_share", "response_ms"
)
@keeps_recordings
@uses("start_ms", "end_ms")
def turn_statistics(spoken: pd.DataFrame, by: By = ("transcript_id", "speaker"), **options: Any) -> pd.DataFrame:
    """Return turns, response latency, overlaps, interruptions, backchannels and monologues of each speaker.

    Definitions of turns, kinds and interruptions are those of `turn_taking`. A transfer is a turn that took the floor
    from another speaker. `response_ms` is the median offset of transfers after a turn that ended with a question mark.
    The longest turn is the longest monologue: backchannels do not end it. Units: seconds (`_s`), ms (`_ms`) and counts.
    Denominators: both shares are of the transfers of the group.

    Source: see `turn_taking`; T. Stivers et al., "Universals and cultural variation in turn-taking in conversation",
    PNAS 106, 2009 (response latency).

    Args:
        spoken: Turns or words, as for `turn_taking`.
        by: Columns to group by; see `voxframe.analysis.grouping.with_keys`.
        **options: Options of `turn_taking`.

    Returns:
        One row per group, sorted. Columns: those of `by`, `turns`, `words` int64, `mean_turn_s`, `longest_turn_s`
        float64 (s), `longest_start_ms` Int64, `transfers` int64, `median_offset_ms` float64, `overlaps` int64,
        `transfer_overlap_share` float64 (0-1), `interruptions` int64, `interruption_share` float64 (0-1),
        `interruption_recordings` int64 (recordings of the group that show overlap, on which the share rests),
        `responses` int64, `response_ms` float64, `within` and `backchannels` int64. Unknown values are NaN.

    Raises:
        ValueError: A column is missing.
        OptionError: A group is unknown.

    Example:
        >>> spoken = pd.DataFrame({"transcript_id": "t", "speaker": ["A", "B"], "text": ["Far?", "Two miles."],
        ...                        "start_ms": [0, 700], "end_ms": [500, 1700]})
        >>> turn_statistics(spoken)[["speaker", "turns", "longest_turn_s", "response_ms"]].values.tolist()
        [['A', 1, 0.5, nan], ['B', 1, 1.0, 200.0]]
    """
    require(spoken, _NEEDED, "turn_statistics")
    keys = key_list(by)
    _, names = with_keys(spoken, keys, result=_STATISTICS)
    table = turn_taking(spoken, keys, **options)
    of = {kind: table["kind"] == kind for kind in ("within", "backchannel", "overlap")}
    took = ~of["within"] & ~of["backchannel"]
    transfer, length = table["kind"].isin(TRANSFERS), (table["end_ms"] - table["start_ms"]) / 1000
    rows = table[[name for name in names if name in table.columns]].assign(
        turns=took,
        words=table["word_count"],
        mean_turn_s=length.where(took),
        longest_turn_s=length.where(took),
        transfers=transfer,
        median_offset_ms=table["offset_ms"].where(transfer).astype("float64"),
        overlaps=of["overlap"],
        interruptions=table["interruption"],
        responses=transfer & table["after_question"],
        response_ms=table["offset_ms"].where(transfer & table["after_question"]).astype("float64"),
        within=of["within"],
        backchannels=of["backchannel"],
    )
    rows = rows.astype({name: "int64" for name in rows.columns if rows[name].dtype.kind == "b"})
    reduced = {"mean_turn_s": "mean", "longest_turn_s": "max", "median_offset_ms": "median", "response_ms": "median"}
    groups = rows.groupby(names, dropna=False, sort=True) if names else rows.groupby(lambda _: 0)
    result = groups.agg({name: reduced.get(name, "sum") for name in rows.columns if name not in names})
    longest = rows.sort_values("longest_turn_s", ascending=False, kind="stable").groupby(groups.ngroup()).head(1)
    longest_start = pd.Series(table["start_ms"].loc[longest.index].array, index=groups.ngroup().loc[longest.index])
    result["longest_start_ms"] = longest_start.sort_index().astype("Int64").array
    result["longest_start_ms"] = result["longest_start_ms"].where(result["longest_turn_s"].notna())
    # If an engine gives every moment to one speaker, a transcript shows no overlap, and interruptions are unknown.
    shows = (of["overlap"] | of["within"]).groupby(table["transcript_id"], dropna=False).transform("any")
    base = (transfer & shows).astype("int64").groupby(groups.ngroup()).sum().set_axis(result.index)
    result["transfer_overlap_share"] = ratio(result["overlaps"], result["transfers"])
    result["interruption_share"] = ratio(result["interruptions"], base)
    showing = table["transcript_id"].where(shows).groupby(groups.ngroup()).nunique()
    result["interruption_recordings"] = showing.reindex(range(len(result)), fill_value=0).astype("int64").array
    result = result.reset_index(drop=not names)
    return result[[*names, *_STATISTICS]]


@takes_frames
@defines("transfer_share", "median_offset_ms")
@keeps_recordings
@uses("start_ms", "end_ms", "speaker", empty="nobody follows another speaker")
def turn_matrix(spoken: pd.DataFrame, by: By = "transcript_id", *, of: str = "speaker", **options: Any) -> pd.DataFrame:
    """Count who follows whom.

    Definition: number of transfers of the floor (`turn_taking`) from one speaker to another. Unit: transfers.
    Denominator of `transfer_share`: all transfers from the same speaker, so it estimates the probability that the other
    speaker is next.

    Source: D. Gibson, "Participation shifts: order and differentiation in group conversation", Social Forces 81, 2003.

    Args:
        spoken: Turns or words, as for `turn_taking`.
        by: Columns to group by: one matrix per group.
        of: Column whose values follow each other. "speaker" belongs to one recording; to add up recordings, use names
            or roles that mean the same in all of them, such as `speaker_name`.
        **options: Options of `turn_taking`.

    Returns:
        One row per group and pair, sorted, also for pairs with no transfer (but not from a speaker to themselves).
        Columns: those of `by`, `previous`, `following` str, `transfers` int64, `interruptions` int64, `transfer_share`
        float64 (0-1, NaN if there is no transfer from `previous`), `median_offset_ms` float64.

    Raises:
        ValueError: A column is missing.
        OptionError: A group is unknown or the column `of`, or speakers of several recordings would be mixed.

    Example:
        >>> spoken = pd.DataFrame({"transcript_id": "t", "speaker": list("ABA"), "text": "x",
        ...                        "start_ms": [0, 1500, 3000], "end_ms": [1000, 2500, 4000]})
        >>> turn_matrix(spoken)[["previous", "following", "transfers"]].values.tolist()
        [['A', 'B', 1], ['B', 'A', 1]]
    """
    require(spoken, _NEEDED, "turn_matrix")
    groups = key_list(by, ("previous", "following", "transfers", "interruptions", "transfer_share", "median_offset_ms"))
    keys = [key if isinstance(key, str) else str(key.name or "group") for key in groups]
    if of in keys:
        raise OptionError(f"by= cannot contain {of!r}, the column whose values follow each other (of=)")
    if of == "speaker" and not {"transcript_id", "recording"} & {*keys} and spoken["transcript_id"].nunique() > 1:
        raise OptionError(
            "speakers of different recordings are different people; group by recording too, or use of= with a "
            "column that means the same in all recordings, such as speaker_name or a role"
        )
    table = turn_taking(spoken, [*groups, of], **options)
    holder = table[["transcript_id", "turn_idx", of]].rename(columns={"turn_idx": "previous_idx", of: "previous"})
    holder["previous_idx"] = holder["previous_idx"].astype("Int64")
    table = table.merge(holder, how="left", on=["transcript_id", "previous_idx"]).rename(columns={of: "following"})
    table = table.assign(_group=table.groupby(keys, dropna=False, sort=True).ngroup() if keys else 0)
    transfers = table[table["kind"].isin(TRANSFERS)]
    counts = transfers.groupby(["_group", "previous", "following"]).agg(
        transfers=("kind", "size"), interruptions=("interruption", "sum"), median_offset_ms=("offset_ms", "median")
    )
    people = {group: sorted(rows["following"].dropna().unique()) for group, rows in table.groupby("_group")}
    pairs = [
        (group, a, b)
        for group, names in people.items()
        for a in names
        for b in names
        if a != b or (group, a, b) in counts.index
    ]
    index = pd.MultiIndex.from_tuples(pairs, names=counts.index.names) if pairs else counts.index
    counts = counts.reindex(index).reset_index()
    for name in ("transfers", "interruptions"):
        counts[name] = counts[name].fillna(0).astype("int64")
    counts["transfer_share"] = ratio(
        counts["transfers"], counts.groupby(["_group", "previous"])["transfers"].transform("sum").to_numpy()
    )
    counts["median_offset_ms"] = counts["median_offset_ms"].astype("float64")
    if keys:
        counts = (
            table.drop_duplicates("_group")[["_group", *keys]]
            .merge(counts, on="_group")
            .sort_values("_group", kind="stable")
        )
    columns = [*keys, "previous", "following", "transfers", "interruptions", "transfer_share", "median_offset_ms"]
    return counts[columns].astype({"previous": TEXT, "following": TEXT}).reset_index(drop=True)
