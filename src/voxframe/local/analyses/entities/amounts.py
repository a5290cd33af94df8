"""Money, shares of a whole, and measures of a body, spoken and written."""

from __future__ import annotations

from collections.abc import Iterator

from voxframe.local.analyses.entities.spoken import BELOW_100, QUANTITY
from voxframe.local.analyses.entities.text import Found, Run, rules, said

_SCALE = r"(?:hundred|thousand|million|billion|trillion|[kmb]\b)"
_CURRENCY = (
    r"(?:us dollars?|dollars?|bucks?|euros?|pounds?(?: sterling)?|pence|cents?|yen|rupees?|pesos?|francs?|crowns|yuan"
    r"|usd|eur|gbp)"
)
_PRICE_IS = r"(?:costs?|that will be|that'll be|price is|you owe me|comes to|total is)(?: about| around| only)?"
_COUNTED = r"(?! (?:percent|people|years|hours|minutes|days|weeks|months|hundred|of|the|dollars|o'? ?clock)\b)"
_PARTS = r"(?:third|quarter|fifth|tenth)"
_COLOUR = r"(?:blue|brown|green|grey|gray|hazel|red|blonde|blond|black|white|dark|light|ginger|auburn)"

_RULES = [
    *rules(
        "physical_attribute",
        60,
        rf"\b(?:weighs?|weighed|weight (?:is|of))(?: about| around| only)? "
        rf"(?P<it>{QUANTITY} (?:pounds|kilos|kilograms|stone|lbs|kg)\b)",
        rf"\b{QUANTITY} (?:feet|foot|met(?:re|er)s?|centimet(?:re|er)s)(?:,? {QUANTITY}(?: inch(?:es)?)?)? tall\b",
        rf"\b(?:[3-7]|four|five|six|seven) (?:foot|feet|ft)[ ,]+(?:{BELOW_100}|\d\d?)\b(?: inches)?"
        r"(?! (?:miles|people|long|wide|deep))",
        r"(?<!\w)[4-7]'\d\d?\"?(?!\w)",
        rf"\b(?:(?:long|short|curly|straight|thin|thick|{_COLOUR}) ){{0,3}}{_COLOUR}"
        r"(?:[- ]haired|[- ]eyed| hair| eyes)\b",
    ),
    *rules(
        "money_amount",
        58,
        rf"(?:us ?)?[$£€¥] ?\d[\d,]*(?:\.\d+)?(?: ?{_SCALE})?",
        rf"\b{QUANTITY} {_CURRENCY}\b(?! (?:of|in weight|heav))(?:(?: and)? {QUANTITY} (?:cents?|pence)\b)?",
        rf"\b{_PRICE_IS} (?P<it>{BELOW_100} {BELOW_100})\b{_COUNTED}",
    ),
    *rules(
        "statistics",
        56,
        rf"\b{QUANTITY} ?(?:%|percent|per cent|percentage points?)",
        rf"\b{QUANTITY}(?: [a-z]+)? (?:out of|in)(?: every)? (?!(?:one|zero)\b)"
        rf"(?:{BELOW_100}|\d+|a (?:hundred|thousand|million))\b(?![-:.,/]?\d){_COUNTED}",
        rf"\b(?:an? {_PARTS}|(?:two|three|four) {_PARTS}s)(?: of)?\b(?! (?:to|past|after)\b)",
    ),
]


def amounts(run: Run) -> Iterator[Found]:
    """money_amount, statistics, physical_attribute."""
    return said(run, _RULES)
