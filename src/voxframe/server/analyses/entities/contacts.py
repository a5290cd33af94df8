"""Email, web and IP addresses, file names, user names and passwords, spoken and written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from voxframe.server.analyses.entities.text import BELOW_100, EntityMatch, WordRun, digits_of, find_matches, rules

_TOP = (
    r"(?:com|org|net|edu|gov|info|biz|io|co|ai|app|dev|tv|me|us|uk|de|fr|it|es|ca|au|nz|ie|in|nl|ch|at|se|no|eu"
    r"|example|test)\b"
)
_LABEL = r"(?:[a-z0-9](?:[a-z0-9'-]*[a-z0-9])?)"
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
_NUMBER = rf"(?:{BELOW_100}(?: (?:hundred(?: and)?|{BELOW_100})){{0,4}}|\d{{1,3}})"
_ENDINGS = "txt csv pdf docx doc xlsx xls pptx ppt zip jpg jpeg png gif mp3 mp4 wav py json xml html exe".split()
_SPELLED_ENDINGS = "|".join([*(" ".join(ending) for ending in _ENDINGS), *_ENDINGS])
_IS = r"(?: is| was|:| called| would be|,)*"
_USER = r"(?:user ?name|user id|login(?: name)?|screen name|handle|(?:log(?:ged)?|sign(?:ed)?) in as)"
_NOT_IT = r"(?!(?:not|wrong|the|a|too|very|required|your|my|also|still|just|in|on)\b)"

_RULES = [
    *rules(
        "password",
        98,
        rf"\b(?:password|pass ?phrase|pass ?code)(?: is|:)+ {_NOT_IT}"
        r"(?P<it>[^\s,;]*[^\s,;.?!](?: [a-z0-9]+)?)(?=[,;.?!]|$| (?:and|but|so|then)\b| \w+ \w+)",
    ),
    *rules(
        "username",
        96,
        rf"\b{_USER}{_IS} (?P<it>@?[\w.-]*[\w-](?:(?: (?:underscore|dot|dash|hyphen) [\w-]+)+"
        r"|(?: (?!(?:and|or|but|on|at|in|for|with|is)\b)[a-z0-9]+)?))(?= and\b|[,.;?!]|$| \w+ \w+)",
    ),
    *rules(
        "email_address",
        95,
        r"(?<!\S)[a-z0-9][a-z0-9._%+-]*@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}",
        rf"{_NAME_FIRST}{_LABEL}(?: {_SIGN} {_LABEL}| {_NAME_FIRST}\d+){{0,6}} at (?:the )?{_HOST}",
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
        rf"\b{_NUMBER}(?: (?:dot|point) {_NUMBER}){{3}}\b",
    ),
]
_IP6 = rules("ip_address", 94, r"\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b")


def contacts(run: WordRun) -> Iterator[EntityMatch]:
    """email_address, url, ip_address, filename, username, password."""
    yield from find_matches(run, _RULES)
    yield from find_matches(run, _IP6)
    yield from (found for found in find_matches(run, _IP) if _is_ip(run.low[found.start : found.end]))


def _is_ip(text: str) -> bool:
    return all(int(digits_of(part)) <= 255 for part in re.split(r"\.| (?:dot|point) ", text))
