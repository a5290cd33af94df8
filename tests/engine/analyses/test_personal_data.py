"""Detection of personal data: one test per cause of an error, with ordinary words that look alike."""

import pytest
from tests.benchmarks import labelled

from voxframe_engine.analyses.entities import find


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
            [
                ("credit_card_number", "4111 1111 1111 1111"),
                ("credit_card_expiration", "0927"),
                ("credit_card_cvv", "382"),
            ],
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
        (
            "In 2023 Park Hill, Maria Lopez, won.",
            [("date", "2023"), ("person_name", "Park Hill"), ("person_name", "Maria Lopez")],
        ),
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The offer is good until March 15.", ("date", "March 15")),
        ("My passport expires in June 2029.", ("date", "June 2029")),
        ("I paid by card. It expires in June 2029.", ("credit_card_expiration", "June 2029")),
        ("And the expiration date? Oh nine twenty seven.", ("credit_card_expiration", "Oh nine twenty seven")),
    ],
)
def test_only_cards_have_a_card_expiration(text, expected):
    """The expiry of a passport or an offer is a date."""
    assert found(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The surname? K O W A L S K I.", ["K O W A L S K I"]),
        ("the surname is g a r c i a", ["g a r c i a"]),
        ("the surname is k o w a l i think", ["k o w a l"]),
        ("Last name is Okafor, O K A F O R.", ["Okafor", "O K A F O R"]),
        ("My name is Anna Bell, my flight is A B C D E F.", ["Anna Bell"]),
        ("How do you spell necessary? N E C E S S A R Y.", []),
        ("My pin is 4 o 3 o.", []),
    ],
)
def test_letters_spell_a_name_after_a_cue_for_names(text, expected):
    """The letter "o" is no nought there, and "a" and "i" at the end are no words."""
    assert [text for kind, text in found(text) if kind == "person_name"] == expected


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("How old is your daughter? Six.", "Six"),
        ("I left school at 16.", "16"),
        ("My dad died at 71.", "71"),
        ("She turned 50 last year.", "50"),
        ("my son caleb is twelve", "twelve"),
        ("Grandpa Joe was eighty four when he passed.", "eighty four"),
    ],
)
def test_a_number_beside_a_person_or_an_event_of_a_life_is_an_age(text, age):
    """Relatives, questions about persons, and events that have no time of day."""
    assert ("person_age", age) in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "We were three, then we were five.",
        "We are 8 and we need a table for 8.",
        "The temperature hit 40 yesterday, pushing 42.",
        "By six, I was done. At seven, she had breakfast.",
        "They left at 17. Shares began at 40.",
        "He finished at 18, well behind.",
        "How old is the building? I'd say 5.",
        "What age is the wine? 12.",
        "I think the company turned 50 last year.",
        "It began when I was six foot tall.",
    ],
)
def test_counts_times_and_ages_of_things_are_no_ages_of_persons(text):
    """A table for eight, a train at 17, a building."""
    assert [entity for entity in found(text) if entity[0] == "person_age"] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My username is blue fox 300.", ("username", "blue fox 300")),
        ("I'm jsmith42 on Twitter.", ("username", "jsmith42")),
        ("Is your login bfarrow82? Not tpark7, that's my cousin's.", ("username", "tpark7")),
        ("Follow @voxframe on Twitter.", ("username", "@voxframe")),
        ("It is jay underscore smith 77, with a y.", ("username", "jay underscore smith 77")),
        ("I forgot my password. I changed it to marble7.", ("password", "marble7")),
    ],
)
def test_user_names_and_passwords_are_found_after_their_cues(text, expected):
    """A cue, a platform, or the form of a handle with several parts."""
    assert expected in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "The user have 300 credits.",
        "You can find me in room 4.",
        "Follow me to page 3.",
        "On my twitter feed I think 3 of them came.",
        "It failed on log in attempt 5.",
        "I have an iphone15 and base64 with ubuntu2204.",
        "Call my_function in snake_case with @property.",
        "Set it to 350 degrees.",
    ],
)
def test_code_words_and_counts_are_no_user_names_or_passwords(text):
    """Identifiers of programs and ordinary words with a number."""
    assert [entity for entity in found(text) if entity[0] in ("username", "password")] == []


@pytest.mark.parametrize(
    "text",
    [
        "He won 6 4, 3 6, 7 6.",
        "The series is 1, 1, 2, 3, 5, 8, 13, 21, 34.",
        "The bits are 1 0 1 1 0 0 1 0.",
        "We sold 450, 320, 275, 610, 980.",
        "It rose to 1250, 1475, 1620.",
        "He read Fahrenheit 451, 1984.",
        "The gene A T G C C T A A G G matches.",
        "Play C D E F G A B C.",
        "They wore 7 8 9 10 11.",
        "ten nine eight seven six five four",
    ],
)
def test_lists_of_numbers_and_letters_identify_nobody(text):
    """Scores, counts, bits, genes and notes."""
    assert [entity for entity in found(text) if entity[0] != "date"] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("415, 555, 0137.", ("phone_number", "415, 555, 0137")),
        ("It's 4 8 1 1 9 2 7.", ("phone_number", "4 8 1 1 9 2 7")),
        (
            "the number is area code five one two five five five one two one two",
            ("phone_number", "five one two five five five one two one two"),
        ),
        ("My account is 450, 320, 275.", ("account_number", "450, 320, 275")),
        ("It is 4000, 1234, 5678, 9017.", ("credit_card_number", "4000, 1234, 5678, 9017")),
    ],
)
def test_groups_of_phones_and_cards_are_no_lists(text, expected):
    """The lengths of the groups, check digits, or a cue."""
    assert expected in found(text)


