"""Masking of personal data in tables."""

from __future__ import annotations

import re
from bisect import bisect, bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import numpy as np
import orjson
import pandas as pd

from voxframe._arrow import takes_frames
from voxframe._text import quantity
from voxframe.analysis.rows import require, speaker_codes
from voxframe.errors import OptionError
from voxframe.options import PII_POLICIES
from voxframe.validators import name_list, nearest, shown

#: Columns with spoken text, or with text derived from it.
_TEXTS = ("text", "summary", "headline", "gist", "response", "prompt", "term", "left", "match", "right")
#: Columns of JSON whose texts may repeat what was said: unknown fields, and vocabulary of the user.
_JSON = ("extra", "word_boost", "custom_spelling", "topics")
_SPOKEN = ("words", "utterance_words")
_TIMED = ("transcript_id", "text", "start_ms", "end_ms")
#: Columns that tables need to be masked.
_NEEDED = {
    "entities": ("entity_type", *_TIMED),
    **dict.fromkeys(_SPOKEN, _TIMED),
    "transcripts": ("transcript_id", "status", "entity_detection", "redact_pii"),
}
_COMPOUND = re.compile(r"\w+(?:[-@./]\w+)+")  # such as a double name or an address
_CODE = re.compile(r"[A-Z]{1,2}|[A-Za-z]*[ _-]?\d+[A-Z]?|[^A-Z]*")  # a label of a speaker that is no name
_SPOKEN_PART = re.compile(r"\w(?:.*\w)?", re.DOTALL)  # words without the punctuation around them


class _Span(NamedTuple):
    """Personal data in a text: its place, and the label to write instead."""

    start: int
    end: int
    label: str


@takes_frames
def mask(
    tables: Mapping[str, pd.DataFrame], how: Literal["mask", "drop"] = "mask", types: Collection[str] | None = None
) -> dict[str, pd.DataFrame]:
    """Return copies of tables without the personal data that entity detection found.

    The words of such an entity are replaced by a label such as `[PERSON_NAME]`, or dropped. These are the words of its
    text that were spoken during its time, or all words of that time if the text is written in another way. The same is
    done for other occurrences in the same transcript: in words, turns, summaries and all other texts, also in columns
    of JSON.

    An occurrence is the text of the entity or its words. It is also a part of either, if this part is capitalized or
    contains a digit. What a hyphen, `@`, `.` or `/` joins to an occurrence belongs to it. Punctuation around it stays.

    The words of an occurrence become one row, so that words, turns and every format that is made of them have the same
    text. The row lasts from the start of the first word to the end of the last one and has the other values of the
    first. So masked tables have fewer words, and formats with an entry per word, such as CTM, have one for each label.

    Names of speakers are replaced by their labels, and `text_original` is null. A label with a capital that is not a
    code, such as "Anna" in captions, is a name, too: it becomes "Speaker 1", and so on in each transcript. "A",
    "SPEAKER_00" and "agent" are kept. Personal data that entity detection did
    not find is not masked. For example, a text that describes a person in other words is unchanged.

    Args:
        tables: Tables by name. `entities` is required, and `words` is recommended.
        how: "mask" or "drop".
        types: Types of entities that count as personal data. None (default): `voxframe.options.PII_POLICIES`.

    Returns:
        The masked tables by name. In `entities`, the text of personal entities is masked, or their rows are dropped.

    Raises:
        OptionError: `entities` is missing, a transcript was created without entity detection, or there is no such type.
        ValueError: A table lacks a column.

    Example:
        >>> said = {"transcript_id": "t", "text": ["I'm", "Ann."], "start_ms": [0, 300], "end_ms": [200, 700]}
        >>> found = {"transcript_id": "t", "entity_type": ["person_name"], "text": "Ann", "start_ms": 300}
        >>> found |= {"end_ms": [700]}
        >>> mask({"words": pd.DataFrame(said), "entities": pd.DataFrame(found)})["words"]["text"].to_list()
        ["I'm", '[PERSON_NAME].']
    """
    if how not in ("mask", "drop"):
        raise OptionError(f"how must be 'mask' or 'drop', got {shown(how)}")
    if not isinstance(tables, Mapping):
        kind = type(tables).__name__
        raise OptionError(f'mask needs a dict of tables, such as {{"words": words}}, not of type {kind}')
    if "entities" not in tables:
        raise OptionError("the table entities, which locates personal data, is missing; add it to the tables")
    for name, columns in _NEEDED.items():
        if name in tables:
            require(tables[name], columns, f"mask, in the table {name},")
    return masked_tables(tables, how, personal_types(types, lambda: tables["entities"]["entity_type"]))


