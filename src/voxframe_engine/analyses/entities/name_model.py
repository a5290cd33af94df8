"""Names of people and organizations by their context: the entity recognizer of spaCy's model en_core_web_sm.

Only numpy runs it, so spaCy need not be installed: it takes 30 MB and about 0.2 s per thousand words. The network reads
four features of a token (its norm, first letter, last three letters, and shape) with those of four neighbours on each
side, and decides from left to right where an entity begins and ends. The results are the same as spaCy's, except for
the norms of British spellings.

The model takes many rare names for a name of another kind, and overlooks some, above all at the start of a sentence. So
`unlisted_names` also takes a word that is in no dictionary for a name, and the words around it decide its kind.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from voxframe import models
from voxframe.errors import ModelError
from voxframe_engine.analyses.english_lexicon import STOPWORDS
from voxframe_engine.analyses.entities.listed_terms import is_listed, known
from voxframe_engine.analyses.entities.people import STOP
from voxframe_engine.analyses.entities.text import EntityMatch, WordRun
from voxframe_engine.analyses.entities.tokens import Dictionary, Token, Tokenizer

Floats = NDArray[np.float32]

_SLANG = frozenset(
    "gonna wanna gotta kinda sorta lemme gimme dunno cause yeah yep nope hmm umm uhh okay hey hiya".split()
)
_REACH = 4  # tokens on each side that the network reads; as many empty ones stand around a text
_PIECE = 500  # tokens; a longer text is cut after the next sentence, to bound memory
_SENTENCE_END = frozenset(".?!")
#: Actions of the decoder: begin, continue and end an entity; an entity of one token; no entity.
_BEGIN, _IN, _LAST, _UNIT, _OUT = range(1, 6)


class NamedSpan(NamedTuple):
    """An entity in a text.

    Attributes:
        label: Label of OntoNotes, such as "PERSON" or "ORG".
        start: Index of the first character.
        end: Index after the last character.
    """

    label: str
    start: int
    end: int


class NameModel:
    """Recognizes entities.

    Args:
        folder: Folder with the official files of the model.
    """

    def __init__(self, folder: Path) -> None:
        self._tokenizer = Tokenizer(folder / "tokenizer")
        stored = msgspec.msgpack.decode((folder / "ner" / "model").read_bytes())
        parts = [
            (node["name"], {name: _array(value) for name, value in values.items() if value}, attributes)
            for node, values, attributes in zip(stored["nodes"], stored["params"], stored["attrs"], strict=True)
        ]
        self._tables = [
            (values["E"], msgspec.msgpack.decode(attributes["seed"]))
            for name, values, attributes in parts
            if name == "hashembed"
        ]
        maxouts = [values for name, values, _ in parts if name == "maxout"]
        norms = [values for name, values, _ in parts if name == "layernorm"]
        self._layers = [
            _Layer(dense["W"], dense["b"], norm["G"], norm["b"]) for dense, norm in zip(maxouts, norms, strict=True)
        ]
        upper, narrow = (values for name, values, _ in parts if name == "linear")
        self._narrow, self._upper = (narrow["W"], narrow["b"]), (upper["W"], upper["b"])
        self._lower = next(values for name, values, _ in parts if name == "precomputable_affine")
        self._actions = _actions(folder / "ner" / "moves")
        self._words = Dictionary(folder / "lemmatizer" / "lookups" / "lookups.bin")

    def knows(self, word: str) -> bool:
        """Return True if a word in lower case is an English one, in any of its forms."""
        return word in self._words

    def is_unknown(self, word: str) -> bool:
        """Return True if no list has a word in lower case: it is misspelled, or a rare name."""
        return not (word in self._words or word in STOP or word in STOPWORDS or word in known() or word in _SLANG)

    def is_opener(self, word: str) -> bool:
        """Return True if a word in lower case may be an imperative or an adverb, with which many sentences begin."""
        return word in self._words.openers

    def find(self, text: str) -> Iterator[NamedSpan]:
        """Yield the entities of a text, in order."""
        tokens = list(self._tokenizer.tokens(text))
        for first, end in _pieces(tokens):
            piece = tokens[first:end]
            for label, one, last in self._decode(self._encode(piece)):
                yield NamedSpan(label, piece[one].start, piece[last].end)

    def _encode(self, tokens: Sequence[Token]) -> Floats:
        """Return a vector per token, shape (tokens, 64)."""
        hashes = np.array([token.features for token in tokens], np.uint64)
        embedded = [
            table[_rows(hashes[:, column], seed) % len(table)].sum(axis=1)
            for column, (table, seed) in enumerate(self._tables)
        ]
        first, *others = self._layers
        vectors = np.pad(first(np.concatenate(embedded, axis=1)), ((_REACH, _REACH), (0, 0)))
        for layer in others:
            around = np.pad(vectors, ((1, 1), (0, 0)))
            vectors = vectors + layer(np.concatenate([around[:-2], vectors, around[2:]], axis=1))
        weights, bias = self._narrow
        return vectors[_REACH:-_REACH] @ weights.T + bias

    def _decode(self, vectors: Floats) -> Iterator[tuple[str, int, int]]:
        """Yield label, first and last token of each entity: at each token, the best action that is possible."""
        kinds, labels, of_label = self._actions
        # What each token adds to the hidden layer as next token, first token of the open entity, and previous token.
        dense, missing, bias = self._lower["W"], self._lower["pad"][0], self._lower["b"]
        parts = (vectors @ dense.reshape(-1, dense.shape[-1]).T).reshape(-1, *dense.shape[:-1])
        weights, upper_bias = self._upper
        outside = np.isin(kinds, (_BEGIN, _UNIT, _OUT)) & ((labels != "") | (kinds == _OUT))
        start, label = -1, ""
        for at in range(len(vectors)):
            beside = missing[1] + missing[2] if start < 0 else parts[start, 1] + parts[at - 1, 2]
            hidden = (parts[at, 0] + beside + bias).max(axis=1)
            is_last = at == len(vectors) - 1
            allowed = outside if start < 0 else of_label[label]
            if is_last:
                allowed = allowed & (kinds != _BEGIN) & (kinds != _IN)
            action = int(np.where(allowed, weights @ hidden + upper_bias, -np.inf).argmax())
            if kinds[action] == _BEGIN:
                start, label = at, str(labels[action])
            elif kinds[action] == _UNIT:
                yield str(labels[action]), at, at
            elif kinds[action] == _LAST:
                yield label, start, at
                start = -1


class _Layer(NamedTuple):
    """A dense layer of which the greatest of three outputs counts, normalized."""

    weights: Floats  # (outputs, 3, inputs)
    bias: Floats
    scale: Floats
    shift: Floats

    def __call__(self, vectors: Floats) -> Floats:
        outputs, pieces, inputs = self.weights.shape
        found = vectors @ self.weights.reshape(-1, inputs).T + self.bias.reshape(-1)
        found = found.reshape(-1, outputs, pieces).max(axis=2)
        found -= found.mean(axis=1, keepdims=True)
        found /= np.sqrt(found.var(axis=1, keepdims=True) + 1e-8)
        return np.asarray(found * self.scale + self.shift, np.float32)


def _array(stored: dict[Any, Any]) -> Floats:
    values = {key.decode() if isinstance(key, bytes) else key: value for key, value in stored.items()}
    return np.array(np.frombuffer(values["data"], values["type"])).reshape(values["shape"])


def _actions(path: Path) -> tuple[NDArray[np.int64], NDArray[np.str_], dict[str, NDArray[np.bool_]]]:
    """Return kind and label of each action in the order of the outputs, and by label the actions within an entity."""
    counts = msgspec.json.decode(msgspec.msgpack.decode(path.read_bytes())["moves"])
    pairs = [
        (int(kind), label)
        for kind in sorted(counts, key=int)
        for _, label in sorted(((count, label) for label, count in counts[kind].items()), reverse=True)
    ]
    kinds, labels = np.array([kind for kind, _ in pairs]), np.array([label for _, label in pairs])
    inside = (kinds == _IN) | (kinds == _LAST)
    return kinds, labels, {label: inside & (labels == label) for label in set(labels.tolist())}


def _pieces(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    first = 0
    for end, token in enumerate(tokens, 1):
        if end == len(tokens) or (end - first >= _PIECE and token.text in _SENTENCE_END) or end - first >= 2 * _PIECE:
            yield first, end
            first = end


def _rows(values: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Return four 32-bit hashes of each value: MurmurHash3, 128 bits."""
    with np.errstate(over="ignore"):
        first = values * np.uint64(0x87C37B91114253D5)
        first = (first << np.uint64(31)) | (first >> np.uint64(33))
        first = first * np.uint64(0x4CF5AD432745937F) ^ np.uint64(seed) ^ np.uint64(8)
        second = np.full_like(first, seed ^ 8)
        first = first + second
        second = second + first
        first, second = _mixed(first), _mixed(second)
        first = first + second
        second = second + first
    low = np.uint64(0xFFFFFFFF)
    return np.stack([first & low, first >> np.uint64(32), second & low, second >> np.uint64(32)], axis=1)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        values = (values ^ (values >> np.uint64(33))) * np.uint64(factor)
    return values ^ (values >> np.uint64(33))


