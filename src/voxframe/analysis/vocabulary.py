"""Words of groups: n-grams, keyness, distinctive words, collocations and the growth of a vocabulary.

`ngrams` counts, and everything else is computed from its counts. Counts of parts of a corpus add up exactly, so all of
it also works over Dask: see `voxframe.scale.ngrams`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import TEXT, takes_frames
from voxframe._text import FUNCTION_WORDS, is_unspaced
from voxframe.analysis.grouping import By, ratio, with_keys
from voxframe.analysis.rows import floats, keeps_recordings, require, speaker_codes, uses
from voxframe.analysis.search_terms import continued, spoken
from voxframe.dictionary import defines
from voxframe.errors import MissingExtraError, OptionError
from voxframe.validators import Integer, Number, checked, name_list

_COUNTS = ("ngram", "count", "transcripts")
#: Words of FUNCTION_WORDS that also have a meaning of their own.
_CONTENT = frozenset("good little people right thank thanks think want".split())
#: Contractions of function words, as n-grams spell them.
_CONTRACTIONS = frozenset(
    "aint arent cant couldnt didnt doesnt dont hadnt hasnt havent heres hes hows im isnt itd itll ive lets mustnt "
    "neednt oughtnt shes shouldnt thatd thatll thats theres theyd theyll theyre theyve wasnt werent weve whats wheres "
    "whod wholl whos wont wouldnt youd youll youre youve".split()
)
_ENGLISH = FUNCTION_WORDS - _CONTENT | _CONTRACTIONS


@takes_frames
@keeps_recordings
@uses("text")
def ngrams(words: pd.DataFrame, n: int = 1, by: By = None) -> pd.DataFrame:
    """Count words, or sequences of n words, by group.

    Definition: words are compared by the rules of `find_words`: case, accents and punctuation are ignored. In scripts
    without spaces, such as Chinese and Thai, words are those of ICU's dictionaries (extra `scripts`), or characters if
    it is not installed; a word may span rows. A sequence
    consists of n consecutive words of one speaker and one recording. Unit: occurrences. Denominator: none; `keyness`
    and `distinctive_words` give rates. Source: C. Manning and H. Schütze, "Foundations of statistical natural language
    processing", 1999, chapter 6.

    Args:
        words: Words, as returned by `voxframe.load_words`, or longer rows such as turns.
        n: Number of words in a sequence, at least 1.
        by: Columns to group by; see `voxframe.analysis.grouping.with_keys`. A sequence belongs to the group of its
            first word.

    Returns:
        One row per group and sequence, sorted by group, then most frequent first, then by text. Columns: those of `by`,
        `ngram` str (the words, normalized, with spaces), `count` int64, `transcripts` int64 (recordings that have it).

    Raises:
        ValueError: A column is missing.
        OptionError: A group is unknown, or `n` is less than 1.

    Example:
        >>> words = pd.DataFrame({"transcript_id": "t", "text": "To be, or not to be.".split(), "start_ms": range(6)})
        >>> ngrams(words, 2).head(2)[["ngram", "count"]].values.tolist()
        [['to be', 2], ['be or', 1]]
    """
    require(words, ("transcript_id", "text"), "ngrams")
    n = checked("n", n, Integer(1))
    rows, names = with_keys(words, by, result=("ngram", "count", "transcripts"))
    transcript, _ = pd.factorize(rows["transcript_id"], use_na_sentinel=False)
    speaker, _ = speaker_codes(rows)
    channel = pd.factorize(rows["channel"], use_na_sentinel=False)[0] if "channel" in rows.columns else speaker * 0
    start = floats(rows["start_ms"]) if "start_ms" in rows.columns else speaker * 0
    order = np.lexsort((start, channel, transcript))
    form, forms = pd.factorize(rows["text"])
    order = order[form[order] >= 0]
    folded = [spoken(text) for text in forms]
    row = np.repeat(order, np.array([len(tokens) for tokens in folded], np.intp)[form[order]])
    tokens = np.array([key for place in form[order] for key in folded[place]], object)
    if any(map(is_unspaced, forms)):
        runs = zip(transcript[order], speaker[order], channel[order], strict=True)
        begins = np.delete(np.arange(len(tokens)), continued(forms.take(form[order]).to_list(), [*runs]))
        row, tokens = row[begins], np.add.reduceat(tokens, begins) if len(begins) else tokens
    token, keys = pd.factorize(tokens)
    first = np.arange(max(0, len(row) - n + 1))
    if len(first) and n > 1:
        run = np.cumsum(
            np.r_[True, (np.diff(transcript[row]) != 0) | (np.diff(speaker[row]) != 0) | (np.diff(channel[row]) != 0)]
        )
        first = first[run[first] == run[first + n - 1]]
    code, texts = token[first], [str(key) for key in keys]
    for step in range(1, n):
        code, pairs = pd.factorize(code * len(keys) + token[first + step])
        texts = [f"{texts[pair // len(keys)]} {keys[pair % len(keys)]}" for pair in pairs]
    group = rows.groupby(names, dropna=False, sort=True).ngroup().to_numpy() if names else np.zeros(len(rows), np.intp)
    cell = group[row[first]] * max(len(texts), 1) + code
    cells, at, count = np.unique(cell, return_index=True, return_counts=True)
    each = np.unique(np.stack([cell, transcript[row[first]]]), axis=1)[0] if len(cell) else cell
    table: pd.DataFrame = rows.iloc[row[first][at]][names].reset_index(drop=True)
    table["ngram"] = pd.array([texts[place] for place in cells % max(len(texts), 1)], dtype=TEXT)
    table["count"] = count.astype(np.int64)
    table["transcripts"] = np.unique(each, return_counts=True)[1].astype(np.int64)
    return sorted_counts(table.assign(_group=cells // max(len(texts), 1)), ["_group"]).drop(columns="_group")


def sorted_counts(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Sort counts by group, most frequent first, then by text."""
    return _largest_first(table, names, "count")


