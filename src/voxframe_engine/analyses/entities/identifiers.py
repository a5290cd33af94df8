"""Numbers of phones, cards, accounts and documents.

Numbers are detected by the cue words before them and by their format. phonenumbers decides what can be a phone number;
python-stdnum checks cards (Luhn), IBANs and social security numbers. A number after the right cue counts even if its
check digit is wrong, because the engine may have misheard a digit.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

import phonenumbers
from stdnum import bic, iban, luhn
from stdnum.us import ssn

from voxframe_engine.analyses.entities.listed_terms import is_listed
from voxframe_engine.analyses.entities.series import Series, counts_up, is_in_pairs, series
from voxframe_engine.analyses.entities.text import (
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
from voxframe_engine.text.sentences import SENTENCE_END

_IS = (
    r"(?: is| are| was|:| number| no\.?| of|,| ends in| ending in| reads| says| should be| with"
    r"|[?.]?(?: yes,?| sure,?)? (?:it's|its|it is|that's|that is|it says)){0,8}\??"
)
_DOCUMENT = rf"(?:[a-z]{{2,6}}[ -])?{CODE}"  # letters before it only in capitals: see `_without_word`
_NUMBER = r"(?:\+? ?\(?" + DIGITS + r"\)?|\+?\(?\d[\d() .-]{5,}\d)"


class _Announced(NamedTuple):
    """A kind of number that is detected by the words before it."""

    rule: Rule
    cue: re.Pattern[str]
    fewest: int
    most: int


def _announced(kind: str, weight: int, cue: str, form: str, fewest: int, most: int) -> _Announced:
    rule = Rule(kind, weight, re.compile(rf"\b(?:{cue})\b\)?{_IS}(?: my| your| the)? (?P<it>{form})"))
    return _Announced(rule, re.compile(rf"\b(?:{cue})(?!\w)"), fewest, most)


_CVV = (
    r"cvv2?|c v v|cvc|c v c|csc|security (?:code|number)|verification (?:code|number) on the card"
    r"|(?:code|digits?|numbers?)(?: that are| printed)? on the (?:back|front|reverse)(?: of (?:the|my|your) card)?"
)
_SOCIAL = (
    r"social security(?: number)?|(?:my|your|his|her|their) social|ssn|s s n|national insurance(?: number)?|ni number"
    r"|social insurance(?: number)?|tax (?:id|file number|number|payer number)|pps number"
)
_CARD_CUE = (
    r"(?:(?:credit|debit|long|gift|bank) )?card(?: number)?|paid with|visa|master ?card|amex|american express"
    r"|long number(?: across the front| on the front)?"
)
_BANK = r"routing number|routing|sort code|swift(?: code)?|bic|iban|aba(?: number)?|transit number|bsb"
_LICENCE = r"(?:driv(?:er'?s?|ing) ?'?s? )?licen[cs]e(?! plate)(?: number| card)?|driver number"
_PLATE = (
    r"licen[cs]e plate(?: number)?|number plate|plates?(?: number)?|vin|v i n|vehicle identification number|chassis"
    r"(?: number)?|reg(?:istration)?(?: number)?"
)
_HEALTH = (
    r"(?:medicare|medicaid|nhs|health|health (?:insurance|plan)(?: member)?|insurance|insurance member|member(?:ship)?"
    r"|subscriber|medical record|chart|beneficiary|hospital|patient) (?:number|card|id|i d)|medicare|mrn|nhs"
)
_PHONE_CUE = (
    r"(?:phone|telephone|mobile|cell|fax|landline|whats ?app)(?: number)?|(?:my|your|his|her|their|our) number"
    r"|(?:call|ring|text|reach|phone)(?: me| us| him| her| them)?(?: back)?(?: (?:at|on))?|dial|contact number"
    r"|area code"
)
_ACCOUNT = r"(?:checking |savings |bank |my )?account(?: number)?|acct|policy(?: number)?|iban"
_THING = (
    r"(?:[a-z]+ )?(?:number|code|id|i d|reference|ref|pin|p i n|serial|extension)"
    r"|order|confirmation|tracking|ticket|booking|case|claim|invoice|zip|access|flight|gate|door"
    r"|(?:ending|ends)(?: in| with)?|ended in|(?:last|first) (?:two|three|four|five|six|[2-6])(?: digits| numbers)?"
    r"(?: (?:of|on) [a-z ]{2,20})?"
)
_ANNOUNCED = [
    _announced("credit_card_cvv", 98, _CVV, CODE, 3, 4),
    _announced("us_social_security_number", 97, _SOCIAL, _DOCUMENT, 4, 13),
    _announced("credit_card_number", 96, _CARD_CUE, _NUMBER, 12, 19),
    _announced("banking_information", 95, _BANK, CODE, 6, 34),
    _announced("passport_number", 95, r"passport(?:,? number| no\.?)?", _DOCUMENT, 6, 12),
    _announced("drivers_license", 95, _LICENCE, _DOCUMENT, 5, 20),
    _announced("vehicle_id", 95, _PLATE, rf"{_DOCUMENT}(?: [a-z]{{2,3}}\b)?", 4, 17),
    _announced("healthcare_number", 95, _HEALTH, _DOCUMENT, 5, 14),
    _announced("account_number", 94, _ACCOUNT, CODE, 5, 20),
    _announced("phone_number", 90, _PHONE_CUE, _NUMBER, 7, 15),
    _announced("number_sequence", 82, _THING, _DOCUMENT, 3, 30),
]
_EXPIRES = re.compile(
    r"\b(?:expir(?:es|y|ation|ing)(?: date)?|exp\.?(?: date)?|(?:valid|good) (?:until|till?|through|thru|to)"
    r"|runs? out(?: in)?)\b"
)
_CARD_NEAR = re.compile(rf"\b(?:{_CARD_CUE}|{_CVV}|code)\b")
_EXPIRY_DATE = re.compile(r"expir(?:y|ation)|exp\b")
_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_SHORT_YEAR = rf"(?:twenty|thirty)(?:[ -](?:twenty|thirty))?(?:[ -]{DIGIT})?\b"
_EXPIRY = re.compile(
    rf"\b(?:\d\d? ?[/-] ?(?:20)?\d\d\b|{_MONTH},? (?:of )?(?:{YEAR}|{_SHORT_YEAR}|'?\d\d\b)"
    rf"|(?:{DIGIT}|ten|eleven|twelve|\d)(?: (?:{DIGIT}|\d))?,?(?: slash| of)? (?:{_SHORT_YEAR}|(?:20)?\d\d\b)"
    rf"|\d\d?,? (?:slash |of )?(?:20)?\d\d\b)"
)
_BY_FORM = [
    *rules(
        "number_sequence",
        45,
        r"(?<![\w.,$£€/-])\d{5,}(?![\w%/]|[,.:]\d)(?! (?:dollars|euros|people|pounds|miles|percent|feet))",
    ),
]
_IBAN = re.compile(r"\b[a-z]{2}\d\d(?: ?[a-z0-9]{4}){2,7}(?: ?[a-z0-9]{1,4})?\b")
#: A code of a bank without digits: "SWIFT code DEUTDEFF".
_BIC = re.compile(r"(?i:\b(?:swift|bic)(?:(?: code)?(?: is|:)| code)) (?P<it>[A-Z]{6}[A-Z\d]{2,5})\b")
_PHONE = re.compile(
    r"(?<![\w.,$£€/-])(?:\+\d{1,3}[ .-]?|1[ .-])?(?:\(\d{2,5}\)[ .-]?)?\d{2,5}(?:[ .-]\d{2,5}){1,4}(?![\w-]|/\d)"
)
_DIGITS = re.compile(DIGITS)
_SPOKEN = re.compile(rf"\b{DIGIT}\b")
_CODE = re.compile(CODE)
_EXTENSION = re.compile(rf",? (?:extension|ext\.?|x)(?: number)? ?(?:\d{{1,6}}\b|{DIGIT}\b(?:,? {DIGIT}\b){{0,5}})")
_SPELLED = re.compile(r"\b(?:(?:sur|last |first |family |maiden |full |middle |your |my )?name|spel(?:l|t|led|ling))\b")
_NEAR = 60  # characters between a name and the letters that spell it, or between a card and its expiry


def identifiers(run: WordRun, region: str) -> Iterator[EntityMatch]:
    """Yield all kinds of identifying numbers, and number_sequence for other series of digits.

    A series of digits is one entity, of the kind of the surest match in it.
    """
    numbers = [*_of_banks(run), *_by_pattern(run, region)]
    by_pattern = sorted([*numbers, *_expiries(run)], key=lambda f: f.start)
    starts = [f.start for f in by_pattern]
    furthest = list(accumulate((f.end for f in by_pattern), max))
    joined: list[EntityMatch] = []
    used: set[int] = set()
    for item in series(run):
        last = bisect_left(starts, item.end)
        first = bisect_right(furthest, item.start, hi=last)
        inside = [at for at in range(first, last) if by_pattern[at].end > item.start]
        match = _kind(run, item, region)
        matches = [*(by_pattern[at] for at in inside), *([match] if match else [])]
        if match or any(f.kind != "number_sequence" for f in matches):
            best = max(matches, key=lambda f: (f.weight, f.end - f.start))
            start, end = min([item.start, *(f.start for f in matches)]), max([item.end, *(f.end for f in matches)])
            joined.append(best._replace(start=start, end=end))
            used.update(inside)
    for f in [*(f for at, f in enumerate(by_pattern) if at not in used), *joined]:
        extension = _EXTENSION.match(run.low, f.end) if f.kind in ("phone_number", "number_sequence") else None
        yield f._replace(end=extension.end()) if extension else f


def _of_banks(run: WordRun) -> Iterator[EntityMatch]:
    """Yield valid IBANs and codes of banks."""
    for match in _IBAN.finditer(run.low):
        if iban.is_valid(match[0]):
            yield EntityMatch("banking_information", *match.span(), 99)
    for match in _BIC.finditer(run.text):
        if bic.is_valid(match["it"]):
            yield EntityMatch("banking_information", *match.span("it"), 95)


def _by_pattern(run: WordRun, region: str) -> Iterator[EntityMatch]:
    low = run.low
    yield from find_matches(run, _BY_FORM)
    for announced in _ANNOUNCED:
        for place in announced.rule.find(low):
            place = _without_word(run, place)
            if _fits(announced, low[place.start : place.end]):
                yield place
    for match in _PHONE.finditer(low):
        if _is_phone(match[0], region):
            yield EntityMatch("phone_number", *match.span(), 80)
    for match in _DIGITS.finditer(low):
        digits = digits_of(match[0])
        if (
            len(_SPOKEN.findall(match[0])) >= 3
            and len(digits) >= 4
            and not (counts_up(digits) or is_in_pairs(match[0]))
        ):
            kind, weight = _unannounced(run, match.start(), digits, region)
            yield EntityMatch(kind, *match.span(), weight)


def _expiries(run: WordRun) -> Iterator[EntityMatch]:
    """Yield when a card expires. The expiry of anything else, such as a passport or an offer, is a date."""
    for match in _EXPIRY.finditer(run.low):
        if cue := run.follows(_EXPIRES, match.start()):
            near = " ".join(SENTENCE_END.split(run.before(match.start()))[-2:])
            if _CARD_NEAR.search(near) or _EXPIRY_DATE.search(cue[0]):
                yield EntityMatch("credit_card_expiration", *match.span(), 99)
            else:
                yield EntityMatch("date", *match.span(), 87)


def _kind(run: WordRun, item: Series, region: str) -> EntityMatch | None:
    """Return a series with the kind that the words before it say, or that its form shows; None if it is ordinary."""
    if item.spells:
        if len(item.value) >= 3 and _spells_name(run, item):
            return EntityMatch("person_name", item.start, item.end, 71)
        announced = _announced_by(run, item) if len(item.value) >= 4 else None
        kind = announced.rule.kind if announced else "number_sequence"
        return EntityMatch(kind, item.start, item.end, 71) if item.certain or announced else None
    announced = _announced_by(run, item)
    if announced:
        return EntityMatch(announced.rule.kind, item.start, item.end, 85)
    if not item.certain and not (len(item.value) == 16 and luhn.is_valid(item.value)):
        return None
    kind, weight = _unannounced(run, item.start, item.value, region)
    return EntityMatch(kind, item.start, item.end, max(weight, 65))


def _spells_name(run: WordRun, item: Series) -> bool:
    """Return True if letters spell a name: after "surname" or "spelled", or after the name itself."""
    first = max(0, item.start - _NEAR)
    for word in re.finditer(r"[^\W\d_]{3,}", run.low[first : item.start]):
        at = first + word.start()
        if run.text[at : at + len(word[0])].isupper() and not run.text.isupper():
            continue  # the abbreviation itself, said twice: "the old CMS and a new CMS"
        if word[0][:2] == item.value[:2] and abs(len(word[0]) - len(item.value)) <= 2:
            capital = run.text[at].isupper() and not run.opens_sentence(at)
            if capital or is_listed(word[0]) or re.search(r"\b(?:sur)?name\b", run.before(item.start)):
                return True
    return run.follows(_SPELLED, item.start) is not None


def _announced_by(run: WordRun, item: Series) -> _Announced | None:
    """Return the kind of number whose cue is nearest before a series that fits it."""
    text = run.low[item.start : item.end]
    if not item.certain and not item.spells and _is_quantity(text):
        return None
    near: list[tuple[int, int, int, _Announced]] = []
    for order, announced in enumerate(_ANNOUNCED):
        if announced.fewest <= len(item.value) <= announced.most:
            cue = run.follows(announced.cue, item.start)
            if cue and (item.certain or announced.rule.kind != "number_sequence" or len(item.value) >= 4):
                near.append((cue.end(), -cue.start(), -order, announced))
    return max(near)[-1] if near else None


def _unannounced(run: WordRun, start: int, digits: str, region: str) -> tuple[str, int]:
    """Return the most likely kind of a series of digits by its length, and its weight."""
    if 13 <= len(digits) <= 19 and luhn.is_valid(digits):
        return "credit_card_number", 92
    if len(digits) in (7, 10, 11) and _is_phone(digits, region):
        return "phone_number", 70
    if len(digits) == 9 and ssn.is_valid(digits) and "social" in run.before(start):
        return "us_social_security_number", 70
    return "number_sequence", 50


def _fits(announced: _Announced, text: str) -> bool:
    return announced.fewest <= len(digits_of(text)) <= announced.most and not _is_quantity(text)


def _without_word(run: WordRun, match: EntityMatch) -> EntityMatch:
    """Return a match without an ordinary word at its ends; capitals such as "MORGA 657054" belong to the number."""
    last = re.search(r", I$| [A-Za-z]+$", run.text[match.start : match.end])
    if last and (last[0] == ", I" or not (last[0].isupper() or _CODE.fullmatch(run.low, match.start, match.end))):
        match = match._replace(end=match.start + last.start())
    if _CODE.match(run.low, match.start):
        return match
    word = re.match(r"\w+[ -]", run.text[match.start : match.end])
    return match._replace(start=match.start + word.end()) if word and not word[0].isupper() else match


def _is_quantity(text: str) -> bool:
    """Return True for a quantity ("forty two") or for no number at all, as opposed to a series of digits."""
    if re.search(r"\d", text):
        return False
    spoken = len(text.split()) < 3 and re.fullmatch(QUANTITY, text) is not None
    return spoken or not any(c.isdigit() for c in digits_of(text))


def _is_phone(text: str, region: str) -> bool:
    """Return True if the number of digits is possible for the region; a leading 0 is also tried as British."""
    digits = re.sub(r"\D", "", text)
    if len(digits) < (10 if digits.startswith("0") and region != "GB" else 7):
        return False
    for country in (region, "GB") if digits.startswith("0") else (region,):
        try:
            number = phonenumbers.parse(text if text.startswith("+") else digits, country)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_possible_number(number):
            return True
    return False
