"""Email, web, IP and postal addresses, file names, user names and passwords, spoken and written.

A postal address has unit, number and street, then town, region and postcode: "Flat 3, 86 Corporation Street, Preston,
PR1 9QX", "P.O. Box 118, Ames, Iowa 50010", "38 Rue des Érables", and "one oh six larkspur avenue apartment four b".
Streets are also found without a number: "on Market Street".
"""

from __future__ import annotations

import ipaddress
import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from voxframe_engine.analyses.entities.people import STOP, is_generic, known, names
from voxframe_engine.analyses.entities.text import (
    BELOW_100,
    DIGIT,
    EntityMatch,
    WordRun,
    digits_of,
    find_matches,
    rules,
)
from voxframe_engine.text import SENTENCE_END

_TOP = (
    r"(?:com|org|net|edu|gov|info|biz|io|co|ai|app|dev|tv|me|us|uk|de|fr|it|es|ca|au|nz|ie|in|nl|ch|at|se|no|eu"
    r"|example|test)\b"
)
_LABEL = r"(?:[^\W_](?:(?:[^\W_]|['-])*[^\W_])?)"
_LETTERS = r"(?:(?<![\w'])(?<!(?<![\w'])[a-z] )[a-z](?: [a-z]\b(?!')){1,20})"  # "j o h n"
# Words that do not start a spoken address, so that "an email to trees at ..." starts at "trees".
_NAME_FIRST = (
    r"\b(?!(?:to|at|is|it|me|us|the|a|an|and|or|email|e-mail|mail|address|write|visit|see|website|site|page|on|of|for"
    r"|from|my|your|our|called|named|file|that|this|try|contact|dot|go|we|you|i|can|be|sent|are|his|her|their|link|in"
    r"|with|by)\b)"
)
_DOT = r"(?: dot |\.)"
_HOST = rf"{_LABEL}(?: [a-z0-9-]+){{0,2}}(?:{_DOT}{_LABEL}(?: {_LABEL})?){{0,4}}?{_DOT}{_TOP}(?:{_DOT}{_TOP})?"
_PATH = r"(?:(?: slash |/)[a-z0-9_-]+){0,8}"
_SIGN = r"(?:dot|underscore|dash|hyphen|plus)"
_BYTE = rf"(?:{BELOW_100}(?: (?:hundred(?: and)?|{BELOW_100})){{0,4}}|\d{{1,3}})"
_ENDINGS = "txt csv pdf docx doc xlsx xls pptx ppt zip jpg jpeg png gif mp3 mp4 wav py json xml html exe".split()
_SPELLED_ENDINGS = "|".join([*(" ".join(ending) for ending in _ENDINGS), *_ENDINGS])
_PLATFORM = (
    r"(?:instagram|insta|twitter|skype|discord|telegram|git ?hub|tik ?tok|snap ?chat|twitch|reddit|steam|slack|facebook"
    r"|linked ?in|whats ?app|mastodon|blue ?sky|you ?tube)"
)
_USER_NAMED = r"(?:user ?name|user id|login(?: name)?|screen name|handle)"
_LOGGED_IN = r"(?:log(?:ged)?|sign(?:ed)?) in as"
_USER_CUE = re.compile(
    rf"\b(?:{_USER_NAMED}|{_LOGGED_IN}|user ?id|log ?in(?: id)?|gamer ?tag|nick ?name|(?:account|profile) name"
    rf"|follow me|find me|user|(?:on|my|your) {_PLATFORM}|go by)\b"
)
#: A cue that stands for a user name only; "user" and "log in" are said of much else.
_STRONG_CUE = re.compile(
    rf"\b(?:{_USER_NAMED}|{_LOGGED_IN}|log-?in(?: id)?|gamer ?tag|nick ?name|(?:account|profile) name|follow(?: me)?"
    rf"|find me|{_PLATFORM}|go by)\b"
)
_NAMED_CUE = re.compile(rf"\b(?:{_USER_NAMED}|{_LOGGED_IN}|gamer ?tag|nick ?name|(?:account|profile) name|go by)\b")
_NUMBER_AFTER = re.compile(r"(?<!\d)(?: \d+)+$")
_NAME_IS = re.compile(
    rf"\b(?:{_USER_NAMED}|gamer ?tag|nick ?name|(?:account|profile|{_PLATFORM}) name)(?=[:?]|(?: is|'s| was)\b)"
)
_CUE_FAR = 200  # characters from a handle to a cue, on either side
_MEASURE = re.compile(r"\d+[a-z]{1,3}")
_PLATFORM_AFTER = re.compile(rf" (?:over )?on (?:{_PLATFORM}|x|threads)\b")
_HANDLE = re.compile(
    r"(?<![\w.@])@?(?=[a-z0-9._-]*[a-z])[a-z0-9](?:[a-z0-9_.-]*[a-z0-9_])?"
    r"(?: (?:underscore|dot|dash|hyphen|period) [a-z0-9]+(?: \d+)?| \d+\b)*(?![\w@]|\.\w)"
)
_IS_HOST = re.compile(r"www\.|.*\.(?:com|org|net|edu|gov|info|io|co\.uk)$")
_MARKED = re.compile(r"@|_|[a-z]\.[a-z]|\d|(?:underscore|dot|dash|hyphen|period) ")
_CLEAR = re.compile(r"[a-z]{3,}\d|_")  # enough if a cue is before it: "Not tpark7, that's my cousin's"
#: Handles by their form, if a cue is near: "@jan", "blue_fox", "jay underscore smith 77", "bfarrow82".
_CLEAR_HANDLE = rules(
    "username",
    63,
    r"(?<![\w.])@[a-z0-9_][a-z0-9_.]*[a-z0-9_]",
    r"(?<![\w.@/-])[a-z0-9]+(?:[.-][a-z0-9]+)*_[a-z0-9_.]*[a-z0-9](?![\w@]|\.[a-z])",
    r"\b[a-z0-9]+(?: underscore [a-z0-9]+)+(?: \d+)?\b(?! at )",
    r"(?<![\w.@/-])[a-z]{4,}\d{2,6}(?![\w@.-]|,\d)",
)
_PARTS_AND_NUMBER = re.compile(r"[a-z]+(?:(?:_| underscore )[a-z]+)+(?:_| underscore | )?\d+")  # "blue_fox_7"
_NOT_WORD = (
    r"(?:not|wrong|the|a|an|too|very|required|your|my|also|still|just|in|on|expired|invalid|incorrect|case|being"
    r"|going|always|never|something|that|this|what|for|to|of|at|longer|reset|changed|saved|stored|sent|written|hidden"
    r"|secure|strong|weak|safe|protected|no|it|um|uh|correct|right|only|so|really|now|as|different|similar|old|there"
    r"|here|and|but|or|if|has|have|had|least|needs?|must|more|than|with|i|i'm|we|you|all|already|working|broken"
    r"|loose|stuck|locked|blocked|disabled|taken|down|gone|lost|forgotten|missing|known|unknown|fine|okay|ok|good|bad"
    r"|long|short|usual|available|unavailable)"
)
_NOT_IT = rf"(?!{_NOT_WORD}(?![\w-]))"
_PASSWORD = re.compile(r"\b(?:pass ?word|pass ?phrase|pass ?code|(?:secret|memorable|security) (?:word|answer))s?\b")
_SET_TO = re.compile(r"\b(?:(?:re)?set|chang(?:ed?|ing)) (?:it|that) to ")
_WORD = re.compile(r"(?:[^\s,;.?!]|[,;.?!](?=\S))+")
_SECRET = re.compile(r"(?=.*\d)[a-z]+[!$#@%&*?].*|[a-z]+\d+[!$#@%&*]")  # a password whatever was said before
_EMPTY_WORDS = re.compile(
    r"(?:[?.,:]*(?: |$)(?:(?:is|was|are|it's|that's|should|would|be|um|uh|er|now|yes|sure|so|well|the|called"
    r"|just)\b)?)*"
)
_ONE_WORD = re.compile(
    r",? (?:(?:and |that's |it's )?(?:all (?:one word|(?:in )?(?:lower|small|capital|upper)|together)|no spaces?"
    r"|(?:in )?(?:lower|upper)[ -]?case|(?:with )?(?:a )?capital|one word|in capitals))"
)
_WORDS_AND_NUMBER = re.compile(
    r"(?!(?:at|in|on|for|to|with|by|page|and|or|after|before)\b)[a-z]+(?: [a-z]+){0,2} "
    rf"(?:\d{{1,5}}|{BELOW_100}(?: {BELOW_100})?)"
    r"\b(?![.:]\d| [a-z])"
)
_PHRASE = re.compile(rf"(?<!\S){_NOT_IT}" + r"[a-z0-9][^\s,;.?!]*(?: [^\s,;.?!]+){0,5}(?=[,;.?!]|$)")
_SPELLED = (
    r"(?:[a-z]\b(?!')|\d+|(?:double|triple) \w+|(?:capital|upper ?case|lower ?case|small|big|little) [a-z]+"
    r"|hash(?:tag)?|dash|hyphen|underscore|dot|star|asterisk|exclamation(?: mark| point)?|question mark"
    r"|dollar(?: sign)?|at sign|percent(?: sign)?|ampersand|plus|slash|pound(?: sign)?|space|zero|one|two|three|four"
    r"|five|six|seven|eight|nine|oh)\b"
)
_SPELLED_OUT = re.compile(rf"(?<!\S)(?:{_SPELLED}|{_NOT_IT}[a-z]{{3,12}}(?=,? {_SPELLED}))(?:,? {_SPELLED}){{2,30}}")

