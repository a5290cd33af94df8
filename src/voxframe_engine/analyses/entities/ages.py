"""Ages of persons: "she's six", "a 67-year-old", "at fifteen, I ...", "How old? Fifty-four".

A number alone may be much else, so the words beside it decide: a person before it, an event of a life, a question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from voxframe_engine.analyses.entities.listed_terms import names
from voxframe_engine.analyses.entities.text import (
    BELOW_100,
    DIGIT,
    QUANTITY,
    TENS,
    EntityMatch,
    WordRun,
    find_matches,
    rules,
)

_AGE = rf"(?:{BELOW_100}|1[01]\d|\d\d?)\b"
_ADULT = (
    rf"(?:{TENS}(?:[ -]{DIGIT})?|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|[2-9]\d|1[3-9]|10\d)\b"
)
_AND_MORE = rf"(?:(?:,? (?:and|or|to|going on|maybe|nearly|almost|about)|,) {_AGE}(?![-.,:/]?\d))"
_ABOUT = (
    r"(?: (?:just|only|now|about|around|almost|nearly|probably|maybe|already|still|like|over|under|barely|turning"
    r"|exactly|at least|all of|getting on for|has turned|to be))*"
)
_RELATIVE = (
    r"(?:son|daughter|brother|sister|mother|father|wife|husband|child|kid|boy|girl|grand(?:son|daughter|father|mother"
    r"|ma|pa|dad|child)|gran|nan|mum|mom|dad|partner|girlfriend|boyfriend|fianc[eé]e?|ex|uncle|aunt|cousin|niece|nephew"
    r"|baby|toddler|eldest|oldest|youngest|neighbou?r|patient|victim|suspect|driver|tenant|lady|gentleman|man|woman"
    r"|guy)"
)
_MANY = r"(?:sons|daughters|boys|girls|kids|children|twins|brothers|sisters|siblings|grandchildren|ones)"
_ONE = rf"(?:{_RELATIVE}|{_MANY}|i|he|she|who)"
_PERSON = rf"(?:{_ONE}|we|they|you)"  # of several people, a bare number may be their count
_IS = (
    r"(?:(?:'s|'m|'re|'d be|'ll be| is| am| are| was| were)(?: turning)?"
    r"| (?:will|must|would|should|might|could|may) (?:be|have been)"
    r"|(?:'s| has|'d| had)? ?(?:just )?turn(?:s|ed)?| looks?(?: like)?| looked| seemed)"
)
#: What may follow an age, as opposed to "he's five minutes late" and "I'm two of them".
_AFTER = (
    r"(?![-:%/]|[.,]\d)(?=[.,;?!]|$| (?:and|but|now|when|or|so|this|next|last|years?|yesterday|today|tomorrow|already"
    r"|at|then|with|because|though|he|she|i|we|they|my|going|since|before|after|until|living|working|as|in (?:a|the"
    r"|january|february|march|april|may|june|july|august|september|october|november|december))\b)(?! and a (?:half"
    r"|quarter) (?:hours|minutes|miles|years(?! old)))(?! years (?!old|young|of age)| at (?:home|night))"
)
#: Not an age: "at 35 miles", "at twenty past", "at 30 an hour".
_NO_AGE = (
    r"(?![\d:.,]*\d|[-'%/]| ?(?:%|percent|per|degrees|foot|feet|inches|miles|mph"
    r"|o'? ?clock|[ap]\.? ?m\b|past|to (?:one|two|three|four"
    r"|five|six|seven|eight|nine|ten|eleven|twelve|\d)|dollars?|euros?|pounds?|bucks|cents?|pence|an?|each|kilo\w*"
    r"|thousand|hundred|million|minutes?|hours?|seconds|points?|of|or so|other|different|times|people"
    r"|[a-z]+ (?:street|road|avenue|lane)"
    rf"|(?:and a half )?(?:years|months|weeks|days)|{BELOW_100})\b)"
)
#: Events of a life. "She left at 17" is a time and "it began at 40" a price, so those need more words.
_LIFE = (
    r"(?:retir\w*|marr(?:y|ied|ies|iage)|widow\w*|divorc\w*|orphan\w*|graduat\w*|emigrat\w*|pass(?:ed|es) away|die[sd]?"
    r"|dying|was born|pregnant|diagnos\w*|dropped out|heart attack|had (?:an?|my|his|her) (?:stroke|(?:first )?(?:child"
    r"|baby|kid|son|daughter))|quit|bec[ao]m\w* (?:an?|the)|(?:left|leav\w+|finish\w*|start\w*|beg[aiu]n\w*) (?:school"
    r"|home|college|university|work\w*|out|as an?|(?:in|at|down) the (?:mill|mine|pit|factory|trade|business|shop"
    r"|fields|police|army|theatre)|smoking|drinking|playing|teaching|singing|writing)|join\w* (?:the|up)|learn\w*"
    rf"|lost (?:my|his|her) {_RELATIVE}|{_ONE} (?:had |then |first )?moved)"
)
_NO_THING = r"(?!(?:the|an?|this|that|its?|our|their)\b)"  # "I think the company turned 50"

_RULES = rules(
    "person_age",
    62,
    rf"\b(?P<it>{QUANTITY}[ -](?:years?|months?|weeks?)[ -]old)s?\b",
    rf"\b(?:aged?|ages)(?: of)?(?: between| about| around)? (?P<it>{QUANTITY}{_AND_MORE}*)",
    rf"\b(?P<it>(?:{TENS}|[2-9]0)[- ]?something)\b",
    rf"\b(?P<it>{QUANTITY} (?:months?|weeks?|days?|years?)) at the time",
    rf"\b(?:{_ONE}|you)(?: {_NO_THING}[a-z']+){{0,4}} (?:turn(?:s|ed|ing)?|look(?:s|ed)){_ABOUT} "
    rf"(?P<it>{_AGE}{_AND_MORE}*){_AFTER}",
    rf"\b{_ONE}{_IS}{_ABOUT} (?P<it>{_AGE}{_AND_MORE}*){_AFTER}",
    rf"\b{_RELATIVE} [a-z'-]+{_IS}{_ABOUT} (?P<it>{_AGE}{_AND_MORE}*){_AFTER}",
    rf"\b(?:is|was) (?P<it>{_ADULT}) when (?:he|she|i)\b",
    rf"\b(?:when|since|until|till|before|after|by the time|though|because) "
    rf"{_PERSON}{_IS}{_ABOUT} (?P<it>{_AGE}){_NO_AGE}",
    rf"\b{_LIFE}\b[^.?!]{{0,40}}? at{_ABOUT} (?P<it>{_ADULT}){_NO_AGE}",
)
_NAMED = re.compile(rf"\b(?P<name>[a-z'-]+)(?:{_IS}{_ABOUT} |, )(?P<it>{_AGE}){_AFTER}")
#: Not "how old is the building": a thing after an article, without a person in the question.
_OF_PERSON = (
    r"(?! (?:(?:is|are|was|were|of|do|does|did|would|you|think|say)\b ?)*(?:the|this|that|these|those|my|your|our|his"
    rf"|her|their|its?|an?)\b(?![^.?!]*\b(?:{_RELATIVE}|{_MANY}|person|people|caller|customer|applicant)\b))"
)
_ASKED = re.compile(
    rf"\b(?:how old{_OF_PERSON}[^.?!]*|(?:(?:your|his|her|the|patient's) |what )age{_OF_PERSON}[^.?!]*"
    r"|(?<!what )(?<!the )age)(?=[?.:, ]|$)"
)
_ANSWER = re.compile(
    rf"(?<![\w$£€.,:-]){_AGE}{_AND_MORE}*(?: and a half)?(?: (?:years?|months?|weeks?)(?: old)?)?"
    rf"(?! ?(?:%|percent|minutes|hours|people|of|hundred|thousand|million|{BELOW_100})|[.,:]\d)"
)


def ages(run: WordRun) -> Iterator[EntityMatch]:
    """Yield person_age."""
    yield from find_matches(run, _RULES)
    for match in _NAMED.finditer(run.low):
        if match["name"] in names().first and run.text[match.start()].isupper():
            yield EntityMatch("person_age", *match.span("it"), 62)
    for match in _ANSWER.finditer(run.low):
        if run.follows(_ASKED, match.start()):
            yield EntityMatch("person_age", *match.span(), 63)
