"""Personal data that stays at home."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import pytest

import voxframe
from voxframe import export
from voxframe.errors import OptionError

SAID = "Hi I'm Ann Smith, and my number is 555 0199. Call Smith and Sons in May. You may call."
MASKED = "Hi I'm [PERSON_NAME], and my number is [PHONE_NUMBER]. Call [PERSON_NAME] and Sons in [DATE]. You may call."


@pytest.fixture
def tables() -> dict[str, pd.DataFrame]:
    """A transcript with a person, a telephone number and a date, each with its time."""
    words = [{"text": w, "start": 100 * n, "end": 100 * n + 90, "speaker": "A"} for n, w in enumerate(SAID.split())]

    def entity(kind: str, text: str, first: int, last: int) -> dict:
        return {"entity_type": kind, "text": text, "start": 100 * first, "end": 100 * last + 90}

    return voxframe.tables(
        {
            "id": "t",
            "status": "completed",
            "text": SAID,
            "summary": "Ann Smith gives her number, 555-0199; Ms Smith's firm may call.",
            "entity_detection": True,
            "words": words,
            "utterances": [{"speaker": "A", "text": SAID, "start": 0, "end": 1800, "words": words}],
            "chapters": [
                {"headline": "ann smith calls", "gist": "A call", "summary": "Smith", "start": 0, "end": 1800}
            ],
            "entities": [
                entity("person_name", "Ann Smith", 2, 3),
                entity("phone_number", "555 0199", 8, 9),
                entity("date", "May", 15, 15),
                entity("favourite_colour", "number", 6, 6),
            ],
        }
    )


def test_masked_words_and_everything_made_of_them(tables: dict[str, pd.DataFrame]) -> None:
    """No name and no number is left in any table; what is not personal stays, columns and punctuation too."""
    masked = export.mask(tables)
    for name, df in masked.items():
        assert list(df.columns) == list(tables[name].columns)
        assert df.dtypes.equals(tables[name].dtypes)
        assert len(df) == len(tables[name]) - (2 if name == "words" else 0)
        whole = df.drop(columns=["transcript_id"]).to_csv()
        assert not any(part in whole for part in ("Ann", "ann ", "Smith", "smith", "555", "0199")), name
    for name in ("transcripts", "utterances"):
        assert masked[name]["text"].to_list() == [MASKED]
    assert masked["words"]["text"].to_list() == MASKED.split()
    assert "number" in masked["entities"]["text"].to_list()
    assert tables["words"]["text"].to_list() == SAID.split()


def test_words_of_one_label_are_one_row(tables: dict[str, pd.DataFrame]) -> None:
    """The row of a label lasts from its first to its last word, and has the other values of the first."""
    words = export.mask(tables)["words"].set_index("word_idx")
    assert words.index.to_list() == [0, 1, 2, 4, 5, 6, 7, 8, *range(10, 19)]
    assert words.loc[[2, 8, 11], ["text", "start_ms", "end_ms"]].values.tolist() == [
        ["[PERSON_NAME],", 200, 390],
        ["[PHONE_NUMBER].", 800, 990],
        ["[PERSON_NAME]", 1100, 1190],
    ]


@pytest.mark.parametrize(
    "written",
    [
        partial(export.srt, chars=200),
        partial(export.vtt, chars=200),
        export.txt,
        lambda words: export.md(words).replace("\\", ""),
        export.stm,
        export.audacity,
        export.textgrid,
        export.eaf,
        export.label_studio,
        lambda words: " ".join(line.split()[4] for line in export.ctm(words).splitlines()),
        lambda words: " ".join(line.split("\t")[-1] for line in export.tsv(words).splitlines()),
    ],
)
def test_every_format_has_the_masked_text_of_the_turn(
    tables: dict[str, pd.DataFrame], written: Callable[[pd.DataFrame], str]
) -> None:
    """Formats that are made of words have each label once, and the punctuation around it."""
    assert MASKED in written(export.mask(tables)["words"]).replace("\n", " ")


@pytest.mark.parametrize(
    ("said", "masked"),
    [
        ("Smith-Jones, Smith's (Smith)", "[PERSON_NAME], [PERSON_NAME]'s ([PERSON_NAME])"),
        ("to Smith/Ann. Ann@web.org?", "to [PERSON_NAME]. [PERSON_NAME]?"),
        ("Smith, Ann Smith Ann, ann smith", "[PERSON_NAME], [PERSON_NAME] [PERSON_NAME], [PERSON_NAME]"),
        ("smith ann, anna blacksmith", "smith ann, anna blacksmith"),
    ],
)
def test_occurrences_elsewhere_read_the_same_in_words_and_turns(said: str, masked: str) -> None:
    """A name that occurs again is masked in the words as in the text of the turn, also in another case and in parts."""
    spoken = f"Ann Smith {said}"
    words = [{"text": w, "start": 100 * n, "end": 100 * n + 90} for n, w in enumerate(spoken.split())]
    found = [{"entity_type": "person_name", "text": "Ann Smith", "start": 0, "end": 190}]
    turns = [{"speaker": "A", "text": spoken, "start": 0, "end": 9999, "words": words}]
    given = {"id": "t", "status": "completed", "entity_detection": True, "entities": found}
    tables = export.mask(voxframe.tables({**given, "words": words, "utterances": turns}))
    assert tables["utterances"]["text"].to_list() == [f"[PERSON_NAME] {masked}"]
    assert " ".join(tables["words"]["text"]) == f"[PERSON_NAME] {masked}"


def test_words_of_others_during_an_entity_stay() -> None:
    """What another speaker says between the words of an entity is not part of it, in the words as in the turns."""
    said = [("A", "It's", 0), ("A", "oh", 100), ("A", "two,", 200), ("B", "Right.", 300), ("A", "nine.", 400)]
    words = [{"text": text, "start": at, "end": at + 90, "speaker": who} for who, text, at in said]
    found = [{"entity_type": "phone_number", "text": "oh two, nine", "start": 100, "end": 490}]
    given = {"id": "t", "status": "completed", "entity_detection": True, "entities": found, "words": words}
    masked = export.mask(voxframe.tables(given))["words"]
    assert masked["text"].to_list() == ["It's", "[PHONE_NUMBER],", "Right.", "[PHONE_NUMBER]."]
    digits = {**given, "entities": [{**found[0], "text": "029"}]}  # written in another way
    assert export.mask(voxframe.tables(digits))["words"]["text"].to_list() == [
        "It's",
        *["[PHONE_NUMBER]" + end for end in ",.."],
    ]


def test_entities_that_follow_each_other_have_a_label_each() -> None:
    """Two telephone numbers in a row are two labels, in the words as in the turn."""
    words = [{"text": str(n), "start": n, "end": n + 1} for n in range(100, 104)]
    found = [{"entity_type": "phone_number", "text": f"{n} {n + 1}", "start": n, "end": n + 2} for n in (100, 102)]
    turns = [{"speaker": "A", "text": "100 101 102 103", "start": 100, "end": 104, "words": words}]
    given = {"id": "t", "status": "completed", "entity_detection": True, "entities": found}
    tables = export.mask(voxframe.tables({**given, "words": words, "utterances": turns}))
    assert tables["words"]["text"].to_list() == ["[PHONE_NUMBER]"] * 2
    assert tables["utterances"]["text"].to_list() == ["[PHONE_NUMBER] [PHONE_NUMBER]"]


def test_dropped(tables: dict[str, pd.DataFrame]) -> None:
    """Personal words are removed from the table of words, from all texts and from the entities."""
    dropped = export.mask(tables, "drop")
    assert len(dropped["words"]) == len(tables["words"]) - 6
    assert dropped["words"]["word_idx"].to_list()[:3] == [0, 1, 4]
    assert dropped["entities"]["entity_type"].to_list() == ["favourite_colour"]
    assert "Smith" not in dropped["transcripts"]["text"].iloc[0]
    assert "[" not in dropped["transcripts"]["text"].iloc[0]
    assert "Smith" not in export.vtt(dropped["words"])


def test_only_some_types(tables: dict[str, pd.DataFrame]) -> None:
    """Types are those that are named, also ones that are in no list."""
    masked = export.mask(tables, types=["favourite_colour"])
    assert masked["words"]["text"].to_list()[6] == "[FAVOURITE_COLOUR]"
    assert masked["words"]["text"].to_list()[2] == "Ann"


def test_without_times_the_words_decide(tables: dict[str, pd.DataFrame]) -> None:
    """An entity whose times the service left out is found by its words."""
    entities = tables["entities"].assign(start_ms=pd.array([None] * 4, "Int64"))
    masked = export.mask(tables | {"entities": entities}, types="person_name")
    words = masked["words"].set_index("word_idx")["text"]
    assert words[words.str.contains("NAME")].to_dict() == {2: "[PERSON_NAME],", 11: "[PERSON_NAME]"}


def test_words_that_touch_an_entity_are_not_part_of_it(tables: dict[str, pd.DataFrame]) -> None:
    """A word that ends when the entity starts, or starts when it ends, stays. A word of no length inside is masked."""
    words = tables["words"].assign(text=[f"w{n}" for n in range(19)], start_ms=range(0, 1900, 100))
    words["end_ms"] = words["start_ms"] + 100
    words.loc[3, "end_ms"] = 300
    entities = tables["entities"].iloc[:1].assign(text="none", start_ms=200, end_ms=400)
    masked = export.mask(tables | {"words": words, "entities": entities})
    assert masked["words"]["text"].to_list() == ["w0", "w1", "[PERSON_NAME]", *(f"w{n}" for n in range(4, 19))]


def test_what_nobody_looked_through_is_not_exported(tables: dict[str, pd.DataFrame]) -> None:
    """Without entity detection nothing is known, and that is an error, not an unmasked file."""
    unknown = tables["transcripts"].assign(entity_detection=pd.array([None], "boolean"))
    with pytest.raises(OptionError, match=r"1 transcript without entity_detection, such as 't'"):
        export.mask(tables | {"transcripts": unknown})
    with pytest.raises(OptionError, match="add it to the tables"):
        export.mask({"words": tables["words"]})
    with pytest.raises(OptionError, match="got 'hide'"):
        export.mask(tables, "hide")


@pytest.mark.parametrize(
    ("types", "reason"),
    [
        (["persn_name"], r"'persn_name' is not a type .*, and no entity has it \(did you mean 'person_name'\?\)"),
        ("Person_Name", "'Person_Name' is not a type"),
        ([5], "5 is not a type"),
        ([], "are an empty list, so that none would be masked"),
        (5, "types of personal data are given as a name or a list of names, got 5"),
    ],
)
def test_types_that_would_mask_nothing_are_refused(tables: dict[str, pd.DataFrame], types: Any, reason: str) -> None:
    """A misspelt type, or none, is an error, not an unmasked table."""
    with pytest.raises(OptionError, match=reason):
        export.mask(tables, types=types)


def test_types_that_occur_are_masked(tables: dict[str, pd.DataFrame]) -> None:
    """A type of entity outside the published list can be masked if an entity has it."""
    entities = tables["entities"].assign(entity_type="callsign")
    assert "[CALLSIGN]" in "".join(export.mask(tables | {"entities": entities}, types="callsign")["words"]["text"])


@pytest.mark.parametrize("how", ["mask", "drop"])
def test_texts_in_json_are_masked(tables: dict[str, pd.DataFrame], how: Any) -> None:
    """Unknown fields and the vocabulary of the user hold no personal data, and stay JSON with the same other values."""
    note = {"note": ["by\nAnn Smith", 5], "smith": None}
    columns = {"extra": json.dumps(note), "word_boost": '["Smith"]', "custom_spelling": '[{"from":["x"],"to":"y"}]'}
    transcripts = tables["transcripts"].assign(**{name: [text] for name, text in columns.items()})
    row = export.mask(tables | {"transcripts": transcripts}, how)["transcripts"].iloc[0]
    label = "[PERSON_NAME]" if how == "mask" else ""
    assert json.loads(row["word_boost"]) == [label]
    found = json.loads(row["extra"])
    assert [found["note"], found["smith"]] == [["by\n[PERSON_NAME]" if how == "mask" else "by", 5], None]
    assert row["custom_spelling"] == columns["custom_spelling"]


def test_texts_without_personal_data_are_unchanged(tables: dict[str, pd.DataFrame]) -> None:
    """Dropping personal data keeps the line ends of all other texts."""
    transcripts = tables["transcripts"].assign(summary=["A call.\nNo  names."])
    done = export.mask(tables | {"transcripts": transcripts}, "drop")["transcripts"]
    assert done["summary"].to_list() == ["A call.\nNo  names."]


def test_tables_to_mask_have_their_columns(tables: dict[str, pd.DataFrame]) -> None:
    """A list of tables, and a table without a column, are refused."""
    wrong: Any = [tables["words"]]
    with pytest.raises(OptionError, match="mask needs a dict of tables"):
        export.mask(wrong)
    with pytest.raises(ValueError, match=r"in the table entities, needs .* lacks entity_type"):
        export.mask(tables | {"entities": tables["entities"].drop(columns="entity_type")})