_CONTACT_RULES = [
    *rules(
        "password",
        98,
        rf"\b(?:password|pass ?phrase|pass ?code)(?:(?: is|'s|:| was)+|[^.?!]{{0,60}}\b(?:re)?(?:set|changed?)(?: it"
        rf"| that)? to)(?: all (?:one word|lower ?case|upper ?case|caps|capitals),?)? {_NOT_IT}"
        rf"(?P<it>[^\s,;]*[^\s,;.?!](?:(?: [a-z0-9]+)?(?: {BELOW_100}\b){{1,4}}|(?: [a-z0-9]+)?))"
        r"(?=[,;.?!]|$| (?:and|but|so|then)\b| \w+ \w+)",
    ),
    *rules(
        "username",
        96,
        rf"\b(?:{_USER_NAMED}(?: is| was|:| called| would be|,)+"
        rf"|{_LOGGED_IN}) (?:at (?:sign )?)?(?!please\b){_NOT_IT}"
        r"(?P<it>@?[\w.-]*[\w-](?:(?: (?:underscore|dot|dash|hyphen) [\w-]+)+"
        r"|(?: (?!(?:and|or|but|on|at|in|for|with|is)\b)[a-z0-9]+)?))(?= and\b|[,.;?!]|$| \w+ \w+)",
    ),
    *rules(
        "email_address",
        98,
        r"(?<![\w.%+-])[^\W_][\w.%+-]*@[\w-]+(?:\.[\w-]+)*\.[^\W\d_]{2,}",
        rf"(?:{_LETTERS}|{_NAME_FIRST}(?:(?<![\w'])[b-hj-z] )?{_LABEL})"
        rf"(?:(?: {_SIGN} |\.)(?:[a-z](?: [a-z]\b){{1,20}}|{_LABEL})| {_NAME_FIRST}\d+| {BELOW_100}\b){{0,6}}"
        rf"(?:,? all (?:one word|lower ?case),?)? at (?:the )?{_HOST}",
    ),
    *rules(
        "filename",
        91,
        rf"\b[a-z0-9][\w-]*(?:\.[\w-]+)*\.(?:{'|'.join(_ENDINGS)})\b",
        rf"{_NAME_FIRST}[a-z0-9_-]+(?: (?:underscore|dash) [a-z0-9_-]+){{0,4}} dot (?:{_SPELLED_ENDINGS})\b",
    ),
    *rules(
        "url",
        90,
        r"\b(?:https?://|www\.)[^\s<>\"]+[^\s<>\".,;:!?)]",
        rf"\b(?:w w w|www|h t t p s?) (?:dot |colon slash slash )?{_HOST}{_PATH}",
        rf"\b[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:com|org|net|edu|gov|info|io|co\.uk|example)\b{_PATH}",
        rf"(?:(?<=\bis )|(?<=\bat )|(?<=\bto )|(?<=\bvisit )|(?<=\bsee )|(?<=\bon )){_NAME_FIRST}{_HOST}{_PATH}",
        rf"\b[a-z0-9-]+ dot (?:com|org|net|edu|gov)\b{_PATH}",
    ),
]
_IP = [
    *rules(
        "ip_address",
        94,
        r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]*\d)",
        rf"\b{_BYTE}(?: (?:dot|point) {_BYTE}){{3}}\b",
    )
]
_IP6 = rules("ip_address", 94, r"(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b")
_SHORT_IP6 = re.compile(r"(?<![\w:])[0-9a-f:]*::[0-9a-f:]*(?!\w)")  # "2001:db8::1"