@cache
def find() -> NameModel | None:
    """Return the model if it is on this machine, else None after one warning per process."""
    try:
        return NameModel(models.find(models.NAMES, download=False))
    except ModelError as error:
        warnings.warn(f"{models.WITHOUT_NAMES}: {error}", stacklevel=2)
        return None


_ARABIC = r"(?:(?:al|el|ad|ar|as|ash|an|at|bin|ibn|abu|ul|ur)-)"  # "al-Faisal"
_CAPITAL = rf"(?!I\b)(?:[A-Z]\.|{_ARABIC}?(?=[^\W\d_a-z])[^\W\d_]+(?:['\u2019-][^\W\d_]+)*)"
_PARTICLES = r"(?:van|von|der|den|de|di|da|dos|del|della|la|bin|ibn|al|el|ter|ten|zu)"
#: Words with capitals that belong together: "Hendrikje van der Molen", "Fir & Sons".
_AND = r"(?:& |and (?=(?:Sons|Daughters|Brothers|Co|Company|Partners|Associates)\b))"
_TOGETHER = re.compile(rf"(?<![\w&]){_CAPITAL}(?: (?:(?:{_PARTICLES} ){{1,2}}(?=[^\W\d_a-z])|{_AND})?{_CAPITAL})*")
_VOWEL = re.compile(r"[aeiouyà-ɏ]")
_TOKEN = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_ARTICLE = re.compile(r"\b(?:the|an?|this|that|every|each|no|some|my|your|his|her|our|their) $")
_BEFORE_BODY = re.compile(
    r"\b(?:at|for|from|with|between|of|to|by|left|join(?:ed)?|start(?:ed)?|called|bought|sold|sued|in|than|into|via) $"
)
_AT_BODY = re.compile(r"\b(?:at|with|from|joined|left|called|work(?:s|ed|ing)? for) $")
_NAMES = ("PERSON", "ORG")  # labels
_PERSON, _ORGANIZATION = ("person_name", 59), ("organization", 61)