def _largest_first(table: pd.DataFrame, names: list[str], value: str) -> pd.DataFrame:
    ascending = [*[True] * len(names), False, True]
    return table.sort_values([*names, value, "ngram"], ascending=ascending, kind="stable", ignore_index=True)


def _against_rest(counts: pd.DataFrame, group: str, purpose: str) -> pd.DataFrame:
    """Return each n-gram of each group with its counts in the group and in all others, and the sizes of both."""
    require(counts, (group, "ngram", "count"), purpose)
    if group in _COUNTS:
        raise OptionError(f"group must be the column with the groups, not {group!r}, which ngrams counts")
    table = counts.groupby([group, "ngram"], sort=True)["count"].sum().reset_index()
    if table[group].nunique() < 2:
        raise OptionError(f"{purpose} needs at least two groups in {group!r}, got {table[group].unique().tolist()}")
    everything = pd.MultiIndex.from_product([table[group].unique(), table["ngram"].unique()], names=[group, "ngram"])
    table = table.set_index([group, "ngram"]).reindex(everything, fill_value=0).reset_index()
    of = {name: table.groupby(name, sort=False)["count"].transform("sum") for name in ("ngram", group)}
    table["other_count"] = of["ngram"] - table["count"]
    table["_size"], table["_other"] = of[group], table["count"].sum() - of[group]
    table["per_1000"] = 1000 * ratio(table["count"], table["_size"])
    table["other_per_1000"] = 1000 * ratio(table["other_count"], table["_other"])
    return table.astype({"ngram": TEXT})


