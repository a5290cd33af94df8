"""Kinds that are known by their words: drugs, conditions, jobs, religions, feasts, well-known bodies, places."""

from __future__ import annotations

import re
from collections.abc import Iterator

from voxframe.local.analyses.entities.lexicon import known, names
from voxframe.local.analyses.entities.text import Found, Run, rules, said

_WORD = re.compile(r"[a-z0-9&]+(?:['.-][a-z0-9&]+)*")
_LONGEST = 5  # words of the longest term
_PLACE_BEFORE = re.compile(
    r"(?:\b(?:of|in|from|to|near|at|around|through|across|outside|inside|for|and|or|visit|visited|left|towards?|into)|,)"
    r" (?:the )?$"
)
_SPEAK = re.compile(
    r"\b(?:speaks?|spoke|spoken|speaking|translat\w+|languages?|learn\w*|fluent|understands?|study|studies|subtitles"
    r"|dialect|accent|interpreter|grammar|say it|written|available)\b[^.?!]*$"
)
_LANGUAGE_AFTER = re.compile(
    r",? (?:language|lessons?|grammar|translation|speaking|class(?:es)?|words?|subtitles|dictionary)\b"
)
_PEOPLE_BEFORE = re.compile(r"\b(?:is|am|was|are|a|the|speaks?|in|from|and) $")
_COUNTRY_BEFORE = re.compile(r"\b(?:in|from|to|of) $")
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
        rf"\b{_COPULA}(?P<it>single|engaged|separated)\b(?! (?:in|with|by|from|out|one|most|day|time|word)\b)",
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
        rf"\b(?:type )?(?:a ?b|a|b|o)[ -]?(?:positive|negative|plus|minus|\+|-)(?=[ .,;?!]|$){_NO_GROUP}",
    ),
    *rules("injury", 60, rf"\b{_BROKEN} (?:(?:my|his|her|their|your|both|the|an?) )?(?:left |right )?{_LIMB}\b"),
    *rules("medical_condition", 60, rf"\b{_ORGAN} {_TROUBLE}\b"),
    *rules("language", 60, r"\b(?:latin|sign language|sanskrit|yiddish|esperanto)\b(?! america)"),
]
_STORMS = rules("event", 60, r"\b(?:hurricane|typhoon|cyclone|storm) [a-z]{3,}\b")


def terms(run: Run) -> Iterator[Found]:
    """All kinds that are known by their words."""
    tokens = list(_WORD.finditer(run.low))
    at = 0
    while at < len(tokens):
        for count in range(min(_LONGEST, len(tokens) - at), 0, -1):
            start, end = tokens[at].start(), tokens[at + count - 1].end()
            kind = _kind(" ".join(token[0] for token in tokens[at : at + count]))
            if kind and not re.search(r"[,.?!;] ", run.low[start:end]):
                kind = _in_context(run, kind, start, end)
                if kind:
                    start = _with_article(run, kind, start, end)
                    yield Found(kind, start, end, 50 + count + 6 * (kind == "location" and count > 1))
                at += count - 1
                break
        at += 1
    yield from said(run, _IN_COMPANY)
    for storm in said(run, _STORMS):
        name = run.text[storm.start : storm.end].split()[1]
        if name.lower() in names().first or (name[0].isupper() and run.text[storm.start].isupper()):
            yield storm
    for match in re.finditer(r"\b(?:the )?U\.?S\.?(?:A\.?)?(?=\W|$)", run.text):
        yield Found("location", *match.span(), 50)


def _kind(phrase: str) -> str:
    """Kind of a term, or of what it is the plural of."""
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


def _in_context(run: Run, kind: str, start: int, end: int) -> str:
    """The kind that the term has here; empty where it is none."""
    before, after, text = run.low[:start], run.low[end:], run.low[start:end]
    capital = run.text[start].isupper()
    if kind == "nationality/language":
        spoken = _SPEAK.search(before) or _LANGUAGE_AFTER.match(after)
        named = before.endswith(" in ") and not re.match(r" [a-z]", after)
        kind = "language" if spoken or named else "nationality"
    if text in ("polish", "dane", "finn", "scot", "thai") and not capital:
        return kind if _PEOPLE_BEFORE.search(before) else ""
    if text in ("turkey", "china", "reading", "nice") and not capital:
        return kind if _COUNTRY_BEFORE.search(before) else ""
    if kind == "location" and text in names().common:
        return kind if _PLACE_BEFORE.search(before) else ""
    if text in _UNSURE_JOBS or text in ("burn", "burns"):
        return kind if _DETERMINER.search(before) or text == "burns" else ""
    return kind


def _with_article(run: Run, kind: str, start: int, end: int) -> int:
    """Where the term begins with its "the", as people write it: "the US", "the second world war"."""
    takes = kind == "event" or run.low[start:end] in _TAKES_THE or (kind == "organization" and end - start > 8)
    the = re.search(r"\bthe $", run.low[:start])
    return start - 4 if takes and the and run.low[start:end] not in ("super bowl", "christmas") else start