def contacts(run: WordRun) -> Iterator[EntityMatch]:
    """Yield email_address, url, ip_address, filename, username and password."""
    yield from find_matches(run, _CONTACT_RULES)
    cues = [match.start() for match in _STRONG_CUE.finditer(run.low)]
    for handle in find_matches(run, _CLEAR_HANDLE):
        if _PARTS_AND_NUMBER.fullmatch(run.low, handle.start, handle.end):
            yield handle
            continue
        at = bisect_left(cues, handle.start - _CUE_FAR)
        if (at < len(cues) and cues[at] < handle.end + _CUE_FAR) or _STRONG_CUE.search(run.before(handle.start)):
            yield handle
    yield from find_matches(run, _IP6)
    for match in _SHORT_IP6.finditer(run.low):
        text = match[0].rstrip(":") if match[0][-2:-1] != ":" else match[0]
        if any(c.isdecimal() for c in text) and _is_ip6(text):
            yield EntityMatch("ip_address", match.start(), match.start() + len(text), 94)
    yield from (handle for handle in find_matches(run, _IP) if _is_ip(run.low[handle.start : handle.end]))
    yield from _user_names(run)
    yield from _passwords(run)


def _user_names(run: WordRun) -> Iterator[EntityMatch]:
    """Yield words with digits or signs after a cue, or before the name of a platform."""
    for match in _HANDLE.finditer(run.low):
        if _IS_HOST.match(match[0]) or not _MARKED.search(match[0]) or _MEASURE.fullmatch(match[0]):
            continue
        is_word = not _MARKED.search(_NUMBER_AFTER.sub("", match[0]))  # "blue 42"
        named = run.follows(_NAMED_CUE if is_word else _USER_CUE, match.start()) or _PLATFORM_AFTER.match(
            run.low, match.end()
        )
        if named or (_CLEAR.search(match[0]) and _STRONG_CUE.search(run.before(match.start()))):
            yield EntityMatch("username", *match.span(), 96)
    for start in _values(run, _NAME_IS):
        if words := _WORDS_AND_NUMBER.match(run.low, start):
            yield EntityMatch("username", *words.span(), 97)


