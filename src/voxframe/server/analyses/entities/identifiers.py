"""Identifiers of people and their property: contacts, and numbers of phones, cards, accounts and documents.

Contacts are email, web and IP addresses, file names, user names and passwords, spoken and written. Numbers are detected
by the cue words before them and by their format. phonenumbers decides what can be a phone number; python-stdnum checks
cards (Luhn), IBANs and social security numbers. A number after the right cue counts even if its check digit is wrong,
because the engine may have misheard a digit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import phonenumbers
from stdnum import iban, luhn
from stdnum.us import ssn

from voxframe.server.analyses.entities.text import (
    BELOW_100,
    CODE,
    DIGIT,
    DIGITS,
    QUANTITY,
    YEAR,
    EntityMatch,
    Rule,
    WordRun,
    digits_of,
    find_matches,
    rules,
)

_IS = (
    r"(?: is| are| was|:| number| no\.?| of|,| ends in| ending in| reads| says| should be| with"
    r"|[?.]?(?: yes,?| sure,?)? (?:it's|its|it is|that's|that is|it says))*\??"
)
_DOCUMENT = rf"(?:[a-z]{{2,6}}[ -])?{CODE}"  # letters before it only in capitals: see `_without_word`
_NUMBER = r"(?:\+? ?\(?" + DIGITS + r"\)?|\+?\(?\d[\d() .-]{5,}\d)"


class _Announced(NamedTuple):
    """A kind of number that is detected by the words before it."""

    rule: Rule
    question: re.Pattern[str]
    fewest: int
    most: int


def _announced(kind: str, weight: int, cue: str, form: str, fewest: int, most: int) -> _Announced:
    rule = Rule(kind, weight, re.compile(rf"\b(?:{cue})\b\)?{_IS}(?: my| your| the)? (?P<it>{form})"))
    return _Announced(rule, re.compile(rf"\b(?:{cue})\b[^.?!]*\??$"), fewest, most)


_CVV = r"cvv|c v v|cvc|c v c|security code|code on the back(?: of the card)?|verification code on the card"
_CARD_CUE = r"(?:credit |debit )?card number|(?:credit|debit) card|paid with|visa|master ?card"
_BANK = r"routing number|routing|sort code|swift code|bic|iban|aba number"
_LICENCE = r"(?:driv(?:er'?s?|ing) ?'?s? )?licen[cs]e(?! plate)(?: number| card)?|driver number"
_PLATE = (
    r"licen[cs]e plate(?: number)?|number plate|plate(?: number)?|vin|v i n|vehicle identification number|registration"
)
_HEALTH = (
    r"(?:medicare|medicaid|nhs|health (?:insurance|plan)(?: member)?|insurance member|member(?:ship)?|medical record"
    r"|patient) (?:number|id|i d)"
)
_PHONE_CUE = (
    r"(?:phone|telephone|mobile|cell|fax)(?: number)?|call(?: me| us| him| her| them)?(?: (?:at|on))?"
    r"|reach (?:me|us)(?: (?:at|on))?|dial|text me at"
)
_THING = (
    r"(?:customer|client|employee|staff|student|contract|claim|file|batch) (?:number|code|id)"
    r"|(?:order|confirmation|tracking|ticket|reference|booking|case|door|pin|p i n|zip|access|serial|invoice|policy"
    r"|code|gate|flight)(?: number| code| id)?"
)
_ANNOUNCED = [
    _announced("credit_card_cvv", 98, _CVV, CODE, 3, 4),
    _announced("us_social_security_number", 97, r"social security(?: number)?|my social|ssn|s s n", CODE, 9, 9),
    _announced("credit_card_number", 96, _CARD_CUE, _NUMBER, 12, 19),
    _announced("banking_information", 95, _BANK, CODE, 6, 34),
    _announced("passport_number", 95, r"passport(?:,? number| no\.?)?", _DOCUMENT, 6, 12),
    _announced("drivers_license", 95, _LICENCE, _DOCUMENT, 5, 20),
    _announced("vehicle_id", 95, _PLATE, rf"{_DOCUMENT}(?: [a-z]{{2,3}}\b)?", 4, 17),
    _announced("healthcare_number", 95, _HEALTH, _DOCUMENT, 5, 14),
    _announced("account_number", 94, r"(?:checking |savings |bank |my )?account(?: number)?|acct", CODE, 5, 20),
    _announced("phone_number", 90, _PHONE_CUE, _NUMBER, 7, 15),
    _announced("number_sequence", 82, _THING, _DOCUMENT, 3, 30),
]
_EXPIRES = r"(?:expir(?:es|y|ation|ing)(?: date)?|exp\.?(?: date)?|(?:valid|good) (?:until|through|thru|to))"
_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_SHORT_YEAR = rf"(?:twenty|thirty)(?:[ -](?:twenty|thirty))?(?:[ -]{DIGIT})?\b"
_BY_FORM = [
    *rules(
        "credit_card_expiration",
        97,
        rf"\b{_EXPIRES}(?: is|:|,| on| in| of)* (?P<it>\d\d? ?/ ?(?:20)?\d\d\b|{_MONTH},? (?:of )?{YEAR}"
        rf"|(?:{DIGIT}|ten|eleven|twelve)(?: {DIGIT})?(?: slash)? {_SHORT_YEAR})",
    ),
    *rules("vehicle_id", 93, r"\b(?=[a-z0-9]*\d)(?=[a-z0-9]*[a-z])[a-hj-npr-z0-9]{17}\b"),
    *rules("us_social_security_number", 93, r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"),
    *rules(
        "number_sequence",
        45,
        r"(?<![\w.,$£€/-])\d{5,}(?![\w%/]|[,.:]\d)(?! (?:dollars|euros|people|pounds|miles|percent|feet))",
    ),
]
_IBAN = re.compile(r"\b[a-z]{2}\d\d(?: ?[a-z0-9]{4}){2,7}(?: ?[a-z0-9]{1,4})?\b")
_CARD = re.compile(r"\b\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{1,7}\b|\b\d{4}[ -]\d{6}[ -]\d{5}\b")
_PHONE = re.compile(
    r"(?<![\w.,$£€/-])(?:\+\d{1,3}[ .-]?)?(?:\(\d{2,5}\)[ .-]?)?\d{2,5}(?:[ .-]\d{2,5}){1,4}(?![\w-]|/\d)"
)
_DIGITS = re.compile(DIGITS)
_SINGLE = re.compile(rf"\b{DIGIT}\b")
_CODE = re.compile(CODE)
_ANSWER = 30  # characters before the number in a reply to a question


def identifiers(run: WordRun, region: str) -> Iterator[EntityMatch]:
    """Yield all kinds of identifying numbers, and number_sequence for other series of digits.

    `region` is the country of phone numbers without a country code.
    """
    low = run.low
    yield from find_matches(run, _BY_FORM)
    for announced in _ANNOUNCED:
        for found in announced.rule.find(low):
            found = _without_word(run, found)
            if _fits(announced, low[found.start : found.end]):
                yield found
        if run.asked and announced.question.search(run.asked):
            answer = _CODE.search(low, 0, _ANSWER)  # where it begins; it may be longer
            whole = answer and _CODE.match(low, answer.start())
            if whole and _fits(announced, whole[0]) and re.search(r"\d", whole[0]):
                yield EntityMatch(announced.rule.kind, *whole.span(), 85)
    for match in _IBAN.finditer(low):
        if iban.is_valid(match[0]):
            yield EntityMatch("banking_information", *match.span(), 99)
    for match in _CARD.finditer(low):
        yield EntityMatch(
            "credit_card_number" if luhn.is_valid(digits_of(match[0])) else "number_sequence", *match.span(), 92
        )
    for match in _PHONE.finditer(low):
        if _is_phone(match[0], region):
            yield EntityMatch("phone_number", *match.span(), 80)
    for match in _DIGITS.finditer(low):
        yield from _read_out(run, *match.span(), region)


def _fits(announced: _Announced, text: str) -> bool:
    return announced.fewest <= len(digits_of(text)) <= announced.most and not _is_quantity(text)


def _without_word(run: WordRun, found: EntityMatch) -> EntityMatch:
    """Return a match without an ordinary word at its ends; capitals such as "MORGA 657054" belong to the number."""
    last = re.search(r", I$| [A-Za-z]+$", run.text[found.start : found.end])
    if last and (last[0] == ", I" or not (last[0].isupper() or _CODE.fullmatch(run.low, found.start, found.end))):
        found = found._replace(end=found.start + last.start())
    if _CODE.match(run.low, found.start):
        return found
    word = re.match(r"\w+[ -]", run.text[found.start : found.end])
    return found._replace(start=found.start + word.end()) if word and not word[0].isupper() else found


def _is_quantity(text: str) -> bool:
    """Return True for a quantity ("forty two") or for no number at all, as opposed to a series of digits."""
    if re.search(r"\d", text):
        return False
    spoken = len(text.split()) < 3 and re.fullmatch(QUANTITY, text) is not None
    return spoken or not any(c.isdigit() for c in digits_of(text))


def _read_out(run: WordRun, start: int, end: int, region: str) -> Iterator[EntityMatch]:
    """Yield the most likely kind of a series of spoken digits, by the question before it and by its length."""
    digits = digits_of(run.low[start:end])
    if len(_SINGLE.findall(run.low[start:end])) < 3 or len(digits) < 4:
        return
    if start < _ANSWER:
        for announced in _ANNOUNCED:
            if announced.question.search(run.asked) and announced.fewest <= len(digits) <= announced.most:
                yield EntityMatch(announced.rule.kind, start, end, 85)
                return
    if 13 <= len(digits) <= 19 and luhn.is_valid(digits):
        yield EntityMatch("credit_card_number", start, end, 92)
    elif len(digits) in (7, 10, 11) and _is_phone(digits, region):
        yield EntityMatch("phone_number", start, end, 70)
    elif len(digits) == 9 and ssn.is_valid(digits) and "social" in run.low:
        yield EntityMatch("us_social_security_number", start, end, 70)
    else:
        yield EntityMatch("number_sequence", start, end, 50)


def _is_phone(text: str, region: str) -> bool:
    """Return True if the number of digits is possible for the region; a leading 0 is also tried as British."""
    digits = re.sub(r"\D", "", text)
    if len(digits) < 7:
        return False
    for country in (region, "GB") if digits.startswith("0") else (region,):
        try:
            number = phonenumbers.parse(text if text.startswith("+") else digits, country)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_possible_number(number):
            return True
    return False


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
_BYTE = rf"(?:{BELOW_100}(?: (?:hundred(?: and)?|{BELOW_100})){{0,4}}|\d{{1,3}})"
_ENDINGS = "txt csv pdf docx doc xlsx xls pptx ppt zip jpg jpeg png gif mp3 mp4 wav py json xml html exe".split()
_SPELLED_ENDINGS = "|".join([*(" ".join(ending) for ending in _ENDINGS), *_ENDINGS])
_USER_IS = r"(?: is| was|:| called| would be|,)*"
_USER = r"(?:user ?name|user id|login(?: name)?|screen name|handle|(?:log(?:ged)?|sign(?:ed)?) in as)"
_NOT_IT = r"(?!(?:not|wrong|the|a|too|very|required|your|my|also|still|just|in|on)\b)"

_CONTACT_RULES = [
    *rules(
        "password",
        98,
        rf"\b(?:password|pass ?phrase|pass ?code)(?: is|:)+ {_NOT_IT}"
        r"(?P<it>[^\s,;]*[^\s,;.?!](?: [a-z0-9]+)?)(?=[,;.?!]|$| (?:and|but|so|then)\b| \w+ \w+)",
    ),
    *rules(
        "username",
        96,
        rf"\b{_USER}{_USER_IS} (?P<it>@?[\w.-]*[\w-](?:(?: (?:underscore|dot|dash|hyphen) [\w-]+)+"
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
        rf"\b{_BYTE}(?: (?:dot|point) {_BYTE}){{3}}\b",
    )
]
_IP6 = rules("ip_address", 94, r"\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b")


def contacts(run: WordRun) -> Iterator[EntityMatch]:
    """Yield email_address, url, ip_address, filename, username and password."""
    yield from find_matches(run, _CONTACT_RULES)
    yield from find_matches(run, _IP6)
    yield from (found for found in find_matches(run, _IP) if _is_ip(run.low[found.start : found.end]))


def _is_ip(text: str) -> bool:
    return all(int(digits_of(part)) <= 255 for part in re.split(r"\.| (?:dot|point) ", text))