def personal_types(kinds: Collection[str] | None, occurring: Callable[[], Iterable[object]]) -> list[str]:
    """Return the types of entities that count as personal data; `occurring` returns those that occur, maybe others."""
    if kinds is None:
        return [*PII_POLICIES]
    types = name_list(kinds, "types of personal data")
    if not types:
        raise OptionError("the types of personal data are an empty list, so that none would be masked; name some")
    allowed = [*PII_POLICIES]
    if any(kind not in allowed for kind in types):
        allowed = [*dict.fromkeys([*allowed, *(kind for kind in occurring() if isinstance(kind, str))])]
    for kind in types:
        if kind not in allowed:
            raise OptionError(
                f"{shown(kind)} is not a type of personal data, and no entity has it{nearest(kind, allowed)}; "
                f"there is {', '.join(sorted(allowed))}"
            )
    return types


def masked_tables(
    tables: Mapping[str, pd.DataFrame], how: Literal["mask", "drop"], types: Collection[str]
) -> dict[str, pd.DataFrame]:
    """Return copies of tables without the personal data; `mask` describes the arguments."""
    check_detected(tables.get("transcripts"))
    entities = tables["entities"]
    personal = entities["entity_type"].isin(list(types)).to_numpy(bool)
    personal_rows = entities[personal]
    hits = {name: _entity_of_word(tables[name], personal_rows) for name in _SPOKEN if name in tables}
    patterns = _patterns(personal_rows, [(tables[name], hit) for name, hit in hits.items()])
    done = {}
    for name, df in tables.items():
        if name in hits:
            done[name] = _words(df, hits[name], personal_rows, patterns, how)
        elif name == "entities":
            done[name] = df[~personal] if how == "drop" else _labelled(df, personal)
        else:
            done[name] = _texts(df, patterns, how)
    labels = _names_as_labels(done.values())
    return {name: _unnamed(_json_masked(df, patterns, how), labels) for name, df in done.items()}


def _names_as_labels(tables: Iterable[pd.DataFrame]) -> dict[tuple[object, object], str]:
    """Return other labels for those that are names, as in files of other tools, by transcript and label."""
    labels: dict[object, dict[object, str]] = {}
    for df in tables:
        if {"transcript_id", "speaker"} <= set(df.columns):
            for transcript_id, label in df[["transcript_id", "speaker"]].dropna().drop_duplicates().to_numpy().tolist():
                if not _CODE.fullmatch(str(label)):
                    of_transcript = labels.setdefault(transcript_id, {})
                    of_transcript.setdefault(label, f"Speaker {len(of_transcript) + 1}")
    return {(i, label): other for i, of_transcript in labels.items() for label, other in of_transcript.items()}


def _unnamed(df: pd.DataFrame, labels: Mapping[tuple[object, object], str]) -> pd.DataFrame:
    """Replace names of speakers by labels, because names are personal data, and remove texts before a correction."""
    if "text_original" in df:
        df = df.assign(text_original=_column([None] * len(df), df["text_original"]))
    if labels and {"transcript_id", "speaker"} <= set(df.columns):
        speakers = zip(df["transcript_id"], df["speaker"], strict=True)
        df = df.assign(speaker=_column([labels.get(key, key[1]) for key in speakers], df["speaker"]))
    return df.assign(speaker_name=df["speaker"]) if {"speaker", "speaker_name"} <= set(df.columns) else df


