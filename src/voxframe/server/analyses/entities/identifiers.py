"""Numbers that identify a person or their property: phones, cards, accounts, documents.

They are detected by the cue words before them and by their format. phonenumbers decides what can be a phone number;
python-stdnum checks cards (Luhn), IBANs and social security numbers. A number after the right cue counts even if its
check digit is wrong, because the engine may have misheard a digit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import phonenumbers
from stdnum import iban, luhn
from stdnum.us import ssn

from voxframe.server.analyses.entities.text import (
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

_IS = r"(?: is| are| was|:| number| no\.?| of|,| it's| its| ends in| ending in)*"
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
_LICENCE = r"driv(?:er'?s?|ing) ?'?s? licen[cs]e(?: number)?"
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
    r"(?:order|confirmation|tracking|ticket|reference|booking|case|door|pin|p i n|zip|access|serial|invoice|policy|code"
    r"|gate|flight)(?: number| code| id)?"
)
_ANNOUNCED = [
    _announced("credit_card_cvv", 98, _CVV, CODE, 3, 4),
    _announced("us_social_security_number", 97, r"social security(?: number)?|my social|ssn|s s n", CODE, 9, 9),
    _announced("credit_card_number", 96, _CARD_CUE, _NUMBER, 12, 19),
    _announced("banking_information", 95, _BANK, CODE, 6, 34),
    _announced("passport_number", 95, r"passport(?:,? number| no\.?)?", CODE, 6, 12),
    _announced("drivers_license", 95, _LICENCE, CODE, 5, 20),
    _announced("vehicle_id", 95, _PLATE, CODE, 4, 17),
    _announced("healthcare_number", 95, _HEALTH, CODE, 5, 14),
    _announced("account_number", 94, r"(?:checking |savings |bank |my )?account(?: number)?|acct", CODE, 5, 20),
    _announced("phone_number", 90, _PHONE_CUE, _NUMBER, 7, 15),
    _announced("number_sequence", 60, _THING, CODE, 3, 30),
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
_ANSWER = 30  # characters before the number in a reply to a question


def identifiers(run: WordRun, region: str) -> Iterator[EntityMatch]:
    """Yield all kinds of identifying numbers, and number_sequence for other series of digits.

    Args:
        run: The words.
        region: Country of phone numbers without a country code.
    """
    low = run.low
    yield from find_matches(run, _BY_FORM)
    for announced in _ANNOUNCED:
        for found in announced.rule.find(low):
            value = digits_of(low[found.start : found.end])
            if announced.fewest <= len(value) <= announced.most and not _is_quantity(low[found.start : found.end]):
                yield found
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
