"""Entities found by word list: drugs, medical conditions, occupations, religions, events, organizations, places.

The lists of terms, places, nationalities and languages were written for the project; personal names are from Faker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import NamedTuple

from voxframe_engine.analyses.entities.text import EntityMatch, WordRun, find_matches, rules

_COMMON_FIRST = ("en_US", "en_GB")
_FIRST = "en en_IN en_IE en_PK de_DE es_ES fr_FR it_IT nl_NL pl_PL pt_BR sv_SE tr_TR".split()
_FAMILY = ("en_US", "en_GB", "en_IN", "es_ES")
# Peoples whose name has two words; other lines of two names are two peoples.
_TWO_WORDS = ("south", "north", "costa", "puerto", "sri", "latin")
_SHORT_PLACES = ("u s", "u.s", "u s a", "usa", "u.s.a", "uk", "u k", "u.k")

# First names that are everyday words or titles: in lower case they are no names.
EVERYDAY_FIRST = frozenset(
    """
    will may mark grace hope rose art bill rich frank miles april june august summer autumn winter dawn faith joy
    jack drew dale chase hunter carter mason cooper parker taylor tyler baker page gene guy chip pat sue rob bob don
    ray jean glen cliff dean earl duke king prince pearl ruby amber crystal ivy lily violet daisy olive iris heather
    holly ginger angel christian stone brook brooke lane reed heath forest woody rusty sandy misty stormy star sky
    rain melody harmony charity chance trace destiny trinity genesis journey troy jay robin wade grant lance max val
    penny sunny buddy ty van mac ace josh nick stew skip major miller so see even son case tad herb tab bud norm
    dick merry noble royal sterling wells wood brown green white black young long short love little price hill
    rivers mercy precious blessing patience prudence sage les del lee kay kit jo my me ho do le la de man men guy
    lady sir honey cash rocky storm ocean ever
    """.split()
)
#: Family names that are everyday words too.
EVERYDAY_FAMILY = frozenset(
    """
    brown green white black young long short love little price hill rivers wood woods stone wells king may day park
    parks bell bush cook fish fox wolf rice bean banks street field fields brooks waters snow frost winter summers
    church temple marsh moss moon bond sharp small strong wise good best rich poor gay savage wild hardy hand head
    foot case cross ball bird pope bishop dean mayor knight page ray rose berry cherry lane west north east south
    english french german holland ireland walls house houses power powers goodman cash burns walker baker carpenter
    farmer fisher hunter potter singer shepherd weaver gardener golden silver steel gates key lock so in do he an le
    the this that dodge ford pace blue grant much chance early booth glass hood mills block branch mark boyd will
    sellers barber archer mason miner porter sexton justice law lawyer pool pond riddle self sweet swift bright
    """.split()
)


class Names(NamedTuple):
    """Personal names in lower case."""

    common: frozenset[str]
    first: frozenset[str]
    family: frozenset[str]


@cache
def names() -> Names:
    """Return the lists of names."""

    def listed(locales: Sequence[str], field: str) -> frozenset[str]:
        providers = [import_module(f"faker.providers.person.{locale}").Provider for locale in locales]
        return frozenset(name.lower() for provider in providers for name in getattr(provider, field) if " " not in name)

    places = {
        term for term, kind in known().items() if kind.startswith(("location", "nationality", "language", "event"))
    }
    common = listed(_COMMON_FIRST, "first_names")
    first = common | (listed(_FIRST, "first_names") - places)
    return Names(common, first, listed(_FAMILY, "last_names"))


def is_listed(word: str) -> bool:
    """Return True if a word in lower case is a listed first or family name."""
    return word in names().first or word in names().family


@cache
def known() -> dict[str, str]:
    """Return the kind of every term. A word for both a people and a language has the kind "nationality/language"."""
    kinds: dict[str, str] = {}
    for group, entries in _lines("terms.txt"):
        kinds |= dict.fromkeys(re.split(r", *", entries), group)
    for _, entries in _lines("places.txt"):
        for entry in re.split(r"[;,] *", entries):
            place, peoples, languages = (*entry.split("/"), "", "")[:3]
            kinds[place] = "location"
            together = peoples.startswith(_TWO_WORDS)
            kinds |= dict.fromkeys([peoples] if together else peoples.split(), "nationality")
            for language in languages.split():
                kinds[language] = "nationality/language" if "nationality" in kinds.get(language, "") else "language"
    return kinds | dict.fromkeys(_SHORT_PLACES, "location")


def _lines(file: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a list file as (text before the colon, text after it)."""
    for line in files(__package__).joinpath(file).read_text("utf-8").splitlines():
        group, colon, entries = line.partition(": ")
        if colon and not line.startswith("#"):
            yield group, entries.strip()