def _passwords(run: WordRun) -> Iterator[EntityMatch]:
    """Yield what follows a cue: spelled characters, or several words if one has a digit or they are "all one word"."""
    for match in _SPELLED_OUT.finditer(run.low):
        if run.follows(_PASSWORD, match.start()):
            yield EntityMatch("password", *match.span(), 99)
    for start in _values(run, _PASSWORD):
        if phrase := _PHRASE.match(run.low, start):
            joined = _ONE_WORD.match(run.low, phrase.end())
            if joined or re.search(r"\d", phrase[0]):
                yield EntityMatch("password", *phrase.span(), 97 + 2 * (joined is not None))
    for match in _SET_TO.finditer(run.low):
        sentences = SENTENCE_END.split(run.before(match.start()))
        word = _WORD.match(run.low, match.end())
        if word and (_SECRET.fullmatch(word[0]) or _PASSWORD.search(" ".join(sentences[-2:]))):
            phrase = _PHRASE.match(run.low, match.end())
            secret = phrase if phrase and re.search(r"\d", phrase[0]) else word
            if not re.fullmatch(_NOT_WORD, word[0]):
                yield EntityMatch("password", *secret.span(), 97)


def _values(run: WordRun, cue: re.Pattern[str]) -> Iterator[int]:
    """Yield where values may begin: after a cue and words such as "it's"."""
    for match in cue.finditer(run.low):
        if gap := _EMPTY_WORDS.match(run.low, match.end()):
            yield gap.end()


def _is_ip6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _is_ip(text: str) -> bool:
    return all(int(digits_of(part)) <= 255 for part in re.split(r"\.| (?:dot|point) ", text))


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
_ONE_WORD_STREET = (
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
    rf"|{_ONE_WORD_STREET})|{_ONE_WORD_STREET} \d{{1,4}}[a-z]?\b)"
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
