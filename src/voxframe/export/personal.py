"""Personal data left out of tables before they go anywhere."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from voxframe.errors import OptionError
from voxframe.options import PII_POLICIES

#: Columns that hold what was said, or what was made of it.
_TEXTS = ("text", "summary", "headline", "gist", "response", "prompt", "query", "left", "match", "right")
_SPOKEN = ("words", "utterance_words")


def mask(
    tables: Mapping[str, pd.DataFrame], how: Literal["mask", "drop"] = "mask", types: Collection[str] | None = None
) -> dict[str, pd.DataFrame]:
    """Tables without the personal data that entity detection found.

    Words said at the time of such an entity become `[PERSON_NAME]` and the like, or are dropped. Wherever else in the
    same transcript the entity stands, the words it was said with, or a part of it that is capitalised or holds a digit,
    they are left out in the same way: in other words, turns, summaries, every text.

    Names that were given to speakers become their labels again. What entity detection did not find is not masked. A
    text that names somebody in other words stays as it is.

    Args:
        tables: Tables by name; `entities` must be among them, and `words` should be.
        how: "mask" or "drop".
        types: Types of entities that are personal; None are those of `voxframe.options.PII_POLICIES`.

    Returns:
        The same tables; of `entities` the text of those entities is masked, or they are dropped.

    Raises:
        OptionError: `entities` is missing, or a transcript was made without entity detection.

    Example:
        >>> said = {"transcript_id": "t", "text": ["I'm", "Ann."], "start_ms": [0, 300], "end_ms": [200, 700]}
        >>> found = {"transcript_id": "t", "entity_type": ["person_name"], "text": "Ann", "start_ms": 300}
        >>> found |= {"end_ms": [700]}
        >>> mask({"words": pd.DataFrame(said), "entities": pd.DataFrame(found)})["words"]["text"].to_list()
        ["I'm", '[PERSON_NAME]']
    """
    if how not in ("mask", "drop"):
        raise OptionError(f"personal data is left out with 'mask' or 'drop', not {how!r}")
    if "entities" not in tables:
        raise OptionError("where personal data is says the table entities; put it among the tables")
    if isinstance(types, str):
        types = [types]
    _check_detected(tables.get("transcripts"))
    entities = tables["entities"]
    personal = entities["entity_type"].isin(list(PII_POLICIES if types is None else types)).to_numpy(bool)
    chosen = entities[personal]
    hits = {name: _entity_of_word(tables[name], chosen) for name in _SPOKEN if name in tables}
    patterns = _patterns(chosen, [(tables[name], hit) for name, hit in hits.items()])
    done = {}
    for name, df in tables.items():
        if name in hits:
            done[name] = _words(df, hits[name], chosen, patterns, how)
        elif name == "entities":
            done[name] = df[~personal] if how == "drop" else _labelled(df, personal)
        else:
            done[name] = _texts(df, patterns, how)
    return {name: _unnamed(df) for name, df in done.items()}


def _unnamed(df: pd.DataFrame) -> pd.DataFrame:
    """Speakers by their labels: the names they were given are personal."""
    return df.assign(speaker_name=df["speaker"]) if {"speaker", "speaker_name"} <= set(df.columns) else df


def _check_detected(transcripts: pd.DataFrame | None) -> None:
    if transcripts is None:
        return
    known = transcripts["entity_detection"].fillna(False) | transcripts["redact_pii"].fillna(False)
    unknown = transcripts.loc[~known.astype(bool) & (transcripts["status"] != "error"), "transcript_id"]
    if len(unknown):
        raise OptionError(
            f"{len(unknown)} transcripts were made without entity_detection, so nobody knows where their personal data "
            f"is, such as {unknown.iloc[0]!r}; leave them out with ids=, or transcribe them with entity_detection=True"
        )


def _entity_of_word(words: pd.DataFrame, entities: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.int64]]:
    """For each word the place of the entity it is part of, or -1. Without times on either side the text decides."""
    hit = np.full(len(words), -1)
    start, end = (words[name].astype("float64").to_numpy() for name in ("start_ms", "end_ms"))
    of_transcript = words.groupby("transcript_id", sort=False).indices
    rows = zip(*(entities[name] for name in ("transcript_id", "text", "start_ms", "end_ms")), strict=True)
    for place, (transcript_id, text, first, last) in enumerate(rows):
        places = of_transcript.get(transcript_id, np.empty(0, int))
        timed = ~np.isnan(start[places]) & ~np.isnan(end[places]) & bool(pd.notna(first) and pd.notna(last))
        inside = np.zeros(len(places), bool)
        if timed.any():
            inside = timed & (start[places] < last) & (np.maximum(end[places], start[places] + 1) > first)
        if not timed.all() and isinstance(text, str):
            named = {_bare(part) for part in text.split()}
            inside |= ~timed & np.array([_bare(word) in named for word in words["text"].iloc[places]], bool)
        hit[places[inside]] = place
    return hit


def _patterns(
    entities: pd.DataFrame, spoken: list[tuple[pd.DataFrame, Any]]
) -> dict[str, list[tuple[re.Pattern[str], str]]]:
    """For each transcript what to look for in texts and what to write for it, the longest first.

    Several words are looked for in any case, a single one as it is written or with a capital: "May" is not "may".
    """
    phrases: dict[str, dict[tuple[str, bool], str]] = {}
    for place, (transcript_id, kind, text) in enumerate(
        zip(entities["transcript_id"], entities["entity_type"], entities["text"], strict=True)
    ):
        found = phrases.setdefault(transcript_id, {})
        for phrase in (text, *(" ".join(df["text"][hit == place].dropna()) for df, hit in spoken)):
            parts = re.findall(r"\w+", phrase) if isinstance(phrase, str) else []
            if len(parts) == 1:
                found |= {(word, True): _label(kind) for word in (*parts, parts[0].capitalize(), parts[0].upper())}
            elif parts:
                found[" ".join(parts), False] = _label(kind)
                found |= {(part, True): _label(kind) for part in parts if len(part) > 1 and part != part.lower()}
                found |= {(part, True): _label(kind) for part in parts if len(part) > 1 and re.search(r"\d", part)}
    return {
        transcript_id: [
            (_pattern(phrase, exact=exact), label)
            for (phrase, exact), label in sorted(found.items(), key=lambda item: -len(item[0][0]))
        ]
        for transcript_id, found in phrases.items()
    }


def _pattern(phrase: str, *, exact: bool) -> re.Pattern[str]:
    between = r"\W+".join(re.findall(r"\w+", phrase))
    return re.compile(rf"(?<!\w){between}(?!\w)", 0 if exact else re.IGNORECASE)


def _words(df: pd.DataFrame, hit: Any, entities: pd.DataFrame, patterns: Mapping[str, Any], how: str) -> pd.DataFrame:
    """Words of entities, and words anywhere else in the transcript that name the same."""
    of_entities = entities["entity_type"].map(_label).to_numpy(object)
    labels = [of_entities[place] if place >= 0 else None for place in hit]
    for n, (transcript_id, text) in enumerate(zip(df["transcript_id"], df["text"], strict=True)):
        if labels[n] is None and isinstance(text, str):
            labels[n] = next(
                (label for pattern, label in patterns.get(transcript_id, ()) if pattern.search(text)), None
            )
    named = np.array([label is not None for label in labels], bool)
    if how == "drop":
        return df.iloc[np.flatnonzero(~named)].reset_index(drop=True)
    texts = [text if label is None else label for text, label in zip(df["text"], labels, strict=True)]
    return df.assign(text=_column(texts, df["text"]))


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
                for pattern, label in patterns.get(transcript_id, ()):
                    text = pattern.sub("" if how == "drop" else label, text)
                texts[n] = " ".join(text.split()) if how == "drop" else text
        changed[name] = _column(texts, df[name])
    return df.assign(**changed)


def _column(texts: Any, like: Any) -> Any:
    return pd.Series(texts, index=like.index, dtype=like.dtype)


def _bare(word: object) -> str:
    return re.sub(r"\W", "", str(word)).casefold()


def _label(kind: object) -> str:
    return f"[{str(kind).upper()}]"