class _Word(NamedTuple):
    start: int
    end: int
    low: str
    ordinary: bool  # in a dictionary, or a place, a people, a month ...
    listed: bool  # as a first or family name


def unlisted_names(run: WordRun, model: NameModel) -> Iterator[EntityMatch]:
    """Yield person_name and organization."""
    if run.text == run.low or run.text.isupper():  # capitals say nothing
        return
    spans = {at: span for span in model.find(run.text) for at in range(span.start, span.end)}
    for match in _TOGETHER.finditer(run.text):
        words = [_word(run, match.start() + found.start(), found[0], model) for found in _TOKEN.finditer(match[0])]
        words = _without_opening(run, words, spans, model)
        if words and (kind := _kind(run, words, spans)):
            yield EntityMatch(kind[0], words[0].start, words[-1].end, kind[1])


def _without_opening(run: WordRun, words: list[_Word], spans: Mapping[int, NamedSpan], model: NameModel) -> list[_Word]:
    """Remove ordinary words at the start of a sentence: "Did Saoirse", but not "Rose Achebe" or "Kestrel Dynamics"."""
    while words and words[0].ordinary and run.opens_sentence(words[0].start):
        if len(words) > 1 and (words[0].listed or _is_one_name(words, spans, model)):
            break
        words = words[1:]
    return words


