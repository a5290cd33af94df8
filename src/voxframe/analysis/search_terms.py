"""Search terms, normalized for comparison, and their occurrences in a DataFrame of words.

In scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer and Burmese), a word is what ICU finds with its
dictionaries (extra `scripts`); without it, a character with its vowel signs and tone marks. Searches find characters in
both cases, so that any string inside a text is found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import accumulate, groupby, pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import TEXT, takes_frames
from voxframe._text import FUNCTION_WORDS, is_unspaced, join_words, pieces, search_form
from voxframe.analysis.rows import keeps_recordings, require, uses
from voxframe.errors import OptionError
from voxframe.validators import shown

Array: TypeAlias = npt.NDArray[Any]


_ACCENTS = re.compile("[\u0300-\u036f]")  # excludes the vowel signs of Indic scripts and the voicing marks of kana


@takes_frames
@keeps_recordings
@uses("text")
def find_words(words: pd.DataFrame, queries: str | Iterable[str]) -> pd.DataFrame:
    """Find every occurrence of words and phrases, by the rules of `Corpus.search`.

    Case, accents and punctuation are ignored, and a hyphen is a space: `third party`, `third-party` and `thirdparty`
    find each other. In scripts without spaces, such as Chinese and Thai, each character is a word. `*` inside a word
    matches any letters; alone, it matches any word. A phrase matches
    consecutive words of one transcript and one channel, in the order of the rows.

    Args:
        words: Words, as returned by `voxframe.load_words`. In longer rows, such as turns, an occurrence has the times
            of its row.
        queries: A word or phrase, or an iterable of them.

    Returns:
        One row per occurrence, grouped by term and in the order of the words: `term` str, `match_idx` int64 (counts
        from 0 in each term and transcript), and the columns of its first word except `text`. `end_ms` is the end of its
        last word.

    Raises:
        ValueError: A column is missing.
        OptionError: A query contains no word.

    Example:
        >>> words = pd.DataFrame({"text": ["New", "York,", "new", "day"], "start_ms": [0, 9, 20, 30],
        ...                       "end_ms": [8, 15, 29, 40]})
        >>> find_words(words, ["new york", "new"])[["term", "start_ms", "end_ms"]].values.tolist()
        [['new york', 0, 15], ['new', 0, 8], ['new', 20, 29]]
    """
    require(words, ("text", "start_ms", "end_ms"), "find_words")
    if not isinstance(queries, Iterable):
        raise OptionError(f"words to find are given as a text or a list of texts, got {shown(queries)}")
    asked = {query: parse(query) for query in ([queries] if isinstance(queries, str) else queries)}
    form, forms = pd.factorize(words["text"])
    folded = [spoken(text) for text in forms]
    # Search each channel separately: if people talk at once, their words alternate, which would split a phrase.
    speech = [pd.factorize(words[c])[0] for c in ("channel", "transcript_id") if c in words.columns]
    order = np.lexsort(speech) if speech else np.arange(len(words))
    order = order[form[order] >= 0]
    counts = np.array([len(tokens) for tokens in folded], np.intp)[form[order]]
    row = np.repeat(order, counts)
    token, keys = pd.factorize(np.array([key for n in form[order] for key in folded[n]], object))
    run = np.zeros(len(row), np.intp)
    for part in speech:
        run += np.r_[0, np.cumsum(np.diff(part[row]) != 0)] if len(row) else 0
    tables = []
    for query, terms in asked.items():
        first, last = _occurrences(token, run, row, keys, terms)
        begin, end = row[first], row[last]
        place = np.argsort(begin, kind="stable")
        matches = words.iloc[begin[place]].drop(columns="text").reset_index(drop=True)
        matches["end_ms"] = words["end_ms"].array.take(end[place])
        of = matches.groupby("transcript_id", dropna=False, sort=False) if "transcript_id" in matches else None
        matches.insert(0, "match_idx", np.arange(len(matches)) if of is None else of.cumcount().to_numpy())
        matches.insert(0, "term", pd.Series([query] * len(matches), dtype=TEXT))
        tables.append(matches)
    empty = words.iloc[:0].drop(columns="text").assign(term=pd.Series(dtype=TEXT), match_idx=np.empty(0, np.int64))
    return pd.concat(tables, ignore_index=True) if tables else empty


def _occurrences(token: Array, run: Array, row: Array, keys: Array, terms: list[Term]) -> tuple[Array, Array]:
    """Return the first and the last token of each match of a phrase or of one of its variants."""
    used = frozenset(keys.tolist())
    ends = []
    for variant in (Variant(terms), *variants(terms, used.__contains__)):
        first = _phrase(token, run, [_wanted(keys, term) for term in variant.terms])
        if variant.hyphen is not None:
            first = first[row[first + variant.hyphen] == row[first + variant.hyphen + 1]]
        ends.append(np.stack([first, first + len(variant.terms) - 1]))
    every = np.concatenate(ends, axis=1)
    return tuple(every[:, np.lexsort(every[::-1])])


def _wanted(keys: Array, term: Term) -> Array:
    """Return a mask of the keys that match a term."""
    pattern = re.compile(".*".join(map(re.escape, term.parts)), re.DOTALL)
    return np.array([pattern.fullmatch(key) is not None for key in keys], bool)


def _phrase(token: Array, run: Array, masks: list[Array]) -> Array:
    """Return the index of the first token of each match: consecutive tokens of one run, each matching its term."""
    first = np.arange(max(0, len(token) - len(masks) + 1))
    for n, keys in enumerate(masks):
        first = first[keys[token[first + n]]] if len(keys) else first[:0]
    matches: Array = first[run[first] == run[first + len(masks) - 1]]
    return matches


def fold(word: str) -> str:
    """Normalize a word for comparison: remove case, accents and punctuation.

    These are the rules of the embedded server's word search, plus the removal of accents.

    Example:
        >>> fold("Don't"), fold("“CAFÉ,”"), fold("3,000."), fold("3.5")
        ('dont', 'cafe', '3000', '3.5')
    """
    plain = search_form(word)
    if plain.isascii():
        return plain
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", plain)))


def spoken(text: str) -> list[str]:
    """Return the normalized words of a text, without words that contain only punctuation.

    A hyphen separates words. In scripts without spaces, such as Chinese and Thai, each character is a word.

    Example:
        >>> spoken("The third-party, ..."), spoken("今天")
        (['the', 'third', 'party'], ['今', '天'])
    """
    if text.isascii() and text.isalnum():  # fast path for most words
        return [text.lower()]
    return [token for word in text.split() for token in map(fold, pieces(word)) if token]


@dataclass(frozen=True)
class Term:
    """One word of a query.

    Attributes:
        parts: The text between the wildcards (`*`); a single part if the word has no wildcard.
        hyphen: True if a hyphen joins it to the next word of the query.
        regex: Regular expression that a whole word must match instead of `parts`.
    """

    parts: tuple[str, ...]
    hyphen: bool = field(default=False, compare=False)
    regex: str | None = None

    @property
    def word(self) -> str | None:
        """The word, if it has no wildcard."""
        return self.parts[0] if len(self.parts) == 1 and self.regex is None else None

    @property
    def any_word(self) -> bool:
        """True if the term is a single `*`, which matches every word."""
        return len(self.parts) > 1 and not any(self.parts)


def parse(query: str) -> list[Term]:
    """Return the terms of a query, in order.

    Example:
        >>> [term.parts for term in parse("the Econom*")]
        [('the',), ('econom', '')]
    """
    if not isinstance(query, str):
        raise OptionError(f"a search query must be a text, such as 'climate change', not {shown(query)}")
    terms = [term for word in query.split() for term in _terms(word)]
    if all(term.any_word for term in terms):
        raise OptionError(
            f"the query {query!r} has no word to search for; give words, phrases, or words that contain *"
        )
    return terms


def _terms(word: str) -> list[Term]:
    """Return the terms of a word of a query: its parts between hyphens, and its characters in unspaced scripts."""
    if "*" in word and is_unspaced(word):  # a wildcard beside a character is a word of its own
        word = " * ".join(word.strip("*").split("*"))
        return [term for part in word.split() for term in ([Term(("", ""))] if part == "*" else _terms(part))]
    parts = [tuple(map(fold, part.split("*"))) for part in pieces(word)]
    terms = [Term(part, hyphen=not is_unspaced(word)) for part in parts if len(part) > 1 or part[0]]
    return [*terms[:-1], *(replace(term, hyphen=False) for term in terms[-1:])]


@dataclass(frozen=True)
class Variant:
    """Another way to write a query: two of its words as one, or one as two.

    Attributes:
        terms: Its terms.
        hyphen: Position of the first of two words that must have a hyphen between them; None if a space will do.
    """

    terms: list[Term]
    hyphen: int | None = None


def variants(terms: Sequence[Term], is_used: Callable[[str], bool]) -> Iterator[Variant]:
    """Yield the other ways to write a phrase as compound words.

    Two words of a query are also one, and one is two with a hyphen or a space. If the first is a function word, only
    the hyphen joins them, so that "may be" is not "maybe".

    Args:
        terms: The phrase.
        is_used: Returns True if a word occurs.
    """
    for n, (term, after) in enumerate(pairwise(terms)):
        if term.word and after.word and _compounds(term.word, after.word):
            compound = term.word + after.word
            if (term.hyphen or term.word not in FUNCTION_WORDS) and is_used(compound):
                yield Variant([*terms[:n], Term((compound,)), *terms[n + 2 :]])
    for n, term in enumerate(terms):
        for cut in range(1, len(term.word or "")):
            first, second = (term.word or "")[:cut], (term.word or "")[cut:]
            if _compounds(first, second) and is_used(first) and is_used(second):
                parts = [Term((first,)), Term((second,))]
                yield Variant([*terms[:n], *parts, *terms[n + 1 :]], n if first in FUNCTION_WORDS else None)


def _compounds(first: str, second: str) -> bool:
    """Return True if two words can be parts of a compound: not two numbers, nor characters of unspaced scripts."""
    return not (first.isdecimal() and second.isdecimal()) and not is_unspaced(first + second)


#: Name of the segmentation, which the search index stores.
SEGMENTATION = "icu" if find_spec("icu4py") else "characters"


def continued(texts: Sequence[str], runs: Sequence[Any]) -> npt.NDArray[np.int64]:
    """Return the positions of tokens that continue the word of the token before, in the same run.

    Example:
        >>> continued(["今", "天", "很好"], [0, 0, 0]).tolist()
        [1, 3]
    """
    if SEGMENTATION != "icu":
        return np.empty(0, np.int64)
    positions, size = list[int](), 0
    for _, run in groupby(zip(texts, runs, strict=True), key=lambda pair: pair[1]):
        rows = [unicodedata.normalize("NFKC", text) for text, _ in run]
        joined = join_words(rows)
        starts, at = _starts(joined), 0
        for piece in (piece for row in rows for word in row.split() for piece in pieces(word)):
            at = joined.index(piece, at)
            if fold(piece):
                if at not in starts and is_unspaced(piece):
                    positions.append(size)
                size += 1
            at += len(piece)
    return np.array(positions, np.int64)


def _starts(text: str) -> set[int]:
    """Return where words begin."""
    from icu4py.breakers import WordBreaker  # an extra, whose data are 40 MB

    return {0, *accumulate(map(len, WordBreaker(text, "und")))}