@takes_frames
@defines("per_1000", "other_per_1000", "g2", "log_ratio")
def keyness(
    counts: pd.DataFrame, group: str, *, min_count: int = 1, ignore: str | Iterable[str] | None = "en"
) -> pd.DataFrame:
    """Return how unexpected the frequency of each word is in a group, compared with all other groups.

    Definition: `g2` is the log-likelihood ratio statistic of the 2 by 2 table of the word and all other words in the
    group and in all other groups: above 3.84 with probability 0.05 if the frequencies are equal, 10.83 with 0.001. It
    is negative if the word is rarer in the group. `log_ratio` is the binary logarithm of the ratio of the relative
    frequencies, with 0.5 in place of a count of 0: 1 means twice as frequent. Units: doublings for `log_ratio`; `g2`
    has none. Denominator of `per_1000`: all words of the group. G2 grows with the corpus, so judge the size of a
    difference by `log_ratio`.

    Source: T. Dunning, "Accurate methods for the statistics of surprise and coincidence", Computational Linguistics 19,
    1993; A. Hardie, "Log Ratio: an informal introduction", 2014.

    Args:
        counts: Result of `ngrams` with `by=group`.
        group: Column with the groups. Words without a group are left out.
        min_count: Leave out words with fewer occurrences in all groups together.
        ignore: Words to leave out of the result: the function words of a language, by its code (others than "en" need
            the extra `local`), or a list of words. N-grams of such words only are left out, too. None: leave out none.
            They still count as words of their group.

    Returns:
        One row per group and word, sorted by group, then largest `g2` first. Columns: `group` (named as given), `ngram`
        str, `count`, `other_count` int64, `per_1000`, `other_per_1000`, `g2`, `log_ratio` float64.

    Raises:
        ValueError: A column is missing.
        OptionError: There are fewer than two groups, or `min_count` is not allowed.

    Example:
        >>> counts = pd.DataFrame({"site": ["x", "x", "y", "y"], "ngram": ["tree", "the", "car", "the"],
        ...                        "count": [10, 90, 10, 90]})
        >>> keyness(counts, "site")[["site", "ngram", "g2"]].round(2).head(1).values.tolist()
        [['x', 'tree', 14.39]]
    """
    min_count = checked("min_count", min_count, Integer(0))
    table = _against_rest(counts, group, "keyness")
    a, b = (table[name].to_numpy(np.float64) for name in ("count", "other_count"))
    sizes = [table[name].to_numpy(np.float64) for name in ("_size", "_other")]
    sign = np.where(a * sizes[1] >= b * sizes[0], 1.0, -1.0)
    table["g2"] = sign * log_likelihood(a, b, sizes[0] - a, sizes[1] - b)
    relative = [np.where(side > 0, side, 0.5) / size for side, size in zip((a, b), sizes, strict=True)]
    table["log_ratio"] = np.log2(relative[0] / relative[1])
    return _largest_first(_listed(table, a + b >= min_count, ignore), [group], "g2")


