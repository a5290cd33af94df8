"""Named entities and personal information in a transcript.

Method: patterns over numbers as spoken and as written, series of digits and letters that are read out, cue words before
numbers (also in a question), checksums and formats (Luhn, IBAN, phone numbers), grammars of addresses and ages, lists
of terms, places, nationalities and personal names, and a small neural network for names that are in no list.
Every redaction policy of the interface has a detector, but some cover only a short list of words.

Quality on 125 held-out lines of the project (`python -m tests.benchmarks analyses`): precision 0.97, recall 0.96. On 55
lines by another author they were 0.96 and 0.94. Of rare names in 60 held-out lines, 40 of 42 people and 18 of 23
organizations were found. In 24 held-out lines about products, 10 of 12 names of people and organizations were right; in
60 passages of podcasts about software, 23 of 30 people and 14 of 22 organizations, of 27 and 28. Of 21 places in 15
held-out lines, most of them in no list, 10 were found. Of 480 pieces of personal data in calls by three authors who had
not seen the code, 466 were covered by redaction, which also covers doubtful names. Of the other words, 7 % were covered
too, most of them amounts, dates and places.

The network is spaCy's model en_core_web_sm, run by spaCy. It takes many rare names for a name of another kind, and
overlooks some, above all at the start of a sentence. So `unlisted_names` also takes a word that is in no dictionary for
a name, and the words around it decide its kind. Whether a single word is a person or a product, its letters
(`likeness`) and a classifier of its vector in the sentence decide.

Detection is never complete. It misses most rare names in text without capitals, uncommon terms, addresses without a
number, and misrecognized words. Do not rely on it alone if a leak would harm a person.
"""

from __future__ import annotations

import math
import pkgutil
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from voxframe import models
from voxframe.encoder import find as find_encoder
from voxframe.errors import ModelError
from voxframe_engine.analyses.entities.contacts import addresses, contacts
from voxframe_engine.analyses.entities.dates import ages, amounts, dates
from voxframe_engine.analyses.entities.identifiers import identifiers
from voxframe_engine.analyses.entities.people import STOP, is_listed, known, organisations, people, terms
from voxframe_engine.analyses.entities.text import EntityMatch, WordDict, WordRun, runs
from voxframe_engine.analyses.lexicon import STOPWORDS, WORD_SCALE, classifier
from voxframe_engine.text import SENTENCE_END

_SLANG = frozenset(
    "gonna wanna gotta kinda sorta lemme gimme dunno cause yeah yep nope hmm umm uhh okay hey hiya".split()
)
_WITHOUT = ("tok2vec", "tagger", "parser", "senter", "attribute_ruler")  # parts of the pipeline that are not run
_PIECE = re.compile(r"(?s).{1,3000}(?:(?<=[.?!]) |$)|.{1,3000}(?: |$)|.{1,3000}")  # texts of bounded memory


class NamedSpan(NamedTuple):
    """An entity in a text: its label in OntoNotes, such as "PERSON" or "ORG", first character, and end."""

    label: str
    start: int
    end: int


