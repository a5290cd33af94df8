"""Personal names and organizations.

Persons are found by name lists, capital letters and the words before them; organizations by words that their names
contain, like "University".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from voxframe_engine.analyses.entities.listed_terms import EVERYDAY_FAMILY, EVERYDAY_FIRST, is_listed, known, names
from voxframe_engine.analyses.entities.text import EntityMatch, WordRun, find_matches, rules

#: Words that are no name and in no name.
STOP = frozenset(
    """
    the a an and or but so if of in on at to for from with by as is are was were be been being am do does did have
    has had can could will would shall should may might must not no yes it its this that these those there here then
    than he she they we you i me him her them us my your his our their who what which when where why how all any
    some every each very just now also only about into over after before again said says told asks asked came went
    goes going get gets got one two three four five six seven eight nine ten calling speaking talking thanks thank
    please hello hi hey well okay ok good great sure right sorry sick today tomorrow yesterday tonight more most
    much many other another new old first last next out up down off back because while during until since like
    office room appointment visit voted left gave takes wants needs thinks knows makes made sent took let lets add
    called works lives uh um er erm username password
    """.split()
)
_NAMES_TOO = frozenset(("will",))  # words of STOP
_FORMAL = r"(?:mr\.?|mrs\.?|ms\.?|dr\.?|prof\.?|mister|missus|misses|doctor|professor|senator|president)"
_TITLE = (
    rf"(?:{_FORMAL}|miss|governor|captain|sergeant|judge|sir|madam|king|queen|prince|princess|pope|uncle|aunt|father"
    r"|sister|brother|reverend|colonel|general|lieutenant|officer|secretary|chancellor|congressman|congresswoman|mayor)"
)
_NAME = r"[^\W\d_](?:[^\W\d_]|['-])*[^\W\d_]"
_INITIALS = r"(?:[a-z]\. ?|[b-hj-z] ){1,3}"  # "J. R. Smith", "j smith"
_TITLED = re.compile(rf"\b(?P<title>{_TITLE}) (?P<given>{_INITIALS})?(?P<first>{_NAME})(?: (?P<second>{_NAME}))?")
_ONE_OF_THEM = re.compile(r"\b(?:the|an?|your|my|his|her|our|their|see|every|any|no) $")
_LONGEST_ARTICLE = 6  # characters, with the blank
_NAMED = re.compile(
    rf"\b(?:(?:full |first |last )?name(?:s are| is|'s)|(?:sur|last |first |maiden |middle )name(?! basis)(?: is| was|,"
    rf"|:|\?)?|named|call me|ask for|put me through to|(?:this is|it's)(?= {_NAME}(?: {_NAME})? (?:speaking"
    rf"|calling)\b)) (?P<first>{_NAME})(?: (?P<second>{_NAME}))?"
)
#: Said of a name: "my name is spelled with a k".
_OF_NAME = frozenset(
    """
    spelled spelt pronounced misspelled misspelt mispronounced written listed registered printed missing changed
    changing different wrong incorrect correct important familiar common unusual already always still really actually
    too very pretty quite always never long short hard easy difficult similar
    """.split()
)
_COPULA = re.compile(r"(?:is|'s|are|was|:|named) $")
_ASKED_NAME = re.compile(r"\b(?:your|the|full|first|last) name\b[^.?!]*\?")
_TOKEN = re.compile(r"(?<!\w)[^\W\d_]+(?:['-][^\W\d_]+)*(?!\w)")


def people(run: WordRun) -> Iterator[EntityMatch]:
    """Yield person_name: words after a title or "my name is", and listed first names with their family names."""
    for match in _TITLED.finditer(run.low):
        if known().get(f"{match['title']} {match['first']}") == "organization":  # "General Motors"
            continue
        one_of_them = _ONE_OF_THEM.search(run.low, max(0, match.start() - _LONGEST_ARTICLE), match.start())
        formal = re.fullmatch(_FORMAL, match["title"]) is not None and not one_of_them
        if formal or run.text[match.start("first")].isupper() or _is_sure(match["first"]):
            written = formal and run.text[match.start()].isupper()
            start = "title" if written else "given" if match["given"] else "first"
            yield from _from(run, match, match.start(start), 72)
    for match in _NAMED.finditer(run.low):
        named = _COPULA.search(match[0][: match.start("first") - match.start()])
        if named or _is_sure(match["first"]) or run.text[match.start("first")].isupper():
            yield from _from(run, match, match.start("first"), 70)
    yield from _listed(run)


def _from(run: WordRun, match: re.Match[str], start: int, weight: int) -> Iterator[EntityMatch]:
    """Yield the name in a match, with its second word if that can be a family name."""
    first = match["first"]
    if first in _OF_NAME or (first in STOP and (first not in ("will", "may") or match["second"] == "be")):
        return
    second = match["second"] and _is_family(run, match["second"], match.start("second"), sure=False)
    yield EntityMatch("person_name", start, match.end("second" if second else "first"), weight)


def _is_sure(word: str) -> bool:
    """Return True if a lower-case word is almost always a name."""
    return word in names().common and word not in EVERYDAY_FIRST


class _NameToken(NamedTuple):
    """A word with its position, without "'s"."""

    start: int
    text: str
    low: str
    joined: bool  # only a space separates it from the next


def _tokens(run: WordRun) -> list[_NameToken]:
    matches = list(_TOKEN.finditer(run.low))
    tokens = []
    for match, after in zip(matches, [*matches[1:], None], strict=False):
        low, start = match[0].removesuffix("'s"), match.start()
        joined = after is not None and low == match[0] and run.low[match.end() : after.start()] == " "
        tokens.append(_NameToken(start, run.text[start : start + len(low)], low, joined))
    return tokens


def _listed(run: WordRun) -> Iterator[EntityMatch]:
    """Yield listed first names, each with the family name after it."""
    tokens = _tokens(run)
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        after = tokens[at] if token.joined and at < len(tokens) else None
        initial = after is not None and _is_initial(run, after) and at + 1 < len(tokens)  # "john f kennedy"
        initial = initial and (token.text[0].isupper() or _is_sure(token.low))
        if initial and _is_family(run, tokens[at + 1].low, tokens[at + 1].start, sure=True):
            at += 1
            after = tokens[at]
        family = after is not None and _is_family(run, after.low, after.start, sure=True)
        if not (_is_first(run, token, after, family) or _is_answer(run, token)):
            continue
        end = token.start + len(token.text)
        if family and after is not None:
            end = after.start + len(after.text)
            at += 1
        yield EntityMatch("person_name", token.start, end, 52 + 6 * family)


_AND_CAPITAL = re.compile(r"and [A-Z]")


def _is_initial(run: WordRun, token: _NameToken) -> bool:
    """Return True for a letter with a full stop, or a lone one that is no word, before another word."""
    end = token.start + len(token.text)
    dotted = run.low[end : end + 2] == ". "
    return len(token.low) == 1 and (dotted or (token.joined and token.low not in "aio"))


def _is_answer(run: WordRun, token: _NameToken) -> bool:
    """Return True for a listed name after "your last name?"."""
    is_name = token.low not in STOP and is_listed(token.low)
    return is_name and run.follows(_ASKED_NAME, token.start) is not None


def _is_first(run: WordRun, token: _NameToken, after: _NameToken | None, family: bool) -> bool:
    """Return True if a token is used as a first name.

    If the text has capitals, a capital within a sentence makes any listed word a name. Without one, only words that are
    almost always names count, unless an uncommon family name follows.
    """
    if "-" in token.low:  # "mary-jane"
        parts = token.low.split("-")
        return all(part in names().first for part in parts) and any(map(_is_sure, parts))
    if token.low not in names().first:
        return False
    if token.low in STOP:  # "speak to Will"
        capital = token.text.istitle() and len(token.text) > 2 and run.text != run.low
        return token.low in _NAMES_TOO and capital and not run.opens_sentence(token.start)
    if _is_sure(token.low):
        return True
    capital = token.text[0].isupper()
    if family and after is not None and (capital or after.low not in EVERYDAY_FAMILY) and token.low in names().common:
        return True
    if not capital:
        return False
    if not run.opens_sentence(token.start):
        return True
    beside = after is not None and _AND_CAPITAL.match(run.text, after.start) is not None
    return family or (token.low in names().common and (token.low not in EVERYDAY_FIRST or beside))


def _is_family(run: WordRun, word: str, at: int, *, sure: bool) -> bool:
    """Return True if a word after a first name can be a family name; `sure` excludes everyday words."""
    if word in STOP:
        return False
    if run.text[at].isupper() and not run.opens_sentence(at):
        return True
    return word in names().family and not (sure and word in EVERYDAY_FAMILY)


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
    "organization", 64, rf"\b(?:university|department|ministry|bank|bureau) of {_NO_OWNER}{_NAME}(?: and {_NAME})?\b"
)


def organisations(run: WordRun) -> Iterator[EntityMatch]:
    """Yield organization."""
    for match in _WRITTEN.finditer(run.text):
        start = match.start()
        for gap in [*_TWO.finditer(match[0]), None]:
            end = match.start() + gap.start("gap") if gap else match.end() - match[0].endswith(".")
            yield from _without_opening(run, start, end)
            start = match.start() + gap.end() if gap else end
    for spelled in find_matches(run, _SPOKEN):
        yield from _spoken(run, spelled)
    yield from find_matches(run, _SPOKEN_OF)


def is_generic(word: str) -> bool:
    """Return True for words such as "whole", "nearest" and "main", which make no name of a body or street."""
    return word in _GENERIC


def _without_opening(run: WordRun, start: int, end: int) -> Iterator[EntityMatch]:
    """Yield a written name without a leading "The" or "My", unless nothing specific is left: "The Bank"."""
    first = run.text[start:end].split()[0]
    place = known().get(" ".join(run.low[start:end].split()[:2])) == "location"  # "New York University"
    if not place and (first.lower() in STOP or (run.opens_sentence(start) and first.lower() in _GENERIC)):
        start += len(first) + 1
    if " " in run.text[start:end]:
        yield EntityMatch("organization", start, end, 66)


def _spoken(run: WordRun, match: EntityMatch) -> Iterator[EntityMatch]:
    """Yield a spoken name from after its last function word, unless only "big" or "whole" is left."""
    words = run.low[match.start : match.end].split()
    last_small = max((at for at, word in enumerate(words[:-1]) if word in STOP), default=-1)
    name = words[last_small + 1 :]
    if len(name) > 1 and not (len(name) == 2 and name[0] in _GENERIC):
        yield match._replace(start=match.end - len(" ".join(name)))
