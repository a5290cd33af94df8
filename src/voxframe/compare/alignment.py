"""Align the words of two transcripts with the fewest edits, after rules that make two spellings of a word equal."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable, Collection, Iterator
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from voxframe._arrow import TEXT, takes_frames
from voxframe._text import is_spaced, join_words, quantity, split_words
from voxframe.analysis.rows import floats, require, row_speakers
from voxframe.errors import OptionError, caller
from voxframe.validators import Integer, checked, name_list, shown

#: Names of rules, or a function from a text to the text that is compared.
Normalization: TypeAlias = "Collection[str] | Callable[[str], str]"

_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\uff07`\u00b4]")
_ANNOTATION = re.compile(r"\[[^\]]*\]|<[^>]*>|\{[^}]*\}|\([^)]*\)")
_INSIDE = re.compile(r"(?<=\w)['.,](?=\w)")
_FILLERS = frozenset("ah eh er erm hm hmm mhm mm mmm uh uhm um umm".split())


def _without_punctuation(text: str) -> str:
    """Replace punctuation by spaces, except inside words and numbers. A hyphen separates words, as in searches."""
    kept = {
        match.start()
        for match in _INSIDE.finditer(text)
        if match[0] == "'" or (text[match.start() - 1].isdigit() and text[match.end()].isdigit())
    }
    return "".join(c if n in kept or unicodedata.category(c)[0] not in "PS" else " " for n, c in enumerate(text))


def _without_fillers(text: str) -> str:
    return " ".join(word for word in text.split() if word.strip(".,?!-…").casefold() not in _FILLERS)


def _without_accents(text: str) -> str:
    spelled = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(c for c in spelled if not unicodedata.combining(c)))


#: The rules by name, in the order in which they are applied: `(description, function)`.
RULES = MappingProxyType[str, tuple[str, Callable[[str], str]]](
    {
        "unicode": (
            "Unicode NFKC; typographic apostrophes become '.",
            lambda text: _APOSTROPHES.sub("'", unicodedata.normalize("NFKC", text)),
        ),
        "annotations": (
            "Text in [], (), {} or <> is removed, such as [noise].",
            lambda text: _ANNOTATION.sub(" ", text),
        ),
        "fillers": (f"English filled pauses are removed: {', '.join(sorted(_FILLERS))}.", _without_fillers),
        "case": ("Unicode case folding.", str.casefold),
        "accents": ("Combining marks are removed: é becomes e.", _without_accents),
        "punctuation": (
            "Punctuation and symbols become spaces, except ' inside words, and . and , between digits.",
            _without_punctuation,
        ),
    }
)
#: The rules that apply unless others are given.
DEFAULT = ("unicode", "case", "punctuation")


def normalizer(rules: Normalization) -> Callable[[str], list[str]]:
    """Return the function from a text to its normalised words; one instance for both sides of a comparison."""
    if callable(rules):
        return lambda text: rules(text).split()
    names = name_list(rules, "the rules of normalize=")
    if unknown := [name for name in names if not isinstance(name, str) or name not in RULES]:
        raise OptionError(f"unknown rule {shown(unknown[0])}; the rules are {', '.join(RULES)}; or pass a function")
    steps = [function for name, (_, function) in RULES.items() if name in names]

    def words(text: str) -> list[str]:
        for step in steps:
            text = step(text)
        return split_words(text)

    return words


def normalized(text: str, rules: Normalization = DEFAULT) -> str:
    """Normalise a text for comparison.

    Args:
        text: The text.
        rules: Names from `RULES`, in any order; an empty list only splits at white space. Or a function from text to
            text, such as the `EnglishTextNormalizer` of Whisper.

    Raises:
        TypeError: `text` is not a str.
        OptionError: A rule is unknown.

    Example:
        >>> normalized("Well-known: it's 3.5, Zoë!")
        "well known it's 3.5 zoë"
        >>> normalized("Um, [laughs] Zoë", ["annotations", "fillers", "accents"])
        'Zoe'
        >>> {name: description for name, (description, _) in RULES.items()}["case"]
        'Unicode case folding.'
    """
    if not isinstance(text, str):
        raise TypeError(f"normalized needs a text, not {type(text).__name__}")
    return " ".join(normalizer(rules)(text))


#: Words of transcripts, as `voxframe.load_words` returns them, any rows with `text`, or the text of one transcript.
Spoken: TypeAlias = "pd.DataFrame | str"

MATCH, SUBSTITUTION, DELETION, INSERTION = EDITS = ("match", "substitution", "deletion", "insertion")
_OPCODES = {"equal": MATCH, "replace": SUBSTITUTION, "delete": DELETION, "insert": INSERTION}
_TYPES: dict[str, Any] = {
    "recording": TEXT,
    "edit": TEXT,
    "ref_token": TEXT,
    "hyp_token": TEXT,
    "ref_text": TEXT,
    "hyp_text": TEXT,
    "ref_speaker": TEXT,
    "hyp_speaker": TEXT,
    "ref_start_ms": "Int64",
    "ref_end_ms": "Int64",
    "hyp_start_ms": "Int64",
    "hyp_end_ms": "Int64",
    "hyp_confidence": "float64",
    "ref_idx": "Int64",
    "hyp_idx": "Int64",
    "ref_chars": "int64",
    "char_edits": "int64",
}


class Tokens(NamedTuple):
    """The normalised words of one transcript.

    Attributes:
        rows: Row of `table` of each token.
        table: Columns `text`, `speaker`, `start_ms`, `end_ms`, `confidence` and `idx`.
    """

    recording: str | None
    tokens: npt.NDArray[np.object_]
    rows: npt.NDArray[np.intp]
    table: pd.DataFrame


@takes_frames
def align(
    reference: Spoken, hypothesis: Spoken, *, on: str | None = None, normalize: Normalization = DEFAULT
) -> pd.DataFrame:
    """Align two transcripts of a recording with the fewest edits of words (Levenshtein distance).

    Words are compared after normalisation, in the order of the rows. If several alignments have the same number of
    edits, one of them is returned. Source: V. Levenshtein, "Binary codes capable of correcting deletions, insertions,
    and reversals", 1966; the same algorithm as jiwer.

    Args:
        reference: The correct words: rows of `voxframe.load_words`, `load_utterances` or any rows with `text`, or the
            text as str. To compare two engines directly, pass the words of one of them.
        hypothesis: The words to be judged, in the same forms.
        on: Column of both that identifies the recording, such as a column of the metadata. Recordings that only one of
            them has are left out with a warning. None (default): both have only one transcript.
        normalize: Names of rules from `voxframe.compare.RULES`, or a function from text to text.

    Returns:
        One row per pair of words: an edit or a match. Each row of `hypothesis` and `reference` has one row for each of
        its normalised words; punctuation alone has none. Columns:

        - `recording` str: value of `on`, or the recording of the hypothesis, else of the reference, or its id.
        - `edit` str: "match", "substitution", "deletion" (only in the reference) or "insertion" (only in the
          hypothesis).
        - `ref_token`, `hyp_token` str: the normalised words that were compared; null if there is none.
        - `ref_text`, `hyp_text` str: text of their rows, as written.
        - `ref_speaker`, `hyp_speaker` str: name, else label, else channel.
        - `ref_start_ms`, `ref_end_ms`, `hyp_start_ms`, `hyp_end_ms` Int64: times of their rows; null if unknown.
        - `hyp_confidence` float64: confidence of the row (0-1).
        - `ref_idx`, `hyp_idx` Int64: `word_idx` of the row; without that column, its position in its transcript.
        - `ref_chars` int64: characters of the reference in this row, including the space after the word.
        - `char_edits` int64: edits of characters in this row, in the alignment of the characters of both texts.

    Raises:
        TypeError: An argument is neither a DataFrame nor str.
        ValueError: A column is missing, there are several transcripts and no `on`, or no recording is in both.

    Warns:
        UserWarning: A recording is in one of the two only, or rows have no recording.

    Example:
        >>> rows = align("We met in Zürich.", "We met him in Zurich", normalize=["case", "accents", "punctuation"])
        >>> rows[["edit", "ref_token", "hyp_text"]].values.tolist()[2:4]
        [['insertion', nan, 'him'], ['match', 'in', 'in']]
    """
    aligned = [_aligned(ref, hyp) for ref, hyp in pairs(reference, hypothesis, on, normalize, "align")]
    return pd.concat(aligned, ignore_index=True)


def pairs(
    reference: Spoken, hypothesis: Spoken, on: str | None, normalize: Normalization, purpose: str
) -> Iterator[tuple[Tokens, Tokens]]:
    """Yield the words of both for each recording that both have, in the order of the reference."""
    words = normalizer(normalize)
    sides = [by_recording(_frame(side, on, words), on, purpose) for side in (reference, hypothesis)]
    for name in common(sides[0], sides[1], on):
        ref, hyp = (side[name] for side in sides)
        label = name if on is not None else _single_name(hyp) or _single_name(ref)
        yield _tokens(ref, words, label), _tokens(hyp, words, label)


def by_recording(df: pd.DataFrame, on: str | None, purpose: str) -> dict[str | None, pd.DataFrame]:
    """Return the rows of each recording; without `on` those of the only transcript, under the name None."""
    require(df, ("text",) if on is None else ("text", on), purpose)
    if on is None:
        if "transcript_id" in df.columns and df["transcript_id"].nunique() > 1:
            raise OptionError(
                f"{purpose} got {df['transcript_id'].nunique()} transcripts on one side; pass on=..., the name of a "
                "column of both that identifies the recording"
            )
        return {None: df}
    if unnamed := int(df[on].isna().sum()):
        warnings.warn(f"left out {quantity(unnamed, 'row')} without a value of {on!r}", stacklevel=caller())
    return {_recording(name): rows for name, rows in df.groupby(on, sort=False)}


def _recording(name: object) -> str:
    """Return the name of a recording; an integer column with a missing value is float in pandas, so 1.0 is "1"."""
    return str(int(name) if isinstance(name, float) and name.is_integer() else name)


def common(ref: dict[str | None, Any], hyp: dict[str | None, Any], on: str | None) -> list[str | None]:
    """Return the recordings that both sides have; warn about the others."""
    shared = [name for name in ref if name in hyp]
    if not shared:
        raise OptionError(f"no value of {on!r} is in both the reference and the hypothesis")
    if others := sorted(str(name) for name in ref.keys() ^ hyp.keys()):
        named = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
        warnings.warn(f"left out {quantity(len(others), 'recording')} on one side only: {named}", stacklevel=caller())
    return shared


def _frame(side: Spoken, on: str | None, words: Callable[[str], list[str]]) -> pd.DataFrame:
    """Return a text as one row per word, or as one row if a rule changes several words together."""
    if not isinstance(side, str):
        return side
    if on is not None:
        raise OptionError("a text belongs to one recording; with on=... pass a DataFrame with that column and `text`")
    pieces = side.split()
    apart = [*chain.from_iterable(map(words, pieces))] == words(side)
    return pd.DataFrame({"text": pieces if apart else [side]}, dtype=object)


def _single_name(df: pd.DataFrame) -> str | None:
    names = [name for column in ("recording", "transcript_id") if column in df for name in df[column].dropna()[:1]]
    return str(names[0]) if names else None


def _tokens(df: pd.DataFrame, words: Callable[[str], list[str]], recording: str | None) -> Tokens:
    code, texts = pd.factorize(df["text"].astype(object))
    spelled = [*(words(str(text)) for text in texts), []]  # the last for rows without text
    counts = np.array([len(found) for found in spelled])[code]
    tokens = np.array([*chain.from_iterable(spelled[n] for n in code)], object)
    place = df["word_idx"] if "word_idx" in df.columns else pd.Series(range(len(df)))
    nothing = [None] * len(df)
    columns: dict[str, Any] = {"text": df["text"], "idx": place, "speaker": row_speakers(df)}
    for name in ("start_ms", "end_ms", "confidence"):
        columns[name] = floats(df[name]) if name in df.columns else nothing
    table = pd.DataFrame({name: np.asarray(values, object) for name, values in columns.items()})
    return Tokens(recording, tokens, np.repeat(np.arange(len(df)), counts), table)


def _aligned(ref: Tokens, hyp: Tokens) -> pd.DataFrame:
    from rapidfuzz.distance import Levenshtein

    edits, ref_places, right = list[str](), list[npt.NDArray[np.intp]](), list[npt.NDArray[np.intp]]()
    for op in Levenshtein.opcodes(ref.tokens.tolist(), hyp.tokens.tolist()):
        refs, hyps = np.arange(op.src_start, op.src_end), np.arange(op.dest_start, op.dest_end)
        size = max(len(refs), len(hyps))
        edits += [_OPCODES[op.tag]] * size
        ref_places.append(refs if len(refs) else np.full(size, -1))
        right.append(hyps if len(hyps) else np.full(size, -1))
    sides = {"ref": (ref, np.concatenate([*ref_places, _NONE])), "hyp": (hyp, np.concatenate([*right, _NONE]))}
    columns: dict[str, Any] = {"recording": [ref.recording] * len(edits), "edit": edits}
    for side, (words, at) in sides.items():
        columns[f"{side}_token"] = _taken(words.tokens, at)
        rows = np.append(words.rows, -1)[at]
        for name in words.table:
            columns[f"{side}_{name}"] = _taken(words.table[name].to_numpy(), rows)
        for edge in ("start", "end"):
            columns[f"{side}_{edge}_ms"] = np.rint(
                pd.to_numeric(pd.Series(columns[f"{side}_{edge}_ms"])).astype("Float64")
            )
    columns["ref_chars"], columns["char_edits"] = _characters(ref, hyp, sides["ref"][1], sides["hyp"][1])
    return pd.DataFrame({name: columns[name] for name in _TYPES}).astype(_TYPES)


_NONE = np.zeros(0, np.intp)


def _taken(values: npt.NDArray[Any], at: npt.NDArray[np.intp]) -> npt.NDArray[np.object_]:
    """Return values by position; None for the position -1."""
    with_none = np.full(len(values) + 1, None, object)
    with_none[:-1] = values
    taken: npt.NDArray[np.object_] = with_none[at]
    return taken


def _characters(
    ref: Tokens, hyp: Tokens, left: npt.NDArray[np.intp], right: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the characters of the reference and the edits of characters of each row of an alignment.

    An inserted character belongs to the row of its word in the hypothesis, any other edit to the row of the reference.
    """
    from rapidfuzz.distance import Levenshtein

    lengths = []
    rows = []
    for words, at in ((ref, left), (hyp, right)):
        spaced = [*is_spaced(words.tokens.tolist())[1:], False]
        length = np.array([*map(len, words.tokens)], np.int64) + np.array(spaced[: len(words.tokens)], np.int64)
        lengths.append(length)
        rows.append(np.repeat(np.flatnonzero(at >= 0), length))
    chars, edits = np.zeros(len(left), np.int64), np.zeros(len(left), np.int64)
    chars[left >= 0] = lengths[0]
    for op in Levenshtein.editops(join_words(ref.tokens), join_words(hyp.tokens)):
        edits[rows[1][op.dest_pos] if op.tag == "insert" else rows[0][op.src_pos]] += 1
    return chars, edits