class Recognizer:
    """Recognizes names, and knows the words of the dictionary."""

    def __init__(self, folder: Path) -> None:
        import spacy

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the model is older than the library, which gives the same
            self._pipeline = spacy.load(folder, exclude=_WITHOUT)
        tables = self._pipeline.remove_pipe("lemmatizer")[1].lookups
        index = tables.get_table("lemma_index")
        self._words = frozenset(
            word for table in (index, tables.get_table("lemma_exc")) for words in table.values() for word in words
        )
        self._openers = frozenset(word for kind in ("verb", "adv") for word in index[kind])
        endings = tables.get_table("lemma_rules").values()
        self._endings = {(old, new) for pairs in endings for old, new in pairs if old.isalpha()}

    def knows(self, word: str) -> bool:
        """Return True if a word in lower case is in WordNet, in any of its forms."""
        if word in self._words:
            return True
        return any(word.endswith(old) and word[: -len(old)] + new in self._words for old, new in self._endings)

    def is_unknown(self, word: str) -> bool:
        """Return True if no list has a word in lower case: it is misspelled, or a rare name."""
        return not (self.knows(word) or word in STOP or word in STOPWORDS or word in known() or word in _SLANG)

    def is_opener(self, word: str) -> bool:
        """Return True if a word in lower case may be an imperative or an adverb, with which many sentences begin."""
        return word in self._openers

    @cached_property
    def _likeness(self) -> Likeness:
        return Likeness(self._words)

    def is_person(self, word: str, label: str | None, opens: bool = False, context: float | None = None) -> bool:
        """Return True if a capitalized word is more likely a person than a product.

        Args:
            opens: It opens a sentence, where the model overlooks names.
            context: What the words around it say, from -1 (a product) to 1 (a person). None: unknown.
        """
        if plain(word) in first_names():
            return True
        odds = self._likeness.of(word) + _SUPPORT * (label == "PERSON" or opens)
        if context is None:
            return odds > _LEAST_BY_LETTERS
        return (label == "PERSON" or context > 0) and odds + _CONTEXT * context > _LEAST

    def find(self, text: str) -> Iterator[NamedSpan]:
        """Yield the entities of a text, in order."""
        pieces = [(match[0], match.start()) for match in _PIECE.finditer(text)]
        for doc, start in self._pipeline.pipe(pieces, as_tuples=True, batch_size=8):
            for entity in doc.ents:
                yield NamedSpan(entity.label_, start + entity.start_char, start + entity.end_char)


@cache
def load_recognizer() -> Recognizer | None:
    """Return the recognizer if its model is on this machine, else None after one warning per process."""
    try:
        return Recognizer(models.find(models.NAMES, download=False))
    except ModelError as error:
        reason = str(error)
    except ModuleNotFoundError:
        reason = "spaCy is not installed. Install it with `pip install 'voxframe[local]'`"
    warnings.warn(f"{models.WITHOUT_NAMES}: {reason}", stacklevel=2)
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
_TO_PLACE = re.compile(
    r"\b(?:in|from|to|near|at|around|through|across|outside|inside|into|towards?|via|past|behind|beyond|left|visit|visited"
    r"|reached|by|and|the|of) $"
)
_IN_PLACE = re.compile(r"\b(?:in|near|outside|across|throughout) $")  # the model takes rare places for bodies, too
_NAMES, _PLACES = ("PERSON", "ORG"), frozenset(("GPE", "LOC", "FAC"))  # labels
_BODIES = _PLACES | {"ORG"}
_PERSON, _ORGANIZATION, _LOCATION = ("person_name", 59), ("organization", 61), ("location", 57)
#: Odds from which an unknown word is a person; what the model's label, or the start of a sentence, and the words around
#: it add to those of its letters. Chosen on entities_products_dev.txt and entities_names_dev.txt.
_LEAST, _LEAST_BY_LETTERS, _SUPPORT, _CONTEXT = 0.3, 0.6, 0.8, 3.0
_AROUND = 100  # characters of the sentence on each side of a word
_SURELY = 0.6  # probability from which the words around a name decide
#: "DuckDB" and "YSlow", but not "McDonald", "DeShawn", "O'Brien" or "AJ".
_INNER_CAPITALS = re.compile(
    r"^(?!(?:Ma?c|De|Di|Da|Du|La|Le|Van|Von|Fitz|O)(?:[A-Z][a-z]+)+$)[^\W\d_]*[a-z][A-Z]|[A-Z]{2}."
)


class _Word(NamedTuple):
    start: int
    end: int
    text: str
    low: str
    ordinary: bool  # in a dictionary, or a place, a people, a month ...
    listed: bool  # as a first or family name