def test_a_question_on_one_channel_tells_what_the_answer_on_the_other_is():
    """The answer is "Twelve." on the second channel, twice after a question on the first."""
    asked = [dict(w, channel="1") for w in labelled.words("How old is he? And the code on the back?")]
    said = [dict(w, channel="2") for w in labelled.words("Twelve. 382.")]
    for place, word in enumerate(asked):
        word["start"] = 200 * place + (1000 if place > 3 else 0)
        word["end"] = word["start"] + 150
    for word, start in zip(said, (900, 3500), strict=True):
        word["start"], word["end"] = start, start + 300
    words = sorted(asked + said, key=lambda word: word["start"])
    assert [(e.kind, e.text) for e in find(words)] == [("person_age", "Twelve"), ("credit_card_cvv", "382")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is QQ 12 34 56 C and AB 12 34 56 C.", ("us_social_security_number", "AB 12 34 56 C")),
        ("The Visa ending 8830.", ("credit_card_number", "8830")),
        ("She grew up in Duluth, Minnesota.", ("location", "Duluth, Minnesota")),
        (
            "k dot fairweather eighty two at yahoo dot co dot uk",
            ("email_address", "k dot fairweather eighty two at yahoo dot co dot uk"),
        ),
        ("The plate is x ray tango four two.", ("vehicle_id", "x ray tango four two")),
        ("My national insurance number is QQ 12 34 56 C.", ("us_social_security_number", "QQ 12 34 56 C")),
        ("card ending in four two four two", ("credit_card_number", "four two four two")),
        ("It's 4111.1111.1111.1111.", ("credit_card_number", "4111.1111.1111.1111")),
        ("The SWIFT code is DEUTDEFF.", ("banking_information", "DEUTDEFF")),
        ("The BIC is D E U T D E F F.", ("banking_information", "D E U T D E F F")),
        ("It is 2001:db8::1, they said.", ("ip_address", "2001:db8::1")),
        ("fe80::1ff:fe23:4567:890a", ("ip_address", "fe80::1ff:fe23:4567:890a")),
    ],
)
def test_other_forms_of_personal_data_are_found(text, expected):
    """National insurance, last digits of a card, codes of banks, short IPv6 addresses, towns, and "x ray"."""
    assert expected in found(text)


@pytest.mark.parametrize(
    "address",
    [
        "j o h n dot smith at gmail dot com",
        "m a r y at hotmail dot com",
        "j o h n underscore s m i t h at aol dot com",
        "j smith at gmail dot com",
        "john.smith at gmail.com",
        "johnsmith all one word at gmail dot com",
        "user at mail dot example dot com",
        "josé dot garcía at gmail dot com",
        "müller@beispiel.de",
    ],
)
def test_an_email_address_is_found_whole(address):
    """Letters that are spelled, initials, letters with accents, and words about its form belong to it."""
    assert found(f"it's {address} thanks") == [("email_address", address)]


def test_an_email_address_may_stand_in_brackets():
    """Brackets, quotes and "mailto:" before it are no part of it."""
    text = 'Write to <a.b@example.com>, "c@example.org" or mailto:d@example.net please.'
    assert found(text) == [("email_address", text) for text in ("a.b@example.com", "c@example.org", "d@example.net")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("my password is sunshine ninety nine", ("password", "sunshine ninety nine")),
        ("my password's fluffy", ("password", "fluffy")),
        ("the password is all lowercase kitty cat", ("password", "kitty cat")),
        ("I lost my password. I'll reset it to Winter2024!", ("password", "Winter2024")),
        ("the handle is at john doe", ("username", "john doe")),
        ("my username is at sign jdoe", ("username", "jdoe")),
        ("my password is capital P little a s s 1 2 3", ("password", "capital P little a s s 1 2 3")),
    ],
)
def test_a_password_is_found_whole(text, expected):
    """Spoken numbers belong to it; words about its form, and the "at" of a handle, do not."""
    assert found(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "My password is working now.",
        "the password is fine",
        "the username is already taken",
        "the door handle is broken",
        "my login is stuck",
    ],
)
def test_the_state_of_a_login_is_no_user_name_or_password(text):
    """It works, or it is broken or taken."""
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("my name is josé garcía", ["josé garcía"]),
        ("doctor müller will see you", ["müller"]),
        ("my name is will and i have a question", ["will"]),
        ("my last name is spelled with a k", []),
        ("your name is important to us", []),
        ("His name is already there.", []),
        ("my first name is may", ["may"]),
        ("my name is may be changed", []),
        ("mr j smith is here", ["j smith"]),
        ("Mr. J. R. Smith called.", ["Mr. J. R. Smith"]),
        ("john f kennedy spoke", ["john f kennedy"]),
        ("John F. Kennedy spoke.", ["John F. Kennedy"]),
        ("john i think so", ["john"]),
        ("mark x marks the spot", []),
        ("mary-jane called", ["mary-jane"]),
    ],
)
def test_a_name_may_have_accents_initials_and_hyphens_but_is_nothing_said_of_a_name(text, expected):
    """Adjectives, "spelled" and "already" are no names; "may" and "will" are, after "my name is"."""
    assert [text for kind, text in found(text) if kind == "person_name"] == expected