_PLACE_TYPES: dict[str, Any] = {
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


@takes_frames
def disagreements(alignment: pd.DataFrame, *, context: int = 4) -> pd.DataFrame:
    """Return the places at which two transcripts differ, in order of time.

    Consecutive edits are one place. Its time is that of its words in both transcripts. If none of its words has times,
    as in a reference that is plain text, it lasts from the end of the word before to the start of the word after.

    To listen, pass the places to `voxframe.PassageList(places, audio=...)` and click on one. `audio` is the recording,
    or a dict of recordings by the values of the column `recording`.

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
        OptionError: `context` is not allowed.

    Example:
        >>> from voxframe.compare import align
        >>> heard = pd.DataFrame({"text": "we counted the three".split(), "start_ms": [0, 300, 800, 900],
        ...                       "end_ms": [200, 700, 880, 1300]})
        >>> disagreements(align("We counted the trees.", heard))[["text", "start_ms", "end_ms"]].values.tolist()
        [['trees. → three', 900, 1300]]
    """
    context = checked("context", context, Integer(0))
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
            ref_text, heard = (_joined(texts[side][start:end], places[side][start:end]) for side in ("ref", "hyp"))
            edit = "substitution" if ref_text and heard else "deletion" if ref_text else "insertion"
            before, after = np.searchsorted(refs, (start, end))
            near = refs[max(0, before - context) : before], refs[after : after + context]
            ref_words, right = (
                _joined([texts["ref"][n] for n in side], [places["ref"][n] for n in side]) for side in near
            )
            speaker = next((name for name in who[start:end] if name is not None), None)
            label = f"{ref_text or '(nothing)'} → {heard or '(nothing)'}"
            count = int(differs[start:end].sum())
            texts_of_row = (edit, label, ref_text, heard, ref_words, right, speaker)
            rows.append((part["recording"].iloc[0], *texts_of_row, *_span(times, start, end), count))
    return pd.DataFrame(rows, columns=[*_PLACE_TYPES]).astype(_PLACE_TYPES)


def _values(column: pd.Series[Any]) -> list[Any]:
    return [None if pd.isna(value) else value for value in column]


def _joined(texts: Any, places: Any) -> str:
    """Return the text of rows once each, although a row with two normalised words has two edits."""
    kept_texts = [text for n, text in enumerate(texts) if text is not None and (n == 0 or places[n] != places[n - 1])]
    return join_words(kept_texts)


def _span(times: Any, start: int, end: int) -> tuple[float | None, float | None]:
    """Return start and end of some rows of an alignment, in ms."""
    part = times[start:end]
    if not np.isnan(part[:, [0, 2]]).all() and not np.isnan(part[:, [1, 3]]).all():
        return float(np.nanmin(part[:, [0, 2]])), float(np.nanmax(part[:, [1, 3]]))
    before, after = times[:start][:, [1, 3]], times[end:][:, [0, 2]]
    before, after = before[~np.isnan(before).all(axis=1)], after[~np.isnan(after).all(axis=1)]
    begin = float(np.nanmax(before[-1])) if len(before) else None
    stop = float(np.nanmin(after[0])) if len(after) else None
    if begin is None or stop is None:
        return (begin if stop is None else stop, stop if begin is None else begin)
    return min(begin, stop), max(begin, stop)