def unlisted_names(run: WordRun, model: Recognizer, *, doubtful: bool = False) -> Iterator[EntityMatch]:
    """Yield person_name, organization and location; if `doubtful`, also persons that may as well be products."""
    if run.text == run.low or run.text.isupper():  # capitals say nothing
        return
    spans = {at: span for span in model.find(run.text) for at in range(span.start, span.end)}
    for match in _TOGETHER.finditer(run.text):
        words = [_word(run, match.start() + token.start(), token[0], model) for token in _TOKEN.finditer(match[0])]
        words = _without_opening(run, words, spans, model)
        if words and (kind := _kind(run, words, spans, model, doubtful=doubtful)):
            yield EntityMatch(kind[0], words[0].start, words[-1].end, kind[1])


def _without_opening(
    run: WordRun, words: list[_Word], spans: Mapping[int, NamedSpan], model: Recognizer
) -> list[_Word]:
    """Remove ordinary words at the start of a sentence: "Did Saoirse", but not "Rose Achebe" or "Kestrel Dynamics"."""
    while words and words[0].ordinary and run.opens_sentence(words[0].start):
        if len(words) > 1 and (words[0].listed or _is_one_name(words, spans, model)):
            break
        words = words[1:]
    return words


def _is_one_name(words: list[_Word], spans: Mapping[int, NamedSpan], model: Recognizer) -> bool:
    """Return True if the model takes the first two words for one name. "Tell Xochitl" and "Maybe Xochitl" are none."""
    first, span = words[0].low, spans.get(words[0].start)
    if span is None or span.label not in _NAMES or span is not spans.get(words[1].start):
        return False
    return not (first in STOP or first in STOPWORDS or model.is_opener(first))


def _word(run: WordRun, start: int, text: str, model: Recognizer) -> _Word:
    text = re.sub(r"['\u2019]s$", "", text)
    low = run.low[start : start + len(text)]
    spoken = re.sub(r"'(?:ll|ve|re|d|m)$", "", low)
    ordinary = spoken in STOP or low in STOPWORDS or low in known() or all(map(model.knows, low.split("-")))
    ordinary = ordinary or low in _SLANG or not _VOWEL.search(low.split("-")[-1])  # "Mm-hmm"
    return _Word(start, start + len(text), text, low, ordinary, low not in STOP and is_listed(low))


def _before(run: WordRun, at: int) -> str:
    """Return the lower-case text just before a character, long enough for every preposition and article."""
    return run.low[max(0, at - 20) : at]


def _kind(
    run: WordRun, words: list[_Word], spans: Mapping[int, NamedSpan], model: Recognizer, *, doubtful: bool
) -> tuple[str, int] | None:
    """Return kind and weight of a name; None if the words are none, or of another kind."""
    kinds = (spans[word.start].label for word in words if word.start in spans)
    label = next((label for label in kinds if label in _NAMES), None)
    first, last, before = words[0], words[-1], _before(run, words[0].start)
    is_known_word = first.ordinary or (last is first and not model.is_person(first.low, None))  # "Lake Bled", "Brno"
    if is_known_word and not first.listed:
        labels = {spans[word.start].label if word.start in spans else None for word in words}
        if (labels <= _PLACES and _TO_PLACE.search(before)) or (labels <= _BODIES and _IN_PLACE.search(before)):
            return _LOCATION
    if all(word.ordinary for word in words):
        return _kind_of_ordinary(run, words, label)
    if last is not first:
        return _kind_of_several(run, words, label, doubtful=doubtful)
    if _ARTICLE.search(before) or first.text.isupper():
        return None
    if before.endswith(" at ") and not first.listed:
        return _ORGANIZATION
    if label == "ORG" and _BEFORE_BODY.search(before) and not _is_first_name(first):
        return _organization_unless_thing(run, words)
    if doubtful:
        return _PERSON
    if _INNER_CAPITALS.search(first.text):
        return None
    chances, opens = _chances(run, words), run.opens_sentence(first.start)
    return _PERSON if model.is_person(first.low, label, opens, chances and chances.context) else None


def _organization_unless_thing(run: WordRun, words: Sequence[_Word]) -> tuple[str, int] | None:
    """Return an organization, or None if its sentence shows that it is a product or another thing."""
    chances = _chances(run, words)
    return _ORGANIZATION if chances is None or chances.thing < _SURELY else None


