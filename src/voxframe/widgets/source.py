"""What a player is given: the tables of one transcript, and what its speakers are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import pandas as pd

from voxframe.analysis.columns import voices
from voxframe.corpus import Corpus
from voxframe.corpus.sources import Fetcher, Handle, Source, resolve
from voxframe.loading import load_some

#: One transcript: what `voxframe.tables` takes, the tables it gives, or a DataFrame of words.
Given: TypeAlias = "Source | pd.DataFrame | Mapping[str, pd.DataFrame]"

#: What a player shows. No more is asked for: an identifier that a corpus has needs no service.
_NEEDED = ("words", "utterances", "utterance_words", "chapters", "entities", "content_safety")


def tables(source: Any, client: Fetcher | None, corpus: Corpus | None) -> Mapping[str, pd.DataFrame]:
    """Tables of one transcript, with words even where only turns are known.

    Raises:
        ValueError: There is no table of words.
    """
    if isinstance(source, pd.DataFrame):
        return {"words": source}
    found = source if _is_tables(source) else load_some(_NEEDED, source, client, corpus)
    if "words" not in found:
        raise ValueError(f"TranscriptPlayer needs the table 'words'; there is {', '.join(found)}")
    if found["words"].empty and (turns := found.get("utterances")) is not None and len(turns):
        return {**found, "words": turns}  # a turn whose words are not known is read, and sought, as one
    return {**found, "words": _in_turns(found["words"], found.get("utterance_words"))}


def keeper(source: Any, client: Fetcher | None, corpus: Corpus | None) -> Corpus | None:
    """The corpus that has a transcript, or gets it by loading it; None where none was asked for."""
    if corpus is not None or isinstance(source, pd.DataFrame) or _is_tables(source):
        return corpus
    remote = isinstance(source, Handle) or (isinstance(source, str) and not isinstance(resolve(source, client), bytes))
    return Corpus() if remote else None


def given_names(words: pd.DataFrame) -> tuple[dict[str, str], dict[str, str]]:
    """Names in a corpus's column `speaker_name`: by label, and of turns with another by `utterance_idx` as text.

    Example:
        >>> given_names(pd.DataFrame({"speaker": ["A", "A", "A"], "speaker_name": ["Ada", "Bo", "Ada"],
        ...                           "utterance_idx": [0, 1, 2]}))
        ({'A': 'Ada'}, {'1': 'Bo'})
    """
    if "speaker_name" not in words.columns:
        return {}, {}
    known = pd.DataFrame({"label": labels(words), "name": words["speaker_name"]}).dropna()
    names = {str(label): str(rows.mode().iloc[0]) for label, rows in known.groupby("label")["name"]}
    turns: dict[str, str] = {}
    if "utterance_idx" in words.columns:
        other = known[known["name"] != known["label"].map(names)]
        turns = {str(turn): name for turn, name in zip(words["utterance_idx"][other.index], other["name"], strict=True)}
    return {label: name for label, name in names.items() if name != label}, turns


def labels(words: pd.DataFrame) -> pd.Series[str]:
    """Who speaks in each row as the service said it: the speaker's label, else "channel" and its name, else null."""
    return voices(words.drop(columns="speaker_name", errors="ignore"))


def _is_tables(source: Any) -> bool:
    return isinstance(source, Mapping) and len(source) > 0 and all(isinstance(t, pd.DataFrame) for t in source.values())


def _in_turns(words: pd.DataFrame, spoken: pd.DataFrame | None) -> pd.DataFrame:
    """Words with the turn of each: of turns that overlap, as on two channels, only `utterance_words` knows it."""
    if spoken is None or spoken.empty or "utterance_idx" not in words.columns:
        return words
    same = ["text", "start_ms", "end_ms", "speaker", "channel"]
    told = words[same].merge(spoken.drop_duplicates(same)[[*same, "utterance_idx"]], how="left", on=same)
    return words.assign(utterance_idx=words["utterance_idx"].fillna(told["utterance_idx"].set_axis(words.index)))
