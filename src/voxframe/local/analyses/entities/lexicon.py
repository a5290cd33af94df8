"""Lists of words: terms by kind, places, peoples and languages (written for the project), and names (from faker)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import NamedTuple

_COMMON_FIRST = ("en_US", "en_GB")
_FIRST = (
    "en",
    "en_IN",
    "en_IE",
    "en_PK",
    "de_DE",
    "es_ES",
    "fr_FR",
    "it_IT",
    "nl_NL",
    "pl_PL",
    "pt_BR",
    "sv_SE",
    "tr_TR",
)
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
    """Names of people, in lower case.

    Attributes:
        common: First names that are common in English.
        first: First names of many countries.
        family: Family names.
    """

    common: frozenset[str]
    first: frozenset[str]
    family: frozenset[str]


@cache
def names() -> Names:
    """The lists of names."""

    def listed(locales: tuple[str, ...], field: str) -> frozenset[str]:
        providers = [import_module(f"faker.providers.person.{locale}").Provider for locale in locales]
        return frozenset(name.lower() for one in providers for name in getattr(one, field) if " " not in name)

    places = {
        term for term, kind in known().items() if kind.startswith(("location", "nationality", "language", "event"))
    }
    common = listed(_COMMON_FIRST, "first_names")
    first = common | (listed(_FIRST, "first_names") - places)
    return Names(common, first, listed(_FAMILY, "last_names"))


@cache
def known() -> dict[str, str]:
    """Kind of every term. A word that is a people and a language is of the kind "nationality/language"."""
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
    """Lines of a file of lists: what stands before the colon, and after it."""
    for line in files(__package__).joinpath(file).read_text("utf-8").splitlines():
        group, colon, entries = line.partition(": ")
        if colon and not line.startswith("#"):
            yield group, entries.strip()