class _Chances(NamedTuple):
    """Probabilities that the words of a name are a person, an organization or a thing, by their sentence."""

    person: float
    organization: float
    thing: float

    @property
    def context(self) -> float:
        return self.person - self.thing


def _chances(run: WordRun, words: Sequence[_Word]) -> _Chances | None:
    """Return the means over the words of a name. None: no encoder."""
    if (encoder := find_encoder()) is None:
        return None
    start, end = words[0].start, words[-1].end
    before = SENTENCE_END.split(run.text[max(0, start - _AROUND) : start])[-1].split()
    name_and_rest = SENTENCE_END.split(run.text[start : end + _AROUND])[0].split()
    vectors = encoder.words([[*before, *name_and_rest]])[0][len(before) :]
    kinds = classifier("names")
    means = kinds.probabilities(vectors[: len(run.text[start:end].split())] / WORD_SCALE).mean(axis=0)
    return _Chances(*(float(means[kinds.labels.index(kind)]) for kind in _Chances._fields))


def _is_first_name(word: _Word) -> bool:
    return word.listed or plain(word.low) in first_names()


def _kind_of_several(
    run: WordRun, words: Sequence[_Word], label: str | None, *, doubtful: bool
) -> tuple[str, int] | None:
    """Return kind and weight of a name of several words, of which some are in no dictionary.

    A person needs two reasons: the model's label, a first name, the words around it (which count twice if they are
    sure). If the last word is an ordinary one, as in "Pinewood Analytics", three.
    """
    first, last = words[0], words[-1]
    if "&" in run.text[first.start : last.end]:  # "Fir & Sons"
        return _ORGANIZATION
    chances = _chances(run, words)
    reasons = (label == "PERSON") + _is_first_name(first)
    reasons += 2 if chances is None else (chances.context > 0) + (chances.person > _SURELY)
    middle = (word for word in words if not run.opens_sentence(word.start))  # "Quill Ashdown plays the cello"
    ordinary = middle if label == "ORG" else (last,)
    if any(word.ordinary and not word.listed for word in ordinary):
        return _PERSON if reasons > 2 else _ORGANIZATION
    if doubtful or (reasons > 1 and not any(_INNER_CAPITALS.search(word.text) for word in words)):
        return _PERSON
    return _ORGANIZATION if label == "ORG" else None


def _kind_of_ordinary(run: WordRun, words: list[_Word], label: str | None) -> tuple[str, int] | None:
    """Return kind and weight of a name whose words are all in the dictionary."""
    first, several, before = words[0], len(words) > 1, _before(run, words[0].start)
    if label is None:  # "from Polar Freight"
        is_body = several and words[-1].low not in STOP and not run.opens_sentence(first.start)
        return _ORGANIZATION if is_body and _AT_BODY.search(before) else None
    if first.low in known() or (not several and _ARTICLE.search(before)):
        return None
    if label == "PERSON":
        if not any(word.listed for word in words):
            return None
        chances = _chances(run, words)
        return _PERSON if chances is None or chances.context > 0 else None
    return _organization_unless_thing(run, words) if several else None


def is_no_person(run: WordRun, match: EntityMatch, model: Recognizer, *, doubtful: bool = False) -> bool:
    """Return True if a match of the name lists is an ordinary word after an article: "a Roman coin".

    Unless `doubtful`, also for abbreviations ("the DOM"), and for words of the dictionary that are things in their
    sentence: "Case and Bobcat sell tractors".
    """
    text = run.text[match.start : match.end]
    if match.kind != "person_name":
        return False
    if model.knows(text.lower()) and _ARTICLE.search(_before(run, match.start)):
        return True
    if doubtful or match.weight > _PERSON[1] or run.text == run.low or run.text.isupper():
        return False
    words = [_word(run, match.start + token.start(), token[0], model) for token in _TOKEN.finditer(text)]
    if text.isupper() or not model.knows(words[0].low):
        return text.isupper()
    chances = _chances(run, words)
    return chances is not None and chances.context < 0


