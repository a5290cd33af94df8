"""Masking of personal data in tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from voxframe.errors import OptionError
from voxframe.options import PII_POLICIES

#: Columns with spoken text, or with text derived from it.
_TEXTS = ("text", "summary", "headline", "gist", "response", "prompt", "term", "left", "match", "right")
_SPOKEN = ("words", "utterance_words")


def mask(
    tables: Mapping[str, pd.DataFrame], how: Literal["mask", "drop"] = "mask", types: Collection[str] | None = None
) -> dict[str, pd.DataFrame]:
    """Return copies of tables without the personal data that entity detection found.

    Words spoken during such an entity become a label such as `[PERSON_NAME]`, or are dropped. The same is done for
    other occurrences in the same transcript: in words, turns, summaries and all other texts. An occurrence is the text
    of the entity, the words spoken during it, or a part of either that is capitalized or contains a digit.

    Names of speakers are replaced by their labels, and `text_original` is null. Personal data that entity detection did
    not find is not masked. For example, a text that describes a person in other words is unchanged.

    Args:
        tables: Tables by name. `entities` is required, and `words` is recommended.
        how: "mask" or "drop".
        types: Types of entities that count as personal data. None (default): `voxframe.options.PII_POLICIES`.

    Returns:
        The masked tables by name. In `entities`, the text of personal entities is masked, or their rows are dropped.

    Raises:
        OptionError: `entities` is missing, or a transcript was created without entity detection.

    Example:
        >>> said = {"transcript_id": "t", "text": ["I'm", "Ann."], "start_ms": [0, 300], "end_ms": [200, 700]}
        >>> found = {"transcript_id": "t", "entity_type": ["person_name"], "text": "Ann", "start_ms": 300}
        >>> found |= {"end_ms": [700]}
        >>> mask({"words": pd.DataFrame(said), "entities": pd.DataFrame(found)})["words"]["text"].to_list()
        ["I'm", '[PERSON_NAME]']
    """
    if how not in ("mask", "drop"):
        raise OptionError(f"how must be 'mask' or 'drop', not {how!r}")
    if "entities" not in tables:
        raise OptionError("the table entities, which locates personal data, is missing; add it to the tables")
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
    """Replace speaker names by their labels, because names are personal data, and remove texts before a correction."""
    if "text_original" in df:
        df = df.assign(text_original=_column([None] * len(df), df["text_original"]))
    return df.assign(speaker_name=df["speaker"]) if {"speaker", "speaker_name"} <= set(df.columns) else df


def _check_detected(transcripts: pd.DataFrame | None) -> None:
    if transcripts is None:
        return
    known = transcripts["entity_detection"].fillna(False) | transcripts["redact_pii"].fillna(False)
    unknown = transcripts.loc[~known.astype(bool) & (transcripts["status"] != "error"), "transcript_id"]
    if len(unknown):
        raise OptionError(
            f"personal data cannot be located in {len(unknown)} transcripts without entity_detection, such as "
            f"{unknown.iloc[0]!r}; leave them out with ids=, or transcribe them with entity_detection=True"
        )


def _entity_of_word(words: pd.DataFrame, entities: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the index of the entity that each word is part of, or -1. Texts are compared if times are missing."""
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
    """Return the patterns and replacement labels for each transcript, the longest phrase first.

    A phrase of more than one word matches in any case. A single word matches only as written or capitalized, so that
    "May" does not match "may".
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
    """Mask or drop words that are part of an entity, and words elsewhere in the transcript that match one."""
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
