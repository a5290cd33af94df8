"""Personal data that stays at home."""

import pandas as pd
import pytest

import voxframe
from voxframe import export
from voxframe.errors import OptionError

SAID = "Hi I'm Ann Smith, and my number is 555 0199. Call Smith and Sons in May. You may call."


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
    """No name and no number is left in any table; what is not personal stays, rows and columns too."""
    masked = export.mask(tables)
    said = " ".join(masked["words"]["text"])
    assert said.startswith("Hi I'm [PERSON_NAME] [PERSON_NAME] and my number is [PHONE_NUMBER] [PHONE_NUMBER] Call")
    assert said.endswith("Call [PERSON_NAME] and Sons in [DATE] You may call.")
    for name, df in masked.items():
        assert list(df.columns) == list(tables[name].columns)
        assert df.dtypes.equals(tables[name].dtypes)
        assert len(df) == len(tables[name])
        whole = df.drop(columns=["transcript_id"]).to_csv()
        assert not any(part in whole for part in ("Ann", "ann ", "Smith", "smith", "555", "0199")), name
    assert (
        masked["utterances"]["text"]
        .iloc[0]
        .startswith("Hi I'm [PERSON_NAME], and my number is [PHONE_NUMBER]. Call [P")
    )
    assert masked["utterances"]["text"].iloc[0].endswith("in [DATE]. You may call.")
    assert "number" in masked["entities"]["text"].to_list()
    assert tables["words"]["text"].to_list() == SAID.split()


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
    assert [n for n, text in enumerate(masked["words"]["text"]) if text == "[PERSON_NAME]"] == [2, 3, 11]


def test_words_that_touch_an_entity_are_not_part_of_it(tables: dict[str, pd.DataFrame]) -> None:
    """A word that ends when the entity starts, or starts when it ends, stays. A word of no length inside is masked."""
    words = tables["words"].assign(text=[f"w{n}" for n in range(19)], start_ms=range(0, 1900, 100))
    words["end_ms"] = words["start_ms"] + 100
    words.loc[3, "end_ms"] = 300
    entities = tables["entities"].iloc[:1].assign(text="none", start_ms=200, end_ms=400)
    masked = export.mask(tables | {"words": words, "entities": entities})
    assert [n for n, text in enumerate(masked["words"]["text"]) if text == "[PERSON_NAME]"] == [2, 3]


def test_what_nobody_looked_through_is_not_exported(tables: dict[str, pd.DataFrame]) -> None:
    """Without entity detection nothing is known, and that is an error, not an unmasked file."""
    unknown = tables["transcripts"].assign(entity_detection=pd.array([None], "boolean"))
    with pytest.raises(OptionError, match=r"1 transcripts without entity_detection, such as 't'"):
        export.mask(tables | {"transcripts": unknown})
    with pytest.raises(OptionError, match="add it to the tables"):
        export.mask({"words": tables["words"]})
    with pytest.raises(OptionError, match="not 'hide'"):
        export.mask(tables, "hide")