_PRIOR = 0.3  # occurrences that every group of letters has beforehand
_EVERY = 4  # of this many dictionary words, one is enough to count its letters
_FIELDS = ("first_names", "first_names_male", "first_names_female")


def plain(word: str) -> str:
    """Return a word in lower case without accents."""
    letters = unicodedata.normalize("NFKD", word.lower())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


@cache
def first_names() -> frozenset[str]:
    """Return the first names of every locale that is written in Latin script, in lower case without accents."""
    package = import_module("faker.providers.person")
    providers = [import_module(f"{package.__name__}.{m.name}").Provider for m in pkgutil.iter_modules(package.__path__)]
    lists = [getattr(provider, field, ()) for provider in providers for field in _FIELDS]
    every = (plain(name) for names in lists if isinstance(names, Collection) for name in names)
    return frozenset(name for name in every if len(name) > 2 and name.isascii() and name.isalpha())


class Likeness:
    """Compares words with first names: naive Bayes over letters, with the words of WordNet as others.

    It tells "Ingvild" from "Buildkite", which a recognizer by context takes for the same thing.
    """

    def __init__(self, words: Collection[str]) -> None:
        names = first_names()
        others = [word for word in sorted(words)[::_EVERY] if word.isascii() and word.isalpha() and word not in names]
        self._names = Counter(part for name in names for part in _parts(name))
        self._others = Counter(part for word in others for part in _parts(word))
        self._scale = math.log(self._others.total() / self._names.total())

    def of(self, word: str) -> float:
        """Return the mean logarithm of the odds of three and four letters in a row; above 0, a name is likelier."""
        odds = [math.log((self._names[p] + _PRIOR) / (self._others[p] + _PRIOR)) for p in _parts(plain(word))]
        return sum(odds) / len(odds) + self._scale


def _parts(word: str) -> Iterator[str]:
    framed = f"^{word}$"
    return (framed[at : at + size] for size in (3, 4) for at in range(max(1, len(framed) - size + 1)))


class Entity(NamedTuple):
    """A detected entity."""

    kind: str
    text: str
    indexes: tuple[int, ...]


def find(
    words: Sequence[WordDict],
    language_code: str | None = None,
    names: Recognizer | None = None,
    *,
    doubtful: bool = False,
) -> list[Entity]:
    """Return all detected entities, ordered by position. They do not overlap, but one written word may contain two.

    Args:
        names: Recognizer of names. None: names are only found by lists and by the words around them.
        doubtful: Also return unknown words with capitals that are more likely products than persons, for redaction.

    Example:
        >>> [e[:2] for e in find([{"text": t, "start": 0, "end": 9} for t in "she paid forty two dollars".split()])]
        [('money_amount', 'forty two dollars')]
    """
    region = "GB" if language_code == "en_uk" else "US"
    detected = [entity for run in runs(words) for entity in _in_run(run, region, names, doubtful)]
    if names:
        again = list(_named_again(words, detected, names))
        things = set() if doubtful else _things(detected, again)
        detected = [e for e in [*detected, *again] if e.kind != "person_name" or e.text.lower() not in things]
    return sorted(detected, key=lambda entity: entity.indexes)


def _things(detected: Sequence[Entity], again: Sequence[Entity]) -> set[str]:
    """Return words, in lower case, that are taken for a person in less than half of their places: "Kubernetes"."""
    persons = Counter(word for e in detected if e.kind == "person_name" for word in e.text.lower().split())
    others = Counter(entity.text.lower() for entity in again)
    return {text for text, count in others.items() if count > persons[text] and plain(text) not in first_names()}


_VERB_AFTER = frozenset(
    "is was will has had said says can could would does did and rang called isn't wasn't won't".split()
)


