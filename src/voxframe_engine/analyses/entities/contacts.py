"""Email, web and IP addresses, file names, user names and passwords, spoken and written."""

from __future__ import annotations

import ipaddress
import re
from bisect import bisect_left
from collections.abc import Iterator

from voxframe_engine.analyses.entities.text import (
    BELOW_100,
    EntityMatch,
    WordRun,
    digits_of,
    find_matches,
    rules,
)
from voxframe_engine.text.sentences import SENTENCE_END

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
