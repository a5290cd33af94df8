"""Postal addresses: unit, number and street, then town, region and postcode, written or spoken.

"Flat 3, 86 Corporation Street, Preston, PR1 9QX", "P.O. Box 118, Ames, Iowa 50010", "38 Rue des Érables", and "one oh
six larkspur avenue apartment four b". Streets are also found without a number: "on Market Street".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from voxframe_engine.analyses.entities.listed_terms import known, names
from voxframe_engine.analyses.entities.people import STOP, is_generic
from voxframe_engine.analyses.entities.text import BELOW_100, DIGIT, EntityMatch, WordRun

_NAME = r"[a-z][a-z'-]*[a-z]"
_STREET = (
    r"(?:street|avenue|road|lane|drive|boulevard|court|terrace|square|parkway|highway|crescent|mews|esplanade|turnpike)"
)
#: Also a street if the address is written as one: "14 Larkspur Close".
_SURE_STREET = (
    r"(?:(?:St|Ave?|Rd|Ln|Dr|Blvd|Ct|Pl|Sq|Hwy|Pkwy|Cres|Ter)\b\.?|(?:Street|Avenue|Road|Lane|Drive|Boulevard|Court"
    r"|Terrace|Square|Parkway|Highway|Close|Way|Crescent|Place|Gardens?|Grove|Mews|Circle|Parade|Wharf|Alley|Quay"
    r"|Turnpike|Croft|Esplanade|Promenade|Causeway|Broadway)\b)"
)
#: Also words for much else: "In room 5 Anna House met ...". They need a cue, a town or a postcode.
_DOUBTFUL_STREET = (
    r"(?:Row|Hill|Rise|Walk|Trail|View|Green|Park|Bend|Loop|Run|Path|Pike|Ridge|Hollow|Crossing|Point|Heights|Meadows?"
    r"|Vale|Yard|Chase|Cove|Landing|Gate|Bridge|House|Cottages?|Towers?|Mansions|Villas|Lodge|Strand)\b"
)
_WRITTEN_STREET = rf"(?:{_SURE_STREET}|(?P<doubtful>{_DOUBTFUL_STREET}))"
_BEFORE_NAME = r"(?:Rue|Avenue|Via|Viale|Piazza|Calle|Avenida|Paseo|Plaza|Rua|Boulevard|Chemin|Place|Corso|Camino)"
_ONE_WORD = (
    r"[A-ZÄÖÜ]\w+(?:stra(?:ß|ss)e|str\.|straat|gasse|weg|allee|platz|laan|plein|gatan|vägen|veien|gata|gade|vej)"
)
# A full stop belongs only to short forms: "St. Mary's".
_CAP = r"(?!I\b)(?:(?:St|Ste|Mt|Ft|Pt|Dr|Ave|Rd|Ln|[A-Z])\.|[^\W\d_a-z][\w'\u2019-]*|\d{1,3}(?:st|nd|rd|th))"
_SMALL = r"(?:de|des|du|del|della|la|le|les|di|da|do|dos|van|von|der|den|on|upon|under|the|in|of|l'|d')"
_DOOR = r"(?:(?:[Nn]umber|[Nn]o\.) )?#? ?\d{1,5}(?:[-/]\d{1,5})?[A-Za-z]?"
_SPOKEN_NUMBER = rf"(?i:{BELOW_100}(?:(?: and)?[ -](?:hundred|thousand|oh|{BELOW_100})){{0,5}})"
_NUMBER = rf"(?:{_DOOR}|\b{_SPOKEN_NUMBER})"
_ITEM = rf"(?:#? ?\d{{1,5}}[A-Za-z]?|[A-Z]\d{{0,4}}|(?i:{BELOW_100})(?: [A-Za-z]\b)?)\b"
_UNIT = (
    rf"(?i:\b(?:flat|apartment|apt\.?|unit|suite|ste\.?|studio|lot|block|building|floor|(?:p\.? ?o\.? )?box"
    rf"|post office box|(?:rural|county|state) (?:route|road)|highway))"
    rf"(?: number)? {_ITEM}(?: \d+)?"
)
_POSTCODE = (
    r"(?:[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}|[A-Z]\d[A-Z] ?\d[A-Z]\d|[A-Z]\d[\dW] ?[A-Z\d]{4}|\d{4} [A-Z]{2}"
    r"|\d{5}(?:-\d{4})?|\d{4})\b"
)
_SURE_POSTCODE = re.compile(
    r"\b(?:[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}|[A-Z]\d[A-Z] ?\d[A-Z]\d|[A-Z]\d[\dW] [A-Z\d]{4}"
    r"|(?<=[A-Z]{2} )\d{5}(?:-\d{4})?|\d{5}-\d{4})\b"
)
_PLACE = rf"(?:{_CAP}(?: (?:{_SMALL} )?{_CAP}){{0,3}})"
_TAIL = (
    rf"(?:,? {_UNIT})?(?:,? (?:in )?{_PLACE}(?=[,.;?!]|$| {_POSTCODE}| \d{{1,2}}\b)){{0,4}}(?:,? {_POSTCODE}"
    rf"| \d{{1,2}}\b(?![.:,]\d| [a-z]))?"
)
#: Number and street, in the order of English and of other languages: "Bahnhofstraße 14".
_STREETS = (
    rf"(?:{_NUMBER},? (?:(?:{_CAP} (?:{_SMALL} )?){{1,4}}?{_WRITTEN_STREET}(?: (?:North|South|East|West"
    rf"|[NSEW]{{1,2}}\b))?|{_BEFORE_NAME} (?:{_SMALL} ?){{0,2}}{_CAP}(?: (?:{_SMALL} ?){{0,2}}{_CAP}){{0,3}}"
    rf"|{_ONE_WORD})|{_ONE_WORD} \d{{1,4}}[a-z]?\b)"
)
_WHOLE = re.compile(rf"(?<![\w$£€.,:/-])(?:{_UNIT},? )?{_STREETS}{_TAIL}")
_IN_UNIT = re.compile(
    rf"{_UNIT}(?:,? {_UNIT})?(?:,? (?:in |at )?{_PLACE}(?=[,.;?!]|$| {_POSTCODE})){{1,4}}(?:,? {_POSTCODE})?"
)
_BOX = re.compile(rf"\b(?:p\.? ?o\.?|post office) box (?:number )?(?:\d+|{_SPOKEN_NUMBER})\b", re.IGNORECASE)
_PARTS_BEFORE = re.compile(rf"(?:(?:{_UNIT}|(?:{_DOOR} )?{_PLACE}),? ){{1,5}}$")
_FAR = 90  # characters of an address before its postcode
_CUE = re.compile(
    r"\b(?:addres(?:s|ses)|lives? (?:at|on)|living at|moved to|moving to|moving from|located at|deliver(?:y"
    r"|ed)?(?: it)?(?: is)? to|ship(?:ped)?(?: it)? to|send (?:it|them|that) to|staying at|based at|residing at"
    r"|resident of)\b"
)
_AT = re.compile(r"\bat $")
_YEAR_BEFORE = re.compile(r"\b(?:in|since|by|until|from|during) $")
_YEAR_NUMBER = re.compile(r"(?:1[5-9]|20)\d\d\b")
_NO_PLACE = STOP - {"new", "old", "great", "first"}  # "Old Mill Lane", "New York"
_DWELLING = re.compile(r"(?:flat|apartment|apt)\b", re.IGNORECASE)
_POSTCODE_AFTER = re.compile(rf" {_POSTCODE}|[, ] ?[A-Z]{{2}}\b")
_NO_TOWN = re.compile(
    r"(?:mr|mrs|ms|miss|dr|prof|sir|madam|mister|doctor|professor|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january"
    r"|february|march|april|may|june|july|august|september|october|november|december)\b"
)
_AFTER_CUE = re.compile(
    rf"(?<!\w){_NUMBER},? (?!(?:AM|PM|O'Clock)\b){_PLACE}(?:,? (?:in )?{_PLACE}(?=[,.;?!]|$"
    rf"| {_POSTCODE})){{0,4}}(?:,? {_POSTCODE})?"
)
_LOW_NUMBER = rf"(?:\d{{1,5}}|{BELOW_100}(?: (?:hundred(?: and)?|oh|{BELOW_100})){{0,4}})"
_SPOKEN = re.compile(
    rf"\b{_LOW_NUMBER} (?P<name>(?:{_NAME} ){{1,3}}?){_STREET}\b"
    rf"(?:,? (?:apartment|apt|unit|flat|suite)(?: number)? (?:{BELOW_100}|\d+|[a-z])(?: [a-z]\b| {DIGIT}\b)?)?"
)
#: Before "street", "drive" ... they make no name of one: "two way street", "a ten minute drive", "four wheel drive".
_NO_STREET = frozenset("wheel way lane minute minutes hour hours day days night mile miles mph people".split())
# A preposition without an article stands before names: "on market street", but "on the busy street".
_ON_STREET = re.compile(rf"\b(?:on|along|at|down|off|of|from|to|and|near) (?P<name>{_NAME}(?: {_NAME})?) {_STREET}\b")
_STREET_NAME = re.compile(
    r"\b(?:[A-Z][a-z']+ (?:(?:de|del|la|le|des|du|van|der) )?){1,3}(?:Street|Avenue|Road|Lane|Drive|Boulevard|Square"
    r"|Parkway)\b"
)


#: A town that need not be listed, before a region: "in Duluth, Minnesota".
_TOWN = re.compile(
    r"\b(?:in|from|to|at|near|of|outside) (?P<town>[A-Z][a-z]+(?: [A-Z][a-z]+)?), "
    r"(?P<region>[A-Z][a-z]+(?: [A-Z][a-z]+)?)\b"
)


def addresses(run: WordRun) -> Iterator[EntityMatch]:
    """Yield location for whole addresses and for streets."""
    for match in _WHOLE.finditer(run.text):
        start, end = match.start(), _end(run, match.start(), match.end())
        if _YEAR_NUMBER.match(run.text, start) and _YEAR_BEFORE.search(run.low, max(0, start - 8), start):
            continue
        street = match.end("doubtful")
        if street < 0 or end > street or run.follows(_CUE, start) or _AT.search(run.low, max(0, start - 4), start):
            yield EntityMatch("location", start, end, 86)
    for match in _IN_UNIT.finditer(run.text):
        start, end = match.start(), _end(run, match.start(), match.end())
        text = run.text[start:end]
        if ", " in text and (_DWELLING.match(text) or run.follows(_CUE, start) or _is_in_region(text)):
            yield EntityMatch("location", start, end, 86)
    for match in _BOX.finditer(run.text):
        yield EntityMatch("location", *match.span(), 85)
    for match in _SURE_POSTCODE.finditer(run.text):
        first = max(0, match.start() - _FAR)
        parts = _PARTS_BEFORE.search(run.text[first : match.start()])
        yield EntityMatch("location", first + parts.start() if parts else match.start(), match.end(), 84)
    for match in _AFTER_CUE.finditer(run.text):
        end = _end(run, match.start(), match.end())
        named = re.search(r" (?!\d)", run.text[match.start() : end])
        if named and run.follows(_CUE, match.start()):
            yield EntityMatch("location", match.start(), end, 83)
    for match in _SPOKEN.finditer(run.low):
        name = match["name"].split()
        if _NO_PLACE.isdisjoint(name) and name[-1] not in _NO_STREET and not is_generic(" ".join(name)):
            yield EntityMatch("location", match.start(), _with_town(run, match.end()), 74)
    for match in _ON_STREET.finditer(run.low):
        if _NO_PLACE.isdisjoint(match["name"].split()) and not is_generic(match["name"]):
            yield EntityMatch("location", match.start("name"), match.end(), 60)
    for match in _TOWN.finditer(run.text):
        if known().get(match["region"].lower()) == "location" and match["town"].lower() not in STOP:
            yield EntityMatch("location", match.start("town"), match.end(), 59)
    for match in _STREET_NAME.finditer(run.text):
        opening, _, name = match[0].partition(" ")
        is_word = " " in name and opening.lower() in _NO_PLACE  # "On Oak Street"
        yield EntityMatch("location", match.end() - len(name) if is_word else match.start(), match.end(), 60)


def _with_town(run: WordRun, end: int) -> int:
    """Return the end of a spoken address with a town that is not listed before a listed place: "larksville ohio"."""
    town = re.match(r",?(?: in)?(?P<words>(?:,? [a-z][a-z'-]*){1,4})", run.low[end : end + _FAR])
    if town is None or known().get(re.split(r"[ ,]+", town["words"].strip(" ,"))[0]) == "location":
        return end
    last = end
    for word in re.finditer(r"[a-z][a-z'-]*", town["words"]):
        if word[0] in STOP:
            break
        if known().get(word[0]) == "location":
            last = end + town.start("words") + word.end()
    return last


def _end(run: WordRun, start: int, end: int) -> int:
    """Return the end of an address without what is no town after it: "12 Oak Street, So ...", "4 Mill Lane, Anna".

    A first name is a town if a region or a postcode follows: "Anna, Texas".
    """
    for part in re.finditer(r", |(?<=\d) (?=[A-Z])", run.text[start:end]):
        at = start + part.end()
        word = re.match(r"[\w']+", run.low[at:end])
        if word is None:
            continue
        named = _NO_TOWN.match(word[0]) or (word[0] in names().first and word[0] not in known())
        if word[0] in _NO_PLACE or (named and not _is_in_region(run.text[at + word.end() : end])):
            return start + part.start()
    return end


def _is_in_region(text: str) -> bool:
    """Return True if a text has a postcode, the short form of a state, or a listed place after a comma or blank."""
    if _POSTCODE_AFTER.search(text):
        return True
    words = [word.lower() for word in re.findall(r"[^\W\d_]+", text)]
    phrases = [*words, *(f"{one} {two}" for one, two in pairwise(words))]
    return any(known().get(phrase) == "location" for phrase in phrases)
