"""Occurrences of words and phrases in a DataFrame of words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe.analysis.columns import require
from voxframe.analysis.terms import Term, parse, spoken
from voxframe.analysis.turns import TEXT

Array: TypeAlias = npt.NDArray[Any]


def find_words(words: pd.DataFrame, queries: str | Iterable[str]) -> pd.DataFrame:
    """Every occurrence of words and phrases, by the rules of `Corpus.search`.

    Case, accents and punctuation make no difference; `*` in a word stands for any letters, alone for any word. A phrase
    is what was said in one transcript on one channel, in the order of the rows.

    Args:
        words: Words, as `voxframe.load_words` gives them.
        queries: Word or phrase, or several.

    Returns:
        One row per occurrence, by query, in the order of the words: `query` str, `match_idx` int64 (from 0 in each
        query and transcript), and of its first word all columns of `words` but `text` and `end_ms`; `end_ms` is the
        end of its last word.

    Raises:
        ValueError: A column is missing.
        OptionError: A query holds no word.

    Example:
        >>> words = pd.DataFrame({"text": ["New", "York,", "new", "day"], "start_ms": [0, 9, 20, 30],
        ...                       "end_ms": [8, 15, 29, 40]})
        >>> find_words(words, ["new york", "new"])[["query", "start_ms", "end_ms"]].values.tolist()
        [['new york', 0, 15], ['new', 0, 8], ['new', 20, 29]]
    """
    require(words, ("text", "start_ms", "end_ms"), "find_words")
    asked = {query: parse(query) for query in ([queries] if isinstance(queries, str) else queries)}
    form, forms = pd.factorize(words["text"])
    folded = [spoken(text) for text in forms]
    # Channel by channel: the words of people who talk at once alternate, and a phrase is what one of them says.
    speech = [pd.factorize(words[c])[0] for c in ("channel", "transcript_id") if c in words.columns]
    order = np.lexsort(speech) if speech else np.arange(len(words))
    order = order[form[order] >= 0]
    counts = np.array([len(tokens) for tokens in folded], np.intp)[form[order]]
    row = np.repeat(order, counts)
    token, keys = pd.factorize(np.array([key for n in form[order] for key in folded[n]], object))
    run = np.zeros(len(row), np.intp)
    for part in speech:
        run += np.r_[0, np.cumsum(np.diff(part[row]) != 0)] if len(row) else 0
    found = []
    for query, terms in asked.items():
        first = _phrase(token, run, [_wanted(keys, term) for term in terms])
        begin, end = row[first], row[first + len(terms) - 1]
        place = np.argsort(begin, kind="stable")
        matches = words.iloc[begin[place]].drop(columns="text").reset_index(drop=True)
        matches["end_ms"] = words["end_ms"].iloc[end[place]].to_numpy()
        of = matches.groupby("transcript_id", dropna=False, sort=False) if "transcript_id" in matches else None
        matches.insert(0, "match_idx", np.arange(len(matches)) if of is None else of.cumcount().to_numpy())
        matches.insert(0, "query", pd.Series([query] * len(matches), dtype=TEXT))
        found.append(matches)
    empty = words.iloc[:0].drop(columns="text").assign(query=pd.Series(dtype=TEXT), match_idx=np.empty(0, np.int64))
    return pd.concat(found, ignore_index=True) if found else empty


def _wanted(keys: Array, term: Term) -> Array:
    """Which keys a term means."""
    pattern = re.compile(".*".join(map(re.escape, term.parts)), re.DOTALL)
    return np.array([pattern.fullmatch(key) is not None for key in keys], bool)


def _phrase(token: Array, run: Array, wanted: list[Array]) -> Array:
    """First token of every stretch of one run whose tokens are the wanted ones in order."""
    first = np.arange(max(0, len(token) - len(wanted) + 1))
    for n, keys in enumerate(wanted):
        first = first[keys[token[first + n]]] if len(keys) else first[:0]
    whole: Array = first[run[first] == run[first + len(wanted) - 1]]
    return whole