def check_detected(transcripts: pd.DataFrame | None) -> None:
    """Check that personal data was located in every transcript."""
    if transcripts is None:
        return
    is_detected = transcripts["entity_detection"].fillna(False) | transcripts["redact_pii"].fillna(False)
    unknown = transcripts.loc[~is_detected.astype(bool) & (transcripts["status"] != "error"), "transcript_id"]
    if len(unknown):
        raise OptionError(
            f"personal data cannot be located in {quantity(len(unknown), 'transcript')} without entity_detection, "
            f"such as {unknown.iloc[0]!r}; add it with corpus.analyze(entity_detection=True), which knows "
            "English only, or transcribe them with entity_detection=True, or leave them out with ids="
        )


def _entity_of_word(words: pd.DataFrame, entities: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the index of the entity that each word is part of, or -1.

    These are the words during the time of the entity: those that are its text if a speaker says it, else all of them.
    If times are missing, the words of its text.
    """
    hit = np.full(len(words), -1)
    start, end = (words[name].astype("float64").to_numpy() for name in ("start_ms", "end_ms"))
    voice, _ = speaker_codes(words)
    of_transcript = words.groupby("transcript_id", sort=False).indices
    rows = zip(*(entities[name] for name in ("transcript_id", "text", "start_ms", "end_ms")), strict=True)
    for place, (transcript_id, text, first, last) in enumerate(rows):
        places = of_transcript.get(transcript_id, np.empty(0, int))
        timed = ~np.isnan(start[places]) & ~np.isnan(end[places]) & bool(pd.notna(first) and pd.notna(last))
        inside = np.zeros(len(places), bool)
        if timed.any():
            inside = timed & (start[places] < last) & (np.maximum(end[places], start[places] + 1) > first)
        of_entity = np.zeros(len(places), bool)
        for speaker in np.unique(voice[places[inside]]) if isinstance(text, str) else ():
            at = np.flatnonzero(inside & (voice[places] == speaker))
            of_entity[at[_saying(_bare(text), [_bare(word) for word in words["text"].iloc[places[at]]])]] = True
        inside = of_entity if of_entity.any() else inside
        if not timed.all() and isinstance(text, str):
            named = {_bare(part) for part in text.split()}
            inside |= ~timed & np.array([_bare(word) in named for word in words["text"].iloc[places]], bool)
        hit[places[inside]] = place
    return hit


def _saying(text: str, words: list[str]) -> list[int]:
    """Return the positions of the words that say a text, at every place; all are without blanks and punctuation.

    Example:
        >>> _saying("annsmith", ["is", "ann", "smith", "smithson"])
        [1, 2]
    """
    edges, joined = list(accumulate(map(len, words), initial=0)), "".join(words)
    positions: list[int] = []
    begin = joined.find(text) if text else -1
    while begin >= 0:
        if {begin, begin + len(text)} <= {*edges}:
            positions += range(bisect(edges, begin) - 1, bisect_left(edges, begin + len(text)))
        begin = joined.find(text, begin + 1)
    return positions


def _patterns(
    entities: pd.DataFrame, spoken: list[tuple[pd.DataFrame, Any]]
) -> dict[str, list[tuple[re.Pattern[str], str]]]:
    """Return the patterns and replacement labels for each transcript, the longest phrase first.

    A phrase of more than one word matches in any case. A single word matches only as written or capitalized, so that
    "May" does not match "may".
    """
    phrases: dict[str, dict[tuple[str, bool], str]] = {}
    for place, (transcript_id, kind, text) in enumerate(
        zip(entities["transcript_id"], entities["entity_type"], entities["text"], strict=True)
    ):
        labels = phrases.setdefault(transcript_id, {})
        for phrase in (text, *(" ".join(df["text"][hit == place].dropna()) for df, hit in spoken)):
            parts = re.findall(r"\w+", phrase) if isinstance(phrase, str) else []
            if len(parts) == 1:
                labels |= {(word, True): _label(kind) for word in (*parts, parts[0].capitalize(), parts[0].upper())}
            elif parts:
                labels[" ".join(parts), False] = _label(kind)
                labels |= {(part, True): _label(kind) for part in parts if len(part) > 1 and part != part.lower()}
                labels |= {(part, True): _label(kind) for part in parts if len(part) > 1 and re.search(r"\d", part)}
    return {
        transcript_id: [
            (_pattern(phrase, exact=exact), label)
            for (phrase, exact), label in sorted(labels.items(), key=lambda item: -len(item[0][0]))
        ]
        for transcript_id, labels in phrases.items()
    }


def _pattern(phrase: str, *, exact: bool) -> re.Pattern[str]:
    between = r"\W+".join(re.findall(r"\w+", phrase))
    return re.compile(rf"(?<!\w){between}(?!\w)", 0 if exact else re.IGNORECASE)


def _words(df: pd.DataFrame, hit: Any, entities: pd.DataFrame, patterns: Mapping[str, Any], how: str) -> pd.DataFrame:
    """Mask or drop words that are part of an entity, and words elsewhere in the transcript that match one.

    The words of a turn are masked as the text of the turn is, so that both read the same. Words that become one label
    become one row.
    """
    keys = [name for name in ("transcript_id", "utterance_idx", "speaker", "channel") if name in df]
    turn = df.groupby(keys, sort=False, dropna=False, observed=True).ngroup().to_numpy()
    if len(df):  # words outside utterances belong together until the speaker changes
        alone = df["utterance_idx"].isna().to_numpy(bool) if "utterance_idx" in df else np.ones(len(df), bool)
        turn = np.where(alone, -np.cumsum(np.r_[True, turn[1:] != turn[:-1]]), turn)
    order = np.argsort(turn, kind="stable")
    kinds = entities["entity_type"].map(_label).to_numpy(object)
    texts, end = df["text"].to_numpy(object).copy(), df["end_ms"].to_numpy(np.float64, na_value=np.nan)
    keep = np.ones(len(df), bool)
    for rows in np.split(order, np.flatnonzero(np.diff(turn[order])) + 1) if len(df) else []:
        words = [text if isinstance(text, str) else "" for text in texts[rows]]
        text, starts = " ".join(words), list(accumulate((len(word) + 1 for word in words), initial=0))
        spans = _personal(text, patterns.get(df["transcript_id"].iloc[rows[0]], ()))
        for place, same in groupby(enumerate(hit[rows].tolist()), itemgetter(1)):
            numbers = [n for n, _ in same]
            heard = _SPOKEN_PART.search(text, starts[numbers[0]], starts[numbers[-1] + 1] - 1)
            if place >= 0 and heard:
                spans = _widened(spans, *heard.span(), kinds[place])
        for first, last, inside in _by_word(spans, starts):
            at = rows[first : last + 1]
            texts[at[0]] = _replaced(text, inside, starts[first], starts[last + 1] - 1)
            end[at[0]] = np.fmax.reduce(end[at])
            keep[at if how == "drop" else at[1:]] = False
    masked = df.assign(text=_column(texts, df["text"]), end_ms=_column(end, df["end_ms"]))
    return masked.iloc[np.flatnonzero(keep)].reset_index(drop=True)


def _by_word(spans: list[_Span], starts: list[int]) -> list[tuple[int, int, list[_Span]]]:
    """Return the first and the last word of spans that share no word with others, and these spans."""
    groups: list[tuple[int, int, list[_Span]]] = []
    for span in spans:
        first, last = bisect(starts, span.start) - 1, bisect_left(starts, span.end) - 1
        if groups and first <= groups[-1][1]:
            groups[-1] = (groups[-1][0], last, [*groups[-1][2], span])
        else:
            groups.append((first, last, [span]))
    return groups


def _labelled(df: pd.DataFrame, rows: Any) -> pd.DataFrame:
    labels = df["entity_type"].map(_label, na_action="ignore")
    return df.assign(text=_column(df["text"].where(~rows, labels).to_numpy(object), df["text"]))


def _texts(df: pd.DataFrame, patterns: Mapping[str, Any], how: str) -> pd.DataFrame:
    if "transcript_id" not in df:
        return df
    changed = {}
    for name in _TEXTS:
        if name not in df:
            continue
        texts = df[name].to_numpy(object).copy()
        for n, (transcript_id, text) in enumerate(zip(df["transcript_id"], texts, strict=True)):
            if isinstance(text, str):
                texts[n] = _masked(text, patterns.get(transcript_id, ()), how)
        changed[name] = _column(texts, df[name])
    return df.assign(**changed)


def _json_masked(df: pd.DataFrame, patterns: Mapping[str, Any], how: str) -> pd.DataFrame:
    """Mask the texts in columns of JSON."""
    changed = {}
    for name in _JSON if "transcript_id" in df else ():
        if name not in df or not df[name].notna().any():
            continue
        texts = df[name].to_numpy(object).copy()
        for n, (transcript_id, text) in enumerate(zip(df["transcript_id"], texts, strict=True)):
            if isinstance(text, str) and transcript_id in patterns:
                texts[n] = _json_text_masked(text, patterns[transcript_id], how)
        changed[name] = _column(texts, df[name])
    return df.assign(**changed)


def _json_text_masked(text: str, patterns: Sequence[tuple[re.Pattern[str], str]], how: str) -> str:
    def masked(value: Any) -> Any:
        if isinstance(value, str):
            return _masked(value, patterns, how)
        if isinstance(value, list):
            return [masked(item) for item in value]
        if isinstance(value, dict):
            return {masked(key): masked(item) for key, item in value.items()}
        return value

    try:
        decoded = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _masked(text, patterns, how)
    done = masked(decoded)
    return text if done == decoded else orjson.dumps(done).decode()


def _masked(text: str, patterns: Sequence[tuple[re.Pattern[str], str]], how: str) -> str:
    """Return a text with its personal data replaced by labels, or without it."""
    spans = _personal(text, patterns)
    if how == "mask" or not spans:
        return _replaced(text, spans)
    return " ".join(_replaced(text, [span._replace(label="") for span in spans]).split())


def _personal(text: str, patterns: Sequence[tuple[re.Pattern[str], str]]) -> list[_Span]:
    """Return the personal data in a text, in order. Longer phrases go first; a compound word is personal as a whole."""
    spans: list[_Span] = []
    for pattern, label in patterns:
        for match in pattern.finditer(text):
            if not _overlapping(spans, *match.span()):
                spans.append(_Span(*match.span(), label))
    for match in _COMPOUND.finditer(text) if spans else ():
        if _overlapping(spans, *match.span()):
            spans = _widened(spans, *match.span())
    return sorted(spans)


def _overlapping(spans: list[_Span], start: int, end: int) -> list[_Span]:
    return [span for span in spans if span.start < end and start < span.end]


def _widened(spans: list[_Span], start: int, end: int, label: str = "") -> list[_Span]:
    """Return the spans with a part of the text joined to those that it overlaps, else as a span with the label."""
    over = _overlapping(spans, start, end)
    ends = [place for span in over for place in span[:2]] + [start, end]
    union = _Span(min(ends), max(ends), over[0].label if over else label)
    return sorted([*(span for span in spans if span not in over), union])


def _replaced(text: str, spans: list[_Span], start: int = 0, end: int | None = None) -> str:
    """Return a part of a text with its spans replaced by their labels."""
    parts = []
    for span in spans:
        parts += [text[start : span.start], span.label]
        start = span.end
    return "".join([*parts, text[start:end]])


def _column(texts: Any, like: Any) -> Any:
    return pd.Series(texts, index=like.index, dtype=like.dtype)


def _bare(word: object) -> str:
    return re.sub(r"\W", "", str(word)).casefold()


def _label(kind: object) -> str:
    return f"[{str(kind).upper()}]"