_WORD = re.compile(r"[a-z0-9&]+(?:['.-][a-z0-9&]+)*")
_LONGEST = 5  # words of the longest term
_NEAR = 200  # characters of context; with the whole text, time would grow with the square of its length
_THE_BEFORE = re.compile(r"\bthe $")
_PLACE_BEFORE = re.compile(
    r"(?:\b(?:of|in|from|to|near|at|around|through|across|outside|inside|for|and|or|visit|visited|left|towards?|into)|,)"
    r" (?:the )?$"
)
#: Before a place that is a first name too: "in georgia", but "for georgia".
_SURE_PLACE_BEFORE = re.compile(r"\b(?:in|near|across|outside|inside|into|throughout|visit|visited) $")
#: Added to the weight of terms of several words, so that a name, a day or a street in them does not replace them.
_SEVERAL_WORDS = {"location": 8, "organization": 10, "event": 10}
_SPEAK = re.compile(
    r"\b(?:speaks?|spoke|spoken|speaking|translat\w+|languages?|learn\w*|fluent|understands?|study|studies|subtitles"
    r"|dialect|accent|interpreter|grammar|say it|written|available)\b[^.?!]*$"
)
_PEOPLE_BEFORE = re.compile(r"\b(?:is|am|was|are|a|the|speaks?|in|from|and) $")
_COUNTRY_BEFORE = re.compile(r"\b(?:in|from|to|of) $")
_CARRIER_BEFORE = re.compile(r"\b(?:by|via|through|with|from|at|for|called|use|used|using) $")
_DETERMINER = re.compile(r"\b(?:an?|the|my|his|her|our|their|your|as|two|three|prime|head|new|former) $")
# Jobs that are verbs, names or things too.
_UNSURE_JOBS = frozenset(
    "coach cook cooks judge baker conductor logger usher author clerk painter miner tailor".split()
)
_TAKES_THE = frozenset(
    ("us", "usa", "u s", "u s a", "uk", "u k", "netherlands", "philippines", "united states", "united kingdom")
)

_COPULA = r"(?:am|is|are|was|were|still|be|stay|stayed|'m|'s|'re) (?:not |still |now |newly |recently )*"
_BROKEN = r"(?:broken|fractured|sprained|twisted|injured|dislocated|torn|bruised|broke|fracture|sprain)"
_LIMB = (
    r"(?:leg|arm|wrist|ankle|rib|nose|finger|toe|hip|knee|shoulder|elbow|skull|jaw|foot|hand|collarbone|back|neck)s?"
)
_ORGAN = (
    r"(?:lung|breast|skin|colon|prostate|brain|liver|bone|stomach|ovarian|blood|heart|kidney|respiratory|mental|chronic"
    r"|genetic|autoimmune|cardiovascular|pancreatic|cervical|eye|thyroid)"
)
_TROUBLE = r"(?:cancer|tumou?r|conditions?|diseases?|disorders?|illness|problems?|infection|failure|trouble)"
_NO_GROUP = (
    r"(?! (?:answer|attitude|result|test|thing|side|view|way|feedback|impact|effect|number|experience|influence|review"
    r"|note))"
)
# Everyday words that mean something here only in the right company.
_IN_COMPANY = [
    *rules(
        "marital_status",
        60,
        rf"\b{_COPULA}(?P<it>single|engaged|separated)\b(?!-)"
        r"(?! (?:in|into|with|by|from|out|one|most|day|time|word|use|handed|minded)\b)",
    ),
    *rules(
        "gender_sexuality",
        60,
        r"\b(?:he|she|they|i|who|identif\w+ as)(?: is| am| are|'s|'m|'re)? (?P<it>straight|trans)\b"
        r"(?! (?:ahead|away|up|to|through|forward|from|at|in)\b)",
    ),
    *rules(
        "zodiac_sign",
        60,
        r"\b(?:an?|sign is|sign of) (?P<it>leo|cancer|gemini|libra)\b"
        r"(?! (?:cell|patient|treatment|diagnosis|research|cent))",
    ),
    *rules(
        "blood_type",
        60,
        rf"\b(?:type (?:a ?b|a|b|o)|a ?b|b|o)[ -]?(?:positive|negative|\+|-)(?=[ .,;?!]|$){_NO_GROUP}",
        # "A positive" may be an article, and "B plus" a mark.
        rf"\bblood (?:type|group)(?: is|'s)? (?P<it>(?:a ?b|a|b|o)[ -]?(?:positive|negative|plus|minus|\+|-))"
        rf"(?=[ .,;?!]|$){_NO_GROUP}",
    ),
    *rules("injury", 60, rf"\b{_BROKEN} (?:(?:my|his|her|their|your|both|the|an?) )?(?:left |right )?{_LIMB}\b"),
    *rules("medical_condition", 60, rf"\b{_ORGAN} {_TROUBLE}\b"),
    *rules("language", 60, r"\b(?:latin|sign language|sanskrit|yiddish|esperanto)\b(?! america)"),
]
_TYPE_A = re.compile(rf"(?<=[a-z] )A[ -]?(?:positive|negative)(?=[ .,;?!]|$){_NO_GROUP}")  # "a" is an article
_STORMS = rules("event", 60, r"\b(?:hurricane|typhoon|cyclone|storm) [a-z]{3,}\b")


