"""Dates, times of day and durations; money, percentages and body measures; ages of persons. Spoken and written.

A number alone may be much else than an age, so the words beside it decide: a person before it, an event of a life, a
question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from voxframe_engine.analyses.entities.people import names
from voxframe_engine.analyses.entities.text import (
    BELOW_100,
    DIGIT,
    ORDINAL,
    QUANTITY,
    TENS,
    YEAR,
    EntityMatch,
    WordRun,
    find_matches,
    rules,
)

_DAY = r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_CLEAR_MONTH = r"(?:january|february|april|june|july|august|september|october|november|december)"
_MONTH = rf"(?:{_CLEAR_MONTH}|march|may|(?:jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)\b\.?)"
# A number before one of these is a quantity, not a year, day or hour: "in twenty ten minutes", "june twenty people".
_COUNTED = (
    r"(?! ?(?:%|percent|people|men|women|dollars|euros|pounds|miles|feet|times|of|hundred|thousand|million|years?"
    r"|points?|trees|homes|houses|seats|students|patients|pupils|minutes|hours|seconds|days|weeks|months|[ap] ?m\b))"
)
_IN_MONTH = (
    rf"(?:(?:the )?{ORDINAL} (?:day )?of {_MONTH}\b|\d{{1,2}}(?:st|nd|rd|th)? {_MONTH}\b|the {ORDINAL} {_MONTH}\b)"
)
_MONTH_FIRST = (
    rf"(?:{_MONTH} (?={YEAR}{_COUNTED}(?!,? {YEAR}))|{_MONTH} (?:the )?(?:{ORDINAL}|{BELOW_100}\b|\d{{1,2}}\b))"
)
_FULL = rf"(?:{_DAY},? )?(?:{_IN_MONTH}|{_MONTH_FIRST})(?:,? (?:in )?{YEAR}|(?<= ){YEAR})?"
_DAY_OF_MONTH = rf"(?:(?:the )?{ORDINAL} of the {ORDINAL},? (?:(?:of )?{YEAR}|{TENS}(?:[ -]{DIGIT})?\b|'?\d\d\b))"
_NUMERIC = r"(?:(?:19|20)\d\d-\d\d-\d\d\b|\d{1,2}[/.]\d{1,2}[/.](?:\d{4}|\d\d)\b)"
_DATE = rf"(?:{_DAY_OF_MONTH}|{_FULL}|{_NUMERIC})"
_PART = rf"(?:(?:the )?(?:end|beginning|middle|start) of )?(?:{_DATE}|{_DAY}|{_MONTH}\b|(?:the )?{ORDINAL}|{YEAR})"
_BIRTH = r"(?:born(?: on| in)?|date of birth(?: is|:)?|d o b(?: is)?|birth ?date(?: is|:)?|birthday is(?: on)?)"
_BORN = re.compile(r"\b(?:born|date of birth|d\.? ?o\.? ?b\.?|birth ?date|birthday|birth)(?!\w)")
_BORN_VALUE = re.compile(
    rf"(?<![\w'])(?:{_DATE}(?:,? (?:of )?(?:'?\d\d|{TENS}(?:[ -]{DIGIT})?)\b(?! (?:at|a)\b))?|{YEAR}|{_MONTH} {ORDINAL}"
    rf"|'\d\d\b|(?:{BELOW_100}|oh {DIGIT}|\d{{1,4}})\b(?:(?: slash| dash| of)?[ ,/.-]+(?:{BELOW_100}|oh|\d{{1,4}}"
    rf"|hundred)\b){{1,5}})"
)
_YEAR_AFTER = r"(?:in|since|from|until|till|by|of|around|before|after|during|year|spring|summer|autumn|fall|winter)"
_MONTH_AFTER = r"(?:in|since|until|till|by|last|next|this|early|late|every|during)"

_HOUR = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,2})"
_MINUTES = rf"(?:(?:oh|o) {DIGIT}|ten|fifteen|(?:twenty|thirty|forty|fifty)(?: five)?|\d\d)"
_HALF_DAY = r"(?:[ap]\. ?m\.?|[ap] ?m\b\.?)"

_UNIT = r"(?:second|minute|hour|day|night|week|weekend|month|year|decade|century|centurie)s?"
_DATE_RULES = [
    *rules(
        "date_of_birth",
        66,
        rf"\b{_BIRTH},? (?P<it>{_DATE}|\d{{1,2}}[ -]\d{{1,2}}[ -](?:\d{{4}}|\d\d)\b|(?:in )?{YEAR})",
    ),
    *rules("date_interval", 64, rf"\b(?:from {_PART} (?:to|until|till|through) {_PART}|between {_PART} and {_PART})"),
    *rules(
        "time",
        60,
        rf"\b\d{{1,2}}:\d\d(?::\d\d)?(?: ?{_HALF_DAY})?",
        rf"\b(?:\d{{1,2}}\.\d\d|{_HOUR}(?: {_MINUTES})?) ?{_HALF_DAY}",
        rf"\b{_HOUR} o'? ?clock\b(?: {_HALF_DAY})?",
        rf"\b(?:half|(?:a )?quarter|{BELOW_100}(?: minutes)?) (?:past|to|after) (?:{_HOUR}|noon|midnight)\b"
        rf"(?! {_HOUR}\b){_COUNTED}",
        r"\b(?:noon|midday|midnight)\b",
        rf"\bat (?P<it>{_HOUR} {_MINUTES})\b{_COUNTED}(?! [a-z]*s\b)",
    ),
    *rules("date", 56, rf"\b{_DAY}s?\b", rf"\b{_CLEAR_MONTH}(?: {YEAR}{_COUNTED})?\b"),
    *rules(
        "date",
        55,
        rf"\b{_YEAR_AFTER},? (?P<it>{YEAR}|'\d\d\b){_COUNTED}",
        rf"\b{_MONTH_AFTER} (?P<it>march|may)\b(?! (?:i|we|you|they|he|she|not|be|have)\b)(?<!this may)",
    ),
    *rules(
        "duration",
        54,
        rf"\b(?:{QUANTITY}|half an?|an?(?= hour and a half)|a (?:few|couple of)|several)[ -]{_UNIT}\b(?: and a half)?",
        rf"\bfor an? (?P<it>{_UNIT})\b",
    ),
    *rules(
        "date",
        40,
        rf"\b(?:19|20)\d\d\b{_COUNTED}",
        rf"\b(?:seventeen|eighteen|nineteen)[ -]{TENS}(?:[ -]{DIGIT})?\b{_COUNTED}",
    ),
]
_VERB_BEFORE = re.compile(r"\b(?:i|you|we|they|he|she|it|who|which|that|can|could|will|would|should|must|to) $")
_FULL_DATES = rules("date", 57, rf"\b{_DATE}")


def dates(run: WordRun) -> Iterator[EntityMatch]:
    """Yield date, date_of_birth, date_interval, time and duration."""
    yield from find_matches(run, _DATE_RULES)
    for match in _BORN_VALUE.finditer(run.low):
        if run.follows(_BORN, match.start()):
            yield EntityMatch("date_of_birth", *match.span(), 86)
    yield from (f for f in find_matches(run, _FULL_DATES) if not _is_verb(run, f))


def _is_verb(run: WordRun, match: EntityMatch) -> bool:
    """Return True if "may one ...", "march ten miles" or "you may first ..." was matched as a day of a month."""
    text = run.low[match.start : match.end]
    if re.match(r"(?:may|march)\b", text) is None:
        return False
    if re.fullmatch(rf"(?:may|march) {ORDINAL}", text) and run.text[match.start].islower():
        return _VERB_BEFORE.search(run.low, max(0, match.start - 12), match.start) is not None
    return not re.search(rf"\d|{ORDINAL}|{YEAR}$", text)


_SCALE = r"(?:hundred|thousand|million|billion|trillion|[kmb]\b)"
_CURRENCY = (
    r"(?:us dollars?|dollars?|bucks?|euros?|pounds?(?: sterling)?|pence|cents?|yen|rupees?|pesos?|francs?|crowns|yuan"
    r"|quid|usd|eur|gbp)"
)
_PRICE_IS = r"(?:costs?|that will be|that'll be|price is|you owe me|comes to|total is)(?: about| around| only)?"
_COUNTED_AMOUNT = r"(?! (?:percent|people|years|hours|minutes|days|weeks|months|hundred|of|the|dollars|o'? ?clock)\b)"
_NO_SHARE = r"(?! (?:percent|years|hours|minutes|days|weeks|months|hundred|the|dollars|o'? ?clock)\b)"
_PARTS = r"(?:third|quarter|fifth|tenth)"
_COLOUR = r"(?:blue|brown|green|grey|gray|hazel|red|blonde|blond|black|white|dark|light|ginger|auburn)"

_AMOUNT_RULES = [
    *rules(
        "physical_attribute",
        60,
        rf"\b(?:weighs?|weighed|weight (?:is|of))(?: about| around| only)? "
        rf"(?P<it>{QUANTITY} (?:pounds|kilos|kilograms|stone|lbs|kg)\b)",
        rf"\b{QUANTITY} (?:feet|foot|met(?:re|er)s?|centimet(?:re|er)s)(?:,? {QUANTITY}(?: inch(?:es)?)?)? tall\b",
        rf"\b(?:[3-7]|four|five|six|seven) (?:foot|feet|ft)[ ,]+(?:{BELOW_100}|\d\d?)\b(?: inches)?"
        r"(?! (?:miles|people|long|wide|deep))",
        rf"\b(?:(?:long|short|curly|straight|thin|thick|{_COLOUR}) ){{0,3}}{_COLOUR}"
        r"(?:[- ]haired|[- ]eyed| hair| eyes)\b",
    ),
    *rules(
        "money_amount",
        58,
        r"(?<![\w.,])\d[\d,]*(?:\.\d+)? ?[$£€¥](?! ?\d)",
        rf"(?:us ?)?[$£€¥] ?\d[\d,]*(?:\.\d+)?(?: ?{_SCALE})?",
        rf"\b(?:half (?=a )|a quarter (?:of (?=a )|(?={_SCALE}))|a couple of (?={_SCALE}))?"
        rf"{QUANTITY} {_CURRENCY}\b(?! (?:of|in weight|heav))(?:(?: and)? {QUANTITY} (?:cents?|pence)\b)?",
        rf"\b{_PRICE_IS} (?P<it>{BELOW_100} {BELOW_100})\b{_COUNTED_AMOUNT}",
    ),
    *rules(
        "statistics",
        56,
        rf"\b{QUANTITY} ?(?:%|percent|per cent|percentage points?)",
        rf"\b{QUANTITY}(?: [a-z]+)? (?:out of|in)(?: every)? (?!(?:one|zero)\b)"
        rf"(?:{BELOW_100}|\d+|a (?:hundred|thousand|million))\b(?![-:.,/]?\d){_NO_SHARE}",
        rf"\b(?:an? {_PARTS}(?= of\b|[.,;?!]|$| (?:more|less|and|or|in|was|were|is|are)\b)"
        rf"|(?:two|three|four) {_PARTS}s)(?: of)?\b(?! (?:to|past|after)\b)",
    ),
]


def amounts(run: WordRun) -> Iterator[EntityMatch]:
    """money_amount, statistics, physical_attribute."""
    return find_matches(run, _AMOUNT_RULES)


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