def _is_one_name(words: list[_Word], spans: Mapping[int, NamedSpan], model: NameModel) -> bool:
    """Return True if the model takes the first two words for one name. "Tell Xochitl" and "Maybe Xochitl" are none."""
    first, span = words[0].low, spans.get(words[0].start)
    if span is None or span.label not in _NAMES or span is not spans.get(words[1].start):
        return False
    return not (first in STOP or first in STOPWORDS or model.is_opener(first))


def _word(run: WordRun, start: int, text: str, model: NameModel) -> _Word:
    text = re.sub(r"['\u2019]s$", "", text)
    low = run.low[start : start + len(text)]
    spoken = re.sub(r"'(?:ll|ve|re|d|m)$", "", low)
    ordinary = spoken in STOP or low in STOPWORDS or low in known() or all(map(model.knows, low.split("-")))
    ordinary = ordinary or not _VOWEL.search(low.split("-")[-1])  # "Mm-hmm"
    return _Word(start, start + len(text), low, ordinary, low not in STOP and is_listed(low))


def _before(run: WordRun, at: int) -> str:
    """Return the lower-case text just before a character, long enough for every preposition and article."""
    return run.low[max(0, at - 20) : at]


def _kind(run: WordRun, words: list[_Word], spans: Mapping[int, NamedSpan]) -> tuple[str, int] | None:
    """Return kind and weight of a name; None if the words are none, or of another kind."""
    found = (spans[word.start].label for word in words if word.start in spans)
    label = next((label for label in found if label in _NAMES), None)
    if all(word.ordinary for word in words):
        return _kind_of_ordinary(run, words, label)
    first, last, before = words[0], words[-1], _before(run, words[0].start)
    if last is first:
        if _ARTICLE.search(before) or run.text[first.start : first.end].isupper():
            return _ORGANIZATION if label == "ORG" else None
        at_body = _BEFORE_BODY.search(before) if label == "ORG" else before.endswith(" at ")
        return _ORGANIZATION if at_body and not first.listed else _PERSON
    if last.ordinary and not last.listed:
        return _ORGANIZATION  # "Pinewood Analytics"
    middle = (word for word in words if not run.opens_sentence(word.start))  # "Quill Ashdown plays the cello"
    return _ORGANIZATION if label == "ORG" and any(word.ordinary and not word.listed for word in middle) else _PERSON


def _kind_of_ordinary(run: WordRun, words: list[_Word], label: str | None) -> tuple[str, int] | None:
    """Return kind and weight of a name whose words are all in the dictionary."""
    first, several, before = words[0], len(words) > 1, _before(run, words[0].start)
    if label is None:  # "from Polar Freight"
        is_body = several and words[-1].low not in STOP and not run.opens_sentence(first.start)
        return _ORGANIZATION if is_body and _AT_BODY.search(before) else None
    if first.low in known() or (not several and _ARTICLE.search(before)):
        return None
    if label == "PERSON":
        return _PERSON if any(word.listed for word in words) else None
    return _ORGANIZATION if several else None


def is_common_noun(run: WordRun, found: EntityMatch, model: NameModel) -> bool:
    """Return True if a listed name is an ordinary word after an article: "a Roman coin"."""
    low = run.low[found.start : found.end]
    return found.kind == "person_name" and model.knows(low) and bool(_ARTICLE.search(_before(run, found.start)))
