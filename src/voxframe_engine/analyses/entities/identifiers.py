"""Numbers of phones, cards, accounts and documents.

Numbers are detected by the cue words before them and by their format. phonenumbers decides what can be a phone number;
python-stdnum checks cards (Luhn), IBANs and social security numbers. A number after the right cue counts even if its
check digit is wrong, because the engine may have misheard a digit.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import phonenumbers
from stdnum import bic, iban, luhn
from stdnum.us import ssn

from voxframe_engine.analyses.entities.people import is_listed
from voxframe_engine.analyses.entities.text import (
    BELOW_100,
    CODE,
    DIGIT,
    DIGITS,
    QUANTITY,
    YEAR,
    EntityMatch,
    Rule,
    Series,
    WordRun,
    counts_up,
    digits_of,
    find_matches,
    is_counting,
    is_in_pairs,
    rules,
    series,
)
from voxframe_engine.text import SENTENCE_END

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
_NO_CARD = re.compile(
    r"\b(?:passport|licen[cs]e|permit|offer|coupon|voucher|lease|contract|policy|warranty|certificate|membership|deal"
    r"|subscription|milk|food|insurance|(?:id|i d|green|identity|gift|library|health) card)\b"
)
_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_SHORT_YEAR = rf"(?:twenty|thirty)(?:[ -](?:twenty|thirty))?(?:[ -]{DIGIT})?\b"
_EXPIRY = re.compile(
    rf"\b(?:\d\d? ?[/-] ?(?:20)?\d\d\b|{_MONTH},? (?:of )?(?:{YEAR}|{_SHORT_YEAR}|'?\d\d\b)"
    rf"|(?:{DIGIT}|ten|eleven|twelve|\d)(?: (?:{DIGIT}|\d))?,?(?: slash| of)? (?:{_SHORT_YEAR}|(?:20)?\d\d\b)"
    rf"|\d\d?,? (?:slash |of )?(?:20)?\d\d\b)"
)
_BY_FORM = [
    # British numbers of national insurance.
    *rules("us_social_security_number", 93, r"\b[a-ceghj-prstw-z]{2} ?\d\d ?\d\d ?\d\d ?[a-d]\b"),
    *rules(
        "credit_card_number",
        96,
        r"\b(?:visa|master ?card|amex|american express|card)(?: card)?,? (?:ending|ends)(?: in| with)? "
        rf"(?P<it>\d{{4}}|{DIGIT}(?: {DIGIT}){{3}})(?![\w-]| {DIGIT}\b)",
    ),
    *rules("vehicle_id", 93, r"\b(?=[a-z0-9]*\d)(?=[a-z0-9]*[a-z])[a-hj-npr-z0-9]{17}\b"),
    *rules(
        "number_sequence",
        45,
        r"(?<![\w.,$£€/-])\d{5,}(?![\w%/]|[,.:]\d)(?! (?:dollars|euros|people|pounds|miles|percent|feet))",
    ),
]
_IBAN = re.compile(r"\b[a-z]{2}\d\d(?: ?[a-z0-9]{4}){2,7}(?: ?[a-z0-9]{1,4})?\b")
_CARD = re.compile(r"\b\d{4}[ .-]?\d{4}[ .-]?\d{4}[ .-]?\d{1,7}\b|\b\d{4}[ .-]\d{6}[ .-]\d{5}\b")
#: A code of a bank without digits: "SWIFT code DEUTDEFF".
_BIC = re.compile(r"(?i:\b(?:swift|bic)(?:(?: code)?(?: is|:)| code)) (?P<it>[A-Z]{6}[A-Z\d]{2,5})\b")
_PHONE = re.compile(
    r"(?<![\w.,$£€/-])(?:\+\d{1,3}[ .-]?|1[ .-])?(?:\(\d{2,5}\)[ .-]?)?\d{2,5}(?:[ .-]\d{2,5}){1,4}(?![\w-]|/\d)"
)
_CARD_GROUPS = re.compile(r"\d{4}(?:[ ,.]+\d{4}){2,3}[ ,.]+\d{1,4}")
#: Expiry and security code directly after a card number: "4111 1111 1111 1111, 0927, 382".
_AFTER_CARD = re.compile(r",? (?P<expiry>(?:0[1-9]|1[0-2]) ?/? ?[2-4]\d)\b(?:,? (?P<code>\d{3,4})\b)?")
#: Phone numbers in groups that are complete by themselves, if they are valid: "415 555 0137", "0161 496 0072".
_WHOLE_PHONE = re.compile(
    r"(?<![\w.,$£€/-])(?:(?:\+?1[ .-]?)?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}|(?:\+\d{1,3}[ .-]?|0)\d{2,5}"
    r"(?:[ .-]\d{2,5}){1,4})(?![\w-]|/\d|[ .]\d)"
)
_SSN = re.compile(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])")
_PARTS_AFTER = re.compile(r"[,;.:?!)]|,? then\b")
_PARTS_BEFORE = re.compile(r"[,;.:?!]\W*$|\bthen $")
_DIGITS = re.compile(DIGITS)
_SPOKEN = re.compile(rf"\b{DIGIT}\b")
_COUNT = re.compile(rf"\b{BELOW_100}\b|\d+")
_SINGLE = re.compile(rf"\b(?:{DIGIT}|\d)\b")
_CODE = re.compile(CODE)
_EXTENSION = re.compile(rf",? (?:extension|ext\.?|x)(?: number)? ?(?:\d{{1,6}}\b|{DIGIT}\b(?:,? {DIGIT}\b){{0,5}})")
_SPELLED = re.compile(r"\b(?:(?:sur|last |first |family |maiden |full |middle |your |my )?name|spel(?:l|t|led|ling))\b")
_NEAR = 60  # characters between a name and the letters that spell it, or between a card and its expiry
_YEAR_BEFORE = re.compile(r"\b(?:in|from|since|of|by|until|till|for|around|about) $")


def identifiers(run: WordRun, region: str, settled: Sequence[EntityMatch] = ()) -> Iterator[EntityMatch]:
    """Yield all kinds of identifying numbers, and number_sequence for other series of digits.

    A series of digits is one entity, of the kind of the surest match in it. But a number that is complete by itself,
    such as a valid phone number, is not joined with its neighbours across a comma.

    Args:
        settled: Other matches that take no part in a series, such as ages.
    """
    complete = list(_complete(run, region))
    cuts = _cuts(run, [*settled, *complete])
    numbers = [*complete, *_by_pattern(run, region, cuts)]
    by_pattern = sorted([*numbers, *_expiries(run, numbers)], key=lambda f: f.start)
    starts = [f.start for f in by_pattern]
    furthest = list(accumulate((f.end for f in by_pattern), max))
    joined: list[EntityMatch] = []
    used: set[int] = set()
    for item in series(run, cuts):
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


def _complete(run: WordRun, region: str) -> Iterator[EntityMatch]:
    """Yield numbers that are complete by themselves: valid cards, IBANs, phone and social security numbers."""
    for match in _SSN.finditer(run.low):
        yield EntityMatch("us_social_security_number", *match.span(), 93)
    for match in _IBAN.finditer(run.low):
        if iban.is_valid(match[0]):
            yield EntityMatch("banking_information", *match.span(), 99)
    for match in _BIC.finditer(run.text):
        if bic.is_valid(match["it"]):
            yield EntityMatch("banking_information", *match.span("it"), 95)
    for match in _CARD.finditer(run.low):
        if luhn.is_valid(digits_of(match[0])):
            yield EntityMatch("credit_card_number", *match.span(), 92)
            if after := _AFTER_CARD.match(run.low, match.end()):
                yield EntityMatch("credit_card_expiration", *after.span("expiry"), 99)
                if after["code"]:
                    yield EntityMatch("credit_card_cvv", *after.span("code"), 98)
    for match in _WHOLE_PHONE.finditer(run.low):
        if _is_phone(match[0], region, valid=True):
            yield EntityMatch("phone_number", *match.span(), 80)


def _cuts(run: WordRun, complete: Iterable[EntityMatch]) -> list[int]:
    """Return the ends of complete matches, in order, at which punctuation or "then" parts them from other numbers."""
    ends = {f.end for f in complete if _PARTS_AFTER.match(run.low, f.end)}
    starts = {f.start for f in complete if _PARTS_BEFORE.search(run.low, max(0, f.start - 8), f.start)}
    return sorted(ends | starts)


def _until_cut(match: EntityMatch, cuts: Sequence[int]) -> EntityMatch:
    """Return a match without what follows the first cut in it."""
    at = bisect_right(cuts, match.start)
    return match._replace(end=cuts[at]) if at < len(cuts) and cuts[at] < match.end else match


def _by_pattern(run: WordRun, region: str, cuts: Sequence[int]) -> Iterator[EntityMatch]:
    low = run.low
    yield from find_matches(run, _BY_FORM)
    for announced in _ANNOUNCED:
        for place in announced.rule.find(low):
            place = _without_word(run, _until_cut(place, cuts))
            text = low[place.start : place.end]
            if _fits(announced, text) and not _is_year(run, place.start, text):
                yield place
    for match in _CARD.finditer(low):
        if not luhn.is_valid(digits_of(match[0])):
            yield EntityMatch("number_sequence", *match.span(), 92)
    for match in _PHONE.finditer(low):
        if _is_phone(match[0], region):
            yield EntityMatch("phone_number", *match.span(), 80)
    for match in _DIGITS.finditer(low):
        place = _until_cut(EntityMatch("number_sequence", *match.span(), 50), cuts)
        text = low[place.start : place.end]
        digits = digits_of(text)
        counted = counts_up(digits) or is_counting([digits_of(number) for number in _COUNT.findall(text)])
        if len(_SPOKEN.findall(text)) >= 3 and len(digits) >= 4 and not (counted or is_in_pairs(text)):
            kind, weight = _unannounced(run, place.start, digits, region)
            yield place._replace(kind=kind, weight=weight)


def _expiries(run: WordRun, numbers: Sequence[EntityMatch]) -> Iterator[EntityMatch]:
    """Yield when a card expires. The expiry of anything else, such as a passport or an offer, is a date."""
    cards = sorted(f.end for f in numbers if f.kind == "credit_card_number")
    for match in _EXPIRY.finditer(run.low):
        cue = run.follows(_EXPIRES, match.start())
        if cue is None:
            continue
        before, after = run.before(match.start()), run.low[match.end() : match.end() + _NEAR]
        near = " ".join(SENTENCE_END.split(before)[-2:])
        ended = bisect_right(cards, match.start())
        is_card = (
            (ended > 0 and match.start() - cards[ended - 1] < 2 * _NEAR)
            or _CARD_NEAR.search(near)
            or _CARD_NEAR.search(after)
            or (_EXPIRY_DATE.search(cue[0]) and not re.search(rf"{_MONTH},? \d\d?\b(?! ?\d)", match[0]))
        )
        if is_card and not _NO_CARD.search(near):
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
    if luhn.is_valid(item.value) and _CARD_GROUPS.fullmatch(run.low, item.start, item.end):
        return EntityMatch("credit_card_number", item.start, item.end, 85)
    if not item.certain:
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
        if word[0] == item.value and run.text[at].islower() and run.text != run.low and not is_listed(word[0]):
            return False  # "How do you spell necessary?"
        if word[0][:2] == item.value[:2] and abs(len(word[0]) - len(item.value)) <= 2:
            capital = run.text[at].isupper() and not run.opens_sentence(at)
            if capital or is_listed(word[0]) or re.search(r"\b(?:sur)?name\b", run.before(item.start)):
                return True
    return run.follows(_SPELLED, item.start) is not None


def _announced_by(run: WordRun, item: Series) -> _Announced | None:
    """Return the kind of number whose cue is nearest before a series that fits it."""
    text = run.low[item.start : item.end]
    if not item.certain and not item.spells and (_is_quantity(text) or _is_year(run, item.start, text)):
        return None
    read_out = len(_SINGLE.findall(text)) >= 3
    near: list[tuple[int, int, int, _Announced]] = []
    for order, announced in enumerate(_ANNOUNCED):
        if announced.fewest <= len(item.value) <= announced.most:
            cue = run.follows(announced.cue, item.start)
            if cue and (item.certain or announced.rule.kind != "number_sequence" or len(item.value) >= 4 or read_out):
                near.append((cue.end(), -cue.start(), -order, announced))
    return max(near)[-1] if near else None


def _is_year(run: WordRun, start: int, text: str) -> bool:
    return re.fullmatch(YEAR, text) is not None and _YEAR_BEFORE.search(run.low, max(0, start - 8), start) is not None


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


def _is_phone(text: str, region: str, *, valid: bool = False) -> bool:
    """Return True if the number of digits is possible; a leading 0 may be British. `valid` tests the area code."""
    digits = re.sub(r"\D", "", text)
    if len(digits) < (10 if digits.startswith("0") and region != "GB" else 7):
        return False
    for country in (region, "GB") if digits.startswith("0") else (region,):
        try:
            number = phonenumbers.parse(text if text.startswith("+") else digits, country)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number(number) if valid else phonenumbers.is_possible_number(number):
            return True
    return False
