"""Detection of personal data: one test per cause of an error, with ordinary words that look alike."""

import pytest
from tests.benchmarks import labelled

from voxframe.server.analyses.entities import find


def found(text: str) -> list[tuple[str, str]]:
    return [(entity.kind, entity.text) for entity in find(labelled.words(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "My phone is 415 555 0137, 4111 1111 1111 1111 is the card.",
            [("phone_number", "415 555 0137"), ("credit_card_number", "4111 1111 1111 1111")],
        ),
        (
            "My numbers are 536-22-8716, 415-555-0137.",
            [("us_social_security_number", "536-22-8716"), ("phone_number", "415-555-0137")],
        ),
        (
            "my card is 4111 1111 1111 1111 then 415 555 0137 is my cell",
            [("credit_card_number", "4111 1111 1111 1111"), ("phone_number", "415 555 0137")],
        ),
        ("415 555 0137, 415 555 0188.", [("phone_number", "415 555 0137"), ("phone_number", "415 555 0188")]),
        (
            "The social is 536-22-8716, 1984.",
            [("us_social_security_number", "536-22-8716"), ("date", "1984")],
        ),
        ("Room 12, 0161 496 0072.", [("phone_number", "0161 496 0072")]),
        ("I'm 42, 415 555 0137.", [("person_age", "42"), ("phone_number", "415 555 0137")]),
        (
            "My card is 4111 1111 1111 1111, 0927, 382.",
            [("credit_card_number", "4111 1111 1111 1111"), ("number_sequence", "0927, 382")],
        ),
        ("She's at 0 2 0, 7 9 4 6, 0 0 1 2.", [("phone_number", "0 2 0, 7 9 4 6, 0 0 1 2")]),
    ],
)
def test_a_number_that_is_complete_is_not_joined_with_the_next(text, expected):
    """Commas and "then" part complete numbers, but not the groups of one number."""
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I live at 12 Oak Street, Peter, and you?", [("location", "12 Oak Street"), ("person_name", "Peter")]),
        ("I live at 12 Oak Street, Anna, Texas.", [("location", "12 Oak Street, Anna, Texas")]),
        ("It was 4 Mill Lane, Mr. Brown.", [("location", "4 Mill Lane"), ("person_name", "Mr. Brown")]),
        ("It's at 9 Elm Road. Maria, note it.", [("location", "9 Elm Road"), ("person_name", "Maria")]),
        ("It is 9 St. Mary's Close, Leeds.", [("location", "9 St. Mary's Close, Leeds")]),
        ("Flat 2, 12 Oak St., Boston, MA 02110.", [("location", "Flat 2, 12 Oak St., Boston, MA 02110")]),
        ("Moved to number 12, Peter Parker said.", [("person_name", "Peter Parker")]),
        ("I live at 12 Oak House.", [("location", "12 Oak House")]),
        ("It is 12 Oak House, Leeds.", [("location", "12 Oak House, Leeds")]),
        ("In 2023 Park Hill, Maria Lopez, won.", [("date", "2023"), ("person_name", "Park Hill"), ("person_name", "Maria Lopez")]),
        ("Send it to P.O. Box 118.", [("location", "P.O. Box 118")]),
    ],
)
def test_an_address_ends_before_persons_and_sentences(text, expected):
    """A first name is a town only before a region or a postcode."""
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "At gate 4 Martin Lodge waits.",
        "In room 5 Anna House met us.",
        "In 2004 Lost House won.",
        "On May 5 Golden Gate Bridge was opened.",
        "Come to 7 Eleven.",
        "Come to 5 Guys.",
        "See block 12, Friday.",
        "Unit 4, Photosynthesis.",
        "It's in building 7, Marketing.",
        "The P O box is full.",
    ],
)
def test_a_number_before_a_capital_is_no_address(text):
    """Rooms, years, brands and chapters have numbers too."""
    assert [entity for entity in found(text) if entity[0] == "location"] == []
