import random

from voxframe.frames.turn_edits import TurnWord, realign

# 100 ms per word with pauses of 50 ms: 0-100, 150-250, 300-400, 450-550.
SAID = [TurnWord(text, n * 150, n * 150 + 100, n, n, None, 0.9) for n, text in enumerate("we met in zurich".split())]


def rows(text: str, words: list[TurnWord] = SAID, **limits: int) -> list[tuple]:
    return [(w.text, w.start, w.end, w.original) for w in realign(words, text, **limits)]


def test_unchanged_words_keep_everything() -> None:
    """The same text gives the same words, with their confidences."""
    assert realign(SAID, "we met in zurich") == SAID


def test_replaced_words_take_the_times_of_as_many_words() -> None:
    """Case and punctuation count as a change of that word only."""
    assert rows("We met at Zurich.") == [
        ("We", 0, 100, "we"),
        ("met", 150, 250, None),
        ("at", 300, 400, "in"),
        ("Zurich.", 450, 550, "zurich"),
    ]
    assert [w.confidence for w in realign(SAID, "We met at Zurich.")] == [None, 0.9, None, None]


def test_other_numbers_of_words_share_the_gap() -> None:
    """More or fewer words share the time of the words they replace by their lengths; added words the pause."""
    assert rows("we met in Zug am See") == [
        *[("we", 0, 100, None), ("met", 150, 250, None), ("in", 300, 400, None)],
        *[("Zug", 450, 487, "zurich"), ("am", 487, 512, ""), ("See", 512, 550, "")],
    ]
    assert rows("wemet in zurich")[0] == ("wemet", 0, 250, "we met")
    assert rows("we met right in zurich")[2] == ("right", 250, 300, "")
    assert rows("So we met in zurich now", start=-40, end=700)[::5] == [("So", -40, 0, ""), ("now", 550, 700, "")]
    assert rows("in zurich") == [("in", 300, 400, None), ("zurich", 450, 550, None)]


def test_a_word_that_is_corrected_back_is_the_original() -> None:
    """Realigning changed words to the text of the service leaves no trace of the correction but the confidence."""
    changed = realign(SAID, "we met at zurich")
    assert [(w.text, w.original) for w in realign(changed, "we met in zurich")] == [(w.text, None) for w in SAID]


def test_any_text_gives_its_words_in_order() -> None:
    """For random edits the words are those of the text, times are in order, and unchanged words are the service's."""
    chosen = random.Random(15)
    for _ in range(300):
        tokens = [w.text or "" for w in SAID * 3]
        said = [TurnWord(t, n * 150, n * 150 + 100, n, n, None, 0.5) for n, t in enumerate(tokens)]
        for _ in range(chosen.randint(0, 6)):
            at = chosen.randrange(len(tokens))
            tokens[at : at + chosen.randint(0, 2)] = chosen.choices(
                ["new", "met", "Zurich!", "a"], k=chosen.randint(0, 2)
            )
            tokens = tokens or ["a"]
        found = realign(said, " ".join(tokens), 0, 2000)
        assert [w.text for w in found] == tokens
        times = [time for w in found for time in (w.start, w.end)]
        assert times == sorted(times)
        assert [w.place for w in found] == sorted({w.place for w in found})
        assert {w for w in found if w.original is None} <= set(said)


def test_a_text_without_spaces_is_cut_where_the_words_were() -> None:
    """Chinese words keep their times; a changed word has the time of the old one, also beside words with spaces."""
    said = [
        TurnWord(text, n * 100, n * 100 + 90, n, n)
        for n, text in enumerate("我们 今天 在 北京 用 new pandas 。".split())
    ]
    assert rows("我们昨天在北京用 my pandas。", said) == [
        *[("我们", 0, 90, None), ("昨天", 100, 190, "今天"), ("在", 200, 290, None), ("北京", 300, 390, None)],
        *[("用", 400, 490, None), ("my", 500, 590, "new"), ("pandas", 600, 690, None), ("。", 700, 790, None)],
    ]
    assert rows("我们在北京", said[:4]) == [("我们", 0, 90, None), ("在", 200, 290, None), ("北京", 300, 390, None)]
    assert [word.text for word in realign(said[:2], "完全不同")] == ["完全不同"]
    assert rows("好吧我们今天", said[:2]) == [("好吧", 0, 0, ""), ("我们", 0, 90, None), ("今天", 100, 190, None)]