def log_likelihood(a: Any, b: Any, c: Any, d: Any) -> npt.NDArray[np.float64]:
    """Return the statistic G2 of 2 by 2 tables with the rows a, b and c, d.

    Example:
        >>> log_likelihood([10, 5], [0, 5], [90, 95], [100, 95]).round(2).tolist()
        [14.39, 0.0]
    """
    cells = np.broadcast_arrays(*(np.asarray(cell, np.float64) for cell in (a, b, c, d)))
    total: npt.NDArray[np.float64] = np.sum(cells, axis=0)
    margins = [(cells[0] + cells[1], cells[2] + cells[3]), (cells[0] + cells[2], cells[1] + cells[3])]
    g2: npt.NDArray[np.float64] = np.zeros(total.shape)
    for n, cell in enumerate(cells):
        expected = margins[0][n // 2] * margins[1][n % 2] / np.where(total > 0, total, 1)
        g2 = g2 + cell * np.log(np.where(cell > 0, cell, 1) / np.where(cell > 0, expected, 1))
    return 2 * np.maximum(g2, 0.0)


@takes_frames
@defines("per_1000", "other_per_1000", "log_odds", "z")
def distinctive_words(
    counts: pd.DataFrame,
    group: str,
    *,
    prior_words: float = 500,
    min_count: int = 1,
    ignore: str | Iterable[str] | None = "en",
) -> pd.DataFrame:
    """Return the words that tell a group from all others: log-odds ratios with an informative prior.

    Definition: `log_odds` is the difference of the logarithmic odds of the word in the group and in all other groups,
    after adding `prior_words` words with the frequencies of the whole corpus to both sides. `z` is this difference
    divided by its standard deviation: above 1.96 or below -1.96 for words that differ more than by chance. The prior
    pulls rare words towards 0, which is why `z` ranks better than ratios. Units: natural logarithm for `log_odds`,
    standard deviations for `z`. Denominator of `per_1000`: all words of the group.

    Source: B. Monroe, M. Colaresi and K. Quinn, "Fightin' words: lexical feature selection and evaluation for
    identifying the content of political conflict", Political Analysis 16, 2008, equations 15, 16 and 22.

    Args:
        counts: Result of `ngrams` with `by=group`.
        group: Column with the groups. Words without a group are left out.
        prior_words: Weight of the prior, as a number of words. A larger number pulls more strongly.
        min_count: Leave out words with fewer occurrences in all groups together.
        ignore: Words to leave out of the result: the function words of a language, by its code (others than "en" need
            the extra `local`), or a list of words. N-grams of such words only are left out, too. None: leave out none.
            They still count as words of their group.

    Returns:
        One row per group and word, sorted by group, then largest `z` first. Columns: `group` (named as given), `ngram`
        str, `count`, `other_count` int64, `per_1000`, `other_per_1000`, `log_odds`, `z` float64 (both NaN if
        the groups have one word only).

    Raises:
        ValueError: A column is missing.
        OptionError: There are fewer than two groups, or a number is not allowed.

    Example:
        >>> counts = pd.DataFrame({"site": ["x", "x", "y", "y"], "ngram": ["tree", "the", "car", "the"],
        ...                        "count": [10, 90, 10, 90]})
        >>> words = distinctive_words(counts, "site", prior_words=200)
        >>> words.head(1)[["ngram", "log_odds", "z"]].round(3).values.tolist()
        [['tree', 0.728, 1.88]]
    """
    prior_words = checked("prior_words", prior_words, Number(0.001, 1e9))
    min_count = checked("min_count", min_count, Integer(0))
    table = _against_rest(counts, group, "distinctive_words")
    a, b, size, other = (table[name].to_numpy(np.float64) for name in ("count", "other_count", "_size", "_other"))
    prior = prior_words * (a + b) / (size + other)
    odds = [np.log(ratio(side + prior, total + prior_words - side - prior)) for side, total in ((a, size), (b, other))]
    table["log_odds"] = odds[0] - odds[1]
    table["z"] = table["log_odds"] / np.sqrt(1 / (a + prior) + 1 / (b + prior))
    return _largest_first(_listed(table, a + b >= min_count, ignore), [group], "z")


def _listed(table: pd.DataFrame, frequent: npt.NDArray[np.bool_], ignore: str | Iterable[str] | None) -> pd.DataFrame:
    """Return the frequent words of a comparison, without those to ignore."""
    if ignore is None or isinstance(ignore, str):
        words = _function_words(ignore)
    else:
        words = frozenset(token for word in name_list(ignore, "ignore") for token in spoken(word))
    listed = [ngram for ngram in table["ngram"].unique().tolist() if not words.issuperset(ngram.split())]
    return table.drop(columns=["_size", "_other"])[frequent & table["ngram"].isin(listed).to_numpy(bool)]


def _function_words(language: str | None) -> frozenset[str]:
    """Return the function words of a language, spelled as n-grams are; none for None."""
    if language in (None, "en"):
        return _ENGLISH if language else frozenset()
    try:
        name = language if str(language).isalpha() else "none"
        words = import_module(f"spacy.lang.{name}.stop_words").STOP_WORDS
    except ModuleNotFoundError as error:
        if error.name == "spacy":
            raise MissingExtraError("local", f"ignore={language!r}") from None
        raise OptionError(
            f"there is no list of function words for ignore={language!r}; pass a list of words, or None to keep all"
        ) from None
    return frozenset(token for word in words for token in spoken(word))


@takes_frames
@defines("expected", "pmi", "t_score", "g2")
def collocations(counts: pd.DataFrame, *, min_count: int = 3) -> pd.DataFrame:
    """Return pairs of neighbouring words that occur more often together than their frequencies explain.

    Definition: with the counts of pairs of neighbours, `expected` is the count of the first word as first times the
    count of the second as second, divided by all pairs. `pmi` is log2(count / expected), in bits; `t_score` is (count -
    expected) / sqrt(count); `g2` is the log-likelihood ratio statistic of the 2 by 2 table of both words. Units:
    bits for `pmi`; `t_score` and `g2` have none. Denominator: all pairs of the group.

    Source: K. Church and P. Hanks, "Word association norms, mutual information, and lexicography", Computational
    Linguistics 16, 1990 (PMI); K. Church, W. Gale, P. Hanks and D. Hindle, "Using statistics in lexical analysis", 1991
    (t-score); T. Dunning, "Accurate methods for the statistics of surprise and coincidence", Computational Linguistics
    19, 1993 (G2).

    Args:
        counts: Result of `ngrams` with n=2, also by group.
        min_count: Leave out pairs with fewer occurrences in their group.

    Returns:
        One row per group and pair, sorted by group, then largest `g2` first. Columns: those of the groups, `ngram` str,
        `count`, `first_count`, `second_count` int64, `expected`, `pmi`, `t_score`, `g2` float64.

    Raises:
        ValueError: A column is missing.
        OptionError: The counts are not those of pairs, or `min_count` is not allowed.

    Example:
        >>> counts = pd.DataFrame({"ngram": ["new york", "new day", "a day"], "count": [8, 2, 10]})
        >>> collocations(counts)[["ngram", "expected", "pmi"]].round(2).values.tolist()
        [['a day', 6.0, 0.74], ['new york', 4.0, 1.0]]
    """
    require(counts, ("ngram", "count"), "collocations")
    min_count = checked("min_count", min_count, Integer(0))
    names = [name for name in counts.columns if name not in _COUNTS]
    table = counts[[*names, "ngram", "count"]].reset_index(drop=True)
    pair = table["ngram"].str.split(" ", expand=True) if len(table) else pd.DataFrame(columns=[0, 1], dtype=TEXT)
    if pair.shape[1] != 2 or pair[1].isna().any():
        raise OptionError("collocations needs counts of pairs; compute them with ngrams(words, 2)")
    group = table.groupby(names, dropna=False, sort=True).ngroup() if names else pd.Series(0, index=table.index)
    total, first, second = (
        table.groupby(keys)["count"].transform("sum") for keys in (group, [group, pair[0]], [group, pair[1]])
    )
    count = table["count"].to_numpy(np.float64)
    table["first_count"], table["second_count"] = first, second
    table["expected"] = first * second / total
    table["pmi"] = np.log2(count / table["expected"])
    table["t_score"] = (count - table["expected"]) / np.sqrt(count)
    table["g2"] = log_likelihood(count, first - count, second - count, total - first - second + count)
    table = table.assign(_group=group)[count >= min_count]
    table = table.sort_values(
        ["_group", "g2", "ngram"], ascending=[True, False, True], kind="stable", ignore_index=True
    )
    return table.drop(columns="_group")


@takes_frames
@defines("type_token_ratio", "yules_k")
def vocabulary(counts: pd.DataFrame) -> pd.DataFrame:
    """Return the size, the richness and the growth of the vocabulary of each group, such as over minutes or months.

    Definition: tokens are occurrences, types are different words, hapaxes are types that occur once. `yules_k` is
    10,000 (sum of squared counts - tokens) / tokens squared: lower is richer. It hardly depends on the size of the
    text, unlike `type_token_ratio` (types / tokens). `new_types` are types that no earlier group has; `all_types` are
    the types up to this group. With several columns of groups, the last one is the order, and growth is within the
    others. Unit: words, or none for ratios. Denominator: tokens of the group.

    Source: G. U. Yule, "The statistical study of literary vocabulary", 1944; H. Heaps, "Information retrieval:
    computational and theoretical aspects", 1978 (growth).

    Args:
        counts: Result of `ngrams`, also by group.

    Returns:
        One row per group, sorted. Columns: those of the groups, `tokens`, `types`, `hapaxes`, `new_types`, `all_types`
        int64, `type_token_ratio` (0-1) and `yules_k` float64.

    Raises:
        ValueError: A column is missing.

    Example:
        >>> counts = pd.DataFrame({"minute": [0, 0, 1, 1], "ngram": ["a", "b", "a", "c"], "count": [3, 1, 1, 1]})
        >>> vocabulary(counts)[["tokens", "types", "new_types", "yules_k"]].values.tolist()
        [[4.0, 2.0, 2.0, 3750.0], [2.0, 2.0, 1.0, 0.0]]
    """
    require(counts, ("ngram", "count"), "vocabulary")
    names = [name for name in counts.columns if name not in _COUNTS]
    table = counts.assign(_all=0) if not names else counts
    keys, outer = names or ["_all"], names[:-1]
    table = table.sort_values(keys, kind="stable")
    new = ~table.duplicated([*outer, "ngram"])
    sums = table[keys].assign(
        tokens=table["count"],
        types=1,
        hapaxes=(table["count"] == 1).astype("int64"),
        new_types=new.astype("int64"),
        _squares=table["count"].astype("float64") ** 2,
    )
    result = sums.groupby(keys, dropna=False, sort=True).sum().reset_index()
    by = result.groupby(outer, dropna=False, sort=False) if outer else result
    result["all_types"] = by["new_types"].cumsum()
    result["type_token_ratio"] = ratio(result["types"], result["tokens"])
    result["yules_k"] = 10_000 * ratio(result["_squares"] - result["tokens"], result["tokens"].astype("float64") ** 2)
    columns = ["tokens", "types", "hapaxes", "new_types", "all_types", "type_token_ratio", "yules_k"]
    return result[[*names, *columns]]