def terms(run: WordRun) -> Iterator[EntityMatch]:
    """Yield all kinds that are found by word list."""
    tokens = list(_WORD.finditer(run.low))
    at = 0
    while at < len(tokens):
        for count in range(min(_LONGEST, len(tokens) - at), 0, -1):
            start, end = tokens[at].start(), tokens[at + count - 1].end()
            kind = _kind(" ".join(token[0] for token in tokens[at : at + count]))
            if kind and not re.search(r"[,?!;] |(?<!\bst)\. ", run.low[start:end]):
                kind = _in_context(run, kind, start, end)
                if kind:
                    weight = 50 + count + (_SEVERAL_WORDS.get(kind, 0) if count > 1 else 0)
                    if kind == "location" and _SURE_PLACE_BEFORE.search(run.low, max(0, start - 12), start):
                        weight += 3
                    start = _with_article(run, kind, start, end)
                    yield EntityMatch(kind, start, end, weight)
                at += count - 1
                break
        at += 1
    yield from find_matches(run, _IN_COMPANY)
    for match in _TYPE_A.finditer(run.text):
        yield EntityMatch("blood_type", *match.span(), 60)
    for storm in find_matches(run, _STORMS):
        name = run.text[storm.start : storm.end].split()[1]
        if name.lower() in names().first or (name[0].isupper() and run.text[storm.start].isupper()):
            yield storm
    for match in re.finditer(r"\b(?:the )?U\.?S\.?(?:A\.?)?(?=\W|$)", run.text):
        yield EntityMatch("location", *match.span(), 50)


def _kind(phrase: str) -> str:
    """Return the kind of a term, also in its plural."""
    if phrase in known():  # "mcdonald's"
        return known()[phrase]
    phrase = phrase.removesuffix("'s")
    if phrase in known():
        return known()[phrase]
    for plural, singular in (("s", ""), ("es", ""), ("ies", "y"), ("men", "man")):
        form = phrase.removesuffix(plural) + singular
        if (
            phrase.endswith(plural)
            and len(form) > 3
            and known().get(form, "location") not in ("location", "organization")
        ):
            return known()[form]
    return ""


def _in_context(run: WordRun, kind: str, start: int, end: int) -> str:
    """Return the kind of a term in its context; empty if it is an ordinary word there."""
    before, after, text = run.low[max(0, start - _NEAR) : start], run.low[end : end + _NEAR], run.low[start:end]
    capital = run.text[start].isupper()
    if kind == "nationality/language":
        spoken = _SPEAK.search(before)
        named = before.endswith(" in ") and not re.match(r" [a-z]", after)
        kind = "language" if spoken or named else "nationality"
    if text in ("polish", "dane", "finn", "scot", "thai") and not capital:
        return kind if _PEOPLE_BEFORE.search(before) else ""
    if text == "ups" and not capital:  # "ups and downs"
        return kind if _CARRIER_BEFORE.search(before) else ""
    if text in ("turkey", "china") and not capital:
        return kind if _COUNTRY_BEFORE.search(before) else ""
    if kind == "location" and text in names().common:
        return kind if _PLACE_BEFORE.search(before) else ""
    if text in _UNSURE_JOBS or text in ("burn", "burns"):
        return kind if _DETERMINER.search(before) or text == "burns" else ""
    return kind


def _with_article(run: WordRun, kind: str, start: int, end: int) -> int:
    """Return the start of a term, including "the" if it belongs to the name: "the US", "the second world war"."""
    takes = kind == "event" or run.low[start:end] in _TAKES_THE or (kind == "organization" and end - start > 8)
    the = _THE_BEFORE.search(run.low, max(0, start - 4), start)
    return start - 4 if takes and the and run.low[start:end] not in ("super bowl", "christmas") else start
