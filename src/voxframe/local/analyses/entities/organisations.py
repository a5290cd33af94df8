"""Names of organisations and addresses: names with a word like "University" or "Street" in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from voxframe.local.analyses.entities.people import STOP
from voxframe.local.analyses.entities.spoken import BELOW_100
from voxframe.local.analyses.entities.text import Found, Run, rules, said

_ENDS = (
    "university college bank foundation company corporation corp incorporated inc ltd limited llc hospital "
    "institute association agency ministry museum airlines airways insurance clinic society commission authority "
    "bureau union trust group holdings committee federation laboratory laboratories press records studios "
    "orchestra academy partners services systems technologies industries council office department center centre "
    "school church library books club police"
).split()
_SURE_END = (
    r"(?:university|college|bank|foundation|company|corporation|hospital|institute|association|society|clinic|airlines"
    r"|orchestra|museum|trust)"
)
_BODY = (
    r"(?:office|agency|council|committee|commission|institute|service|authority|association|bank|library|museum"
    r"|organi[sz]ation)"
)
_OF = r"(?:University|Department|Ministry|Bank|Institute|College|Bureau|Museum|School|Office|Church|Board)"
# "The whole company", "the nearest hospital": no names.
_GENERIC = frozenset(
    """
    whole new local old same big small large largest great good best private public main other our my your his her
    their this that every each which city nearest teaching general community state entire savings investment central
    only first second last next young rich poor insurance phone oil power gas car software parent record service
    shell holding river left right south north west east food data blood art law medical business elementary primary
    high middle secondary boarding summer catholic village town children's secret
    """.split()
)
# A full stop ends a sentence, but for initials and the short forms that names have.
_CAP = r"(?:(?:[A-Z]\.)+|(?:St|Mt|Ft|Dr|Mr|Mrs|Ms|Jr|Sr|Co|Corp|Inc|Bros)\.|[A-Z][\w&'\u2019-]*(?:\.[\w&'\u2019-]+)*)"
_NAME = r"[a-z][a-z'-]*[a-z]"
_WRITTEN = re.compile(
    rf"\b(?:{_CAP} (?:(?:of|for|and|&) (?=[A-Z]))?){{1,6}}(?i:{'|'.join(_ENDS)})\b\.?"
    rf"(?: of {_CAP}(?: (?:and )?{_CAP})*)?"
    rf"|\b{_OF} (?:of|for) (?:the )?{_CAP}(?: (?:and |of |& )?{_CAP})*"
)
_TWO = re.compile(rf"(?<=\b)(?:{'|'.join(_ENDS)})(?P<gap> (?:and|&) )", re.IGNORECASE)
_QUALITY = r"(?:national|federal|international|royal|american|british|european|world)"
_NO_OWNER = r"(?!(?:the|my|our|his|her|their|an?|this|that)\b)"
_SPOKEN = rules(
    "organization",
    64,
    rf"\b(?:the|for|at|with|of|from|by|joined|and|or) (?P<it>(?:{_NAME} ){{1,3}}?{_SURE_END})\b",
    rf"\b(?P<it>{_QUALITY} (?:{_NAME} ){{1,3}}?{_BODY})\b",
    rf"\b(?P<it>{_NAME} university)\b",
    rf"\b(?:calling|at|with) (?P<it>(?:{_NAME} ){{1,2}}(?:books|records|insurance|airlines|services|systems))\b",
)
_SPOKEN_OF = rules(
    "organization",
    64,
    rf"\b(?:university|department|ministry|bank|bureau) of {_NO_OWNER}{_NAME}(?: and {_NAME})?\b",
)
_STREET = r"(?:street|avenue|road|lane|drive|boulevard|court|terrace|square|parkway|highway)"
_NUMBER = rf"(?:\d{{1,5}}|{BELOW_100}(?: (?:hundred(?: and)?|{BELOW_100})){{0,4}})"
_ADDRESS = re.compile(rf"\b{_NUMBER} (?P<name>(?:{_NAME} ){{1,3}}?){_STREET}\b")
# A preposition without an article stands before names: "on market street", but "on the busy street".
_ON_STREET = re.compile(rf"\b(?:on|along|at|down|off|of|from|to|and|near) (?P<name>{_NAME}(?: {_NAME})?) {_STREET}\b")
_STREET_NAME = re.compile(r"\b(?:[A-Z][a-z']+ ){1,3}(?:Street|Avenue|Road|Lane|Drive|Boulevard|Square|Parkway)\b")


def organisations(run: Run) -> Iterator[Found]:
    """Organization, and location where it is a street or a whole address."""
    for match in _WRITTEN.finditer(run.text):
        start = match.start()
        for gap in [*_TWO.finditer(match[0]), None]:
            end = match.start() + gap.start("gap") if gap else match.end() - match[0].endswith(".")
            yield from _without_opening(run, start, end)
            start = match.start() + gap.end() if gap else end
    for found in said(run, _SPOKEN):
        yield from _spoken(run, found)
    yield from said(run, _SPOKEN_OF)
    for match in _ADDRESS.finditer(run.low):
        name = match["name"].split()
        if STOP.isdisjoint(name) and name[-1] != "wheel":
            yield Found("location", *match.span(), 74)
    for match in _ON_STREET.finditer(run.low):
        if STOP.isdisjoint(match["name"].split()) and match["name"] not in _GENERIC:
            yield Found("location", match.start("name"), match.end(), 60)
    for match in _STREET_NAME.finditer(run.text):
        yield Found("location", *match.span(), 60)


def _without_opening(run: Run, start: int, end: int) -> Iterator[Found]:
    """The written name without "The" or "My", and not what is left where that was all: "The Bank"."""
    first = run.text[start:end].split()[0]
    if first.lower() in STOP or (run.opens_sentence(start) and first.lower() in _GENERIC):
        start += len(first) + 1
    if " " in run.text[start:end]:
        yield Found("organization", start, end, 66)


def _spoken(run: Run, found: Found) -> Iterator[Found]:
    """The spoken name from behind its last small word, unless "big" or "whole" is all there is to it."""
    kept = run.low[found.start : found.end].split()
    last_small = max((at for at, word in enumerate(kept[:-1]) if word in STOP), default=-1)
    name = kept[last_small + 1 :]
    if len(name) > 1 and not (len(name) == 2 and name[0] in _GENERIC):
        yield found._replace(start=found.end - len(" ".join(name)))