def _named_again(words: Sequence[WordDict], detected: Sequence[Entity], names: Recognizer) -> Iterator[Entity]:
    """Yield words with capitals that are part of a person's name elsewhere in the transcript.

    Words of the dictionary count where they are used as names: "Will will be back".
    """
    used = {index for entity in detected for index in entity.indexes}
    parts = {part for entity in detected if entity.kind == "person_name" for part in entity.text.lower().split()}
    for index, word in enumerate(words):
        text = re.sub(r"['\u2019]s$", "", _clean(word["text"]))
        if index in used or not text[:1].isupper() or text.lower() not in parts:
            continue
        if not names.knows(text.lower()) or _is_used_as_name(words, index):
            yield Entity("person_name", text, (index,))


def _is_used_as_name(words: Sequence[WordDict], index: int) -> bool:
    """Return True for a word within a sentence, before a comma, or before a verb."""
    before = words[index - 1]["text"] if index else "."
    after = words[index + 1]["text"].lower() if index + 1 < len(words) else ""
    return before[-1:] not in ".?!:" or words[index]["text"].endswith(",") or after in _VERB_AFTER


_WORD_AFTER = re.compile(r" [a-z]{3,}(?![\w'.-]\w)")
_SETTLED = ("person_age", "date_interval")  # not joined with a number after a comma: "I'm 42, 415 555 0137"


def _in_run(run: WordRun, region: str, names: Recognizer | None, doubtful: bool) -> Iterator[Entity]:
    matches = [
        f for detect in (contacts, dates, ages, amounts, addresses, organisations, people, terms) for f in detect(run)
    ]
    if names:
        matches = [f for f in matches if not is_no_person(run, f, names, doubtful=doubtful)] + list(
            unlisted_names(run, names, doubtful=doubtful)
        )
        if run.text == run.low:
            matches = [_with_rare_family(run, f, names) for f in matches]
    settled = [f for f in matches if f.kind in _SETTLED]
    for f in _strongest([*_whole_names(matches), *identifiers(run, region, settled)]):
        yield Entity(f.kind, _clean(run.text[f.start : f.end]), run.indexes_of(f.start, f.end))


def _whole_names(matches: Iterable[EntityMatch]) -> list[EntityMatch]:
    """Return the matches with overlapping names of persons joined: "Annelise von" and "Annelise von der Heydt"."""
    people = sorted((f for f in matches if f.kind == "person_name"), key=lambda f: (f.start, f.end))
    joined: list[EntityMatch] = []
    for f in people:
        if joined and f.start < joined[-1].end:
            last = joined.pop()
            best = max(last, f, key=lambda f: f.weight)
            f = best._replace(end=max(last.end, f.end))
        joined.append(f)
    return [*(f for f in matches if f.kind != "person_name"), *joined]


def _with_rare_family(run: WordRun, match: EntityMatch, names: Recognizer) -> EntityMatch:
    """Return a name in text without capitals with the word after it, if no dictionary has that word."""
    after = _WORD_AFTER.match(run.low, match.end)
    if match.kind != "person_name" or after is None or not names.is_unknown(after[0][1:]):
        return match
    return match._replace(end=after.end())


def _strongest(matches: Iterable[EntityMatch]) -> list[EntityMatch]:
    """Return the best matches that do not overlap, in order. A title before a name is not an occupation."""
    used: set[int] = set()
    strongest = []
    for f in sorted(matches, key=lambda f: (-f.weight, f.start - f.end)):
        if used.isdisjoint(range(f.start, f.end)):
            used.update(range(f.start, f.end))
            strongest.append(f)
    named = {f.start for f in strongest if f.kind == "person_name"}
    return sorted((f for f in strongest if f.kind != "occupation" or f.end + 1 not in named), key=lambda f: f.start)


def _clean(text: str) -> str:
    text = text.strip(' ,;:!?"')
    return text.rstrip(".") if text.count(".") == 1 else text


def to_dict(entity: Entity, words: Sequence[WordDict]) -> dict[str, Any]:
    """Return an entity as it appears in a transcript."""
    spoken = [words[index] for index in entity.indexes]
    return {
        "entity_type": entity.kind,
        "text": entity.text,
        "start": spoken[0]["start"],
        "end": max(word["end"] for word in spoken),
    }
