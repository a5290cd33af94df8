"""Personal names, organizations, and what is found by word list: drugs, conditions, jobs, religions, events, places.

Persons are found by name lists, capital letters and the words before them; organizations by words that their names
contain, like "University". The lists of terms, places, nationalities and languages were written for the project;
personal names are from Faker.
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

_BEING = r"(?:am|is|are|was|were|still|be|stay|stayed|'m|'s|'re) (?:not |still |now |newly |recently )*"
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
        rf"\b{_BEING}(?P<it>single|engaged|separated)\b(?!-)"
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
