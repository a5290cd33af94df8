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
