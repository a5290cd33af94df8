"""Names of people, by lists of names, by capitals, and by what stands before them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from voxframe.local.analyses.entities.lexicon import EVERYDAY_FAMILY, EVERYDAY_FIRST, names
from voxframe.local.analyses.entities.text import Found, Run

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
    called works lives
    """.split()
)
_FORMAL = r"(?:mr\.?|mrs\.?|ms\.?|dr\.?|prof\.?|mister|missus|misses|doctor|professor|senator|president)"
_TITLE = (
    rf"(?:{_FORMAL}|miss|governor|captain|sergeant|judge|sir|madam|king|queen|prince|princess|pope|uncle|aunt|father|sister"
    r"|brother|reverend|colonel|general|lieutenant|officer|secretary|chancellor|congressman|congresswoman|mayor)"
)
_NAME = r"[a-z][a-z'-]*[a-z]"
_TITLED = re.compile(rf"\b(?P<title>{_TITLE}) (?P<first>{_NAME})(?: (?P<second>{_NAME}))?")
_ONE_OF_THEM = re.compile(r"\b(?:the|an?|your|my|his|her|our|their|see|every|any|no) $")
_NAMED = re.compile(
    rf"\b(?:(?:full |first |last )?name(?:s are| is|'s)|named|call me|ask for|put me through to) (?P<first>{_NAME})"
    rf"(?: (?P<second>{_NAME}))?"
)
_ASKED_NAME = re.compile(r"\b(?:your|the|full|first|last) name\b[^.?!]*\??$")
_ANSWER = 25  # characters: a name that was asked for comes at once
_TOKEN = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")


def people(run: Run) -> Iterator[Found]:
    """person_name: what follows a title or "my name is", and first names of the lists with their family names."""
    for match in _TITLED.finditer(run.low):
        formal = re.fullmatch(_FORMAL, match["title"]) is not None and not _ONE_OF_THEM.search(run.low[: match.start()])
        if formal or run.text[match.start("first")].isupper() or _is_sure(match["first"]):
            written = formal and run.text[match.start()].isupper()
            yield from _from(run, match, match.start("title" if written else "first"), 72)
    for match in _NAMED.finditer(run.low):
        named = not match[0].startswith(("call", "ask", "put"))
        if named or _is_sure(match["first"]) or run.text[match.start("first")].isupper():
            yield from _from(run, match, match.start("first"), 70)
    yield from _listed(run)


def _from(run: Run, match: re.Match[str], start: int, weight: int) -> Iterator[Found]:
    """The name that a match speaks of, with its second word where that may be one."""
    if match["first"] in STOP:
        return
    second = match["second"] and _is_family(run, match["second"], match.start("second"), sure=False)
    yield Found("person_name", start, match.end("second" if second else "first"), weight)


def _is_sure(word: str) -> bool:
    """Whether a lower-case word is a name and hardly anything else."""
    return word in names().common and word not in EVERYDAY_FIRST


class _Token(NamedTuple):
    """A word with its place; without "'s"."""

    start: int
    text: str
    low: str
    joined: bool  # nothing but a blank between it and the next


def _tokens(run: Run) -> list[_Token]:
    matches = list(_TOKEN.finditer(run.low))
    made = []
    for match, after in zip(matches, [*matches[1:], None], strict=False):
        low, start = match[0].removesuffix("'s"), match.start()
        joined = after is not None and low == match[0] and run.low[match.end() : after.start()] == " "
        made.append(_Token(start, run.text[start : start + len(low)], low, joined))
    return made


def _listed(run: Run) -> Iterator[Found]:
    """First names of the lists, each with the family name after it."""
    tokens = _tokens(run)
    asked = _ASKED_NAME.search(run.asked) is not None
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        after = tokens[at] if token.joined and at < len(tokens) else None
        family = after is not None and _is_family(run, after.low, after.start, sure=True)
        if not (_is_first(run, token, after, family) or (asked and token.start < _ANSWER and _may_be_name(token.low))):
            continue
        end = token.start + len(token.text)
        if family and after is not None:
            end = after.start + len(after.text)
            at += 1
        yield Found("person_name", token.start, end, 52 + 6 * family)


def _may_be_name(word: str) -> bool:
    return word not in STOP and (word in names().first or word in names().family)


def _is_first(run: Run, token: _Token, after: _Token | None, family: bool) -> bool:
    """Whether a token is a first name here.

    Where names are written with capitals, a capital within a sentence makes one of any word of the lists; without
    one only words that are names and nothing else count, unless a family name that is no everyday word follows.
    """
    if token.low in STOP or token.low not in names().first:
        return False
    if _is_sure(token.low):
        return True
    capital = token.text[0].isupper()
    if family and after is not None and (capital or after.low not in EVERYDAY_FAMILY) and token.low in names().common:
        return True
    if not capital:
        return False
    if not run.opens_sentence(token.start):
        return True
    beside = after is not None and re.match(r"and [A-Z]", run.text[after.start :]) is not None
    return family or (token.low in names().common and (token.low not in EVERYDAY_FIRST or beside))


def _is_family(run: Run, word: str, at: int, *, sure: bool) -> bool:
    """Whether the word at a place may be a family name after a first name; `sure`: and is no everyday word."""
    if word in STOP:
        return False
    if run.text[at].isupper() and not run.opens_sentence(at):
        return True
    return word in names().family and not (sure and word in EVERYDAY_FAMILY)
