"""Search and counts by one rule for hyphens, and in scripts without spaces between words."""

import json

import pandas as pd
import pytest

import voxframe
from voxframe.analysis.search_terms import find_words
from voxframe.analysis.vocabulary import ngrams
from voxframe.compare import align, compare_engines, error_rates
from voxframe.errors import CorpusWarning, OptionError


def corpus_of(folder, texts):
    """A corpus with a transcript per text, of one word per second."""
    corpus = voxframe.Corpus(folder / "corpus")
    for name, text in texts.items():
        words = [{"text": word, "start": 1000 * n, "end": 1000 * n + 900} for n, word in enumerate(text.split())]
        corpus.raw.put(name, json.dumps({"id": name, "status": "completed", "words": words}).encode())
    return corpus


COMPOUNDS = {
    "a": "A third party came.",
    "b": "The third-party, too.",
    "c": "No thirdparty here.",
    "d": "third\u2010party",
}


@pytest.mark.parametrize("query", ["third party", "third-party", "thirdparty", "Third\u2011Party"])
def test_a_compound_is_found_in_each_spelling(tmp_path, query):
    """A space, a hyphen and nothing between two words are the same, in a corpus and in a DataFrame."""
    corpus = corpus_of(tmp_path, COMPOUNDS)
    assert corpus.search(query)["transcript_id"].to_list() == ["a", "b", "c", "d"]
    assert corpus.counts(query)["occurrences"].to_list() == [1, 1, 1, 1]
    assert sorted(find_words(corpus.words(), query)["transcript_id"]) == ["a", "b", "c", "d"]


def test_function_words_are_not_joined_over_a_space(tmp_path):
    """`may be` is not `maybe`, and `along` is not `a long`; with a hyphen they are."""
    corpus = corpus_of(tmp_path, {"a": "It may be a long way.", "b": "Maybe along it.", "c": "On-line or online."})
    assert corpus.search("maybe")["transcript_id"].to_list() == ["b"]
    assert corpus.search("may be")["transcript_id"].to_list() == ["a"]
    assert corpus.search("along")["transcript_id"].to_list() == ["b"]
    assert len(corpus.search("online")) == len(corpus.search("on-line")) == 2


def test_tables_of_words_split_at_hyphens(tmp_path):
    """N-grams, and the denominator of rates, have the two words of a hyphenated one, and no word that nobody wrote."""
    corpus = corpus_of(tmp_path, {"b": "The third-party — too."})
    assert set(ngrams(corpus.words())["ngram"]) == {"the", "third", "party", "too"}
    assert corpus.counts("party")[["words", "per_1000"]].to_numpy().tolist() == [[4, 250.0]]


@pytest.mark.parametrize(
    ("text", "query", "times"),
    [
        ("今天天气很好。天气!", "天气", 2),
        ("今日はいい天気ですね。", "天気", 1),
        ("วันนี้อากาศดีมาก", "อากาศ", 1),
        ("ມື້ນີ້ອາກາດດີ", "ອາກາດ", 1),
        ("ថ្ងៃនេះអាកាសធាតុល្អ", "អាកាសធាតុ", 1),
        ("ဒီနေ့ရာသီဥတုကောင်းတယ်", "ရာသီဥတု", 1),
        ("用pandas吧", "pandas", 1),
    ],
)
@pytest.mark.filterwarnings("ignore::voxframe.errors.CorpusWarning")
def test_text_without_spaces_is_searched(tmp_path, text, query, times):
    """A string is found inside unspaced text, of a service and of a subtitle file, with the text as it was."""
    corpus = corpus_of(tmp_path, {"a": text})
    assert corpus.counts(query)["occurrences"].to_list() == [times]
    (tmp_path / "b.srt").write_text(f"1\n00:00:01,000 --> 00:00:05,000\n{text}\n")
    corpus.add(tmp_path / "b.srt")
    hits = corpus.search(query, ids=["b"], context=3)
    assert len(hits) == times
    assert hits["match"][0].strip("。!") == query
    assert corpus.table("utterances", "b")["text"].to_list() == [text]
    assert hits["start_ms"].between(1000, 5000).all()


def in_captions(folder, text):
    """A corpus with a text as captions, whose words are characters."""
    corpus = voxframe.Corpus(folder / "corpus")
    (folder / "b.srt").write_text(f"1\n00:00:01,000 --> 00:00:05,000\n{text}\n")
    corpus.add(folder / "b.srt")
    return corpus


# The Thai words are those of web-platform-tests, css/css-text/word-break/word-break-normal-th-000.html; the others are
# entries of dictionaries.
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ภาษาไทยภาษาไทย", {"ภาษา": 2, "ไทย": 2}),
        ("今天天气。天气!今天", {"今天": 2, "天气": 2}),
        ("用pandas吧 use-it", {"用": 1, "pandas": 1, "吧": 1, "use": 1, "it": 1}),
    ],
)
def test_words_of_unspaced_text_are_counted(tmp_path, text, words):
    """N-grams, and the denominator of rates, count the words of the dictionaries, also over rows of characters."""
    corpus = in_captions(tmp_path, text)
    grams = ngrams(corpus.words())
    assert dict(zip(grams["ngram"], grams["count"], strict=True)) == words
    assert corpus.counts(next(iter(words)), by="transcript_id")["words"].to_list() == [sum(words.values())]
    assert corpus.counts(next(iter(words)), by="channel")["words"].to_list() == [sum(words.values())]
    assert ngrams(corpus.words().iloc[::-1])["ngram"].to_list() == grams["ngram"].to_list()


def test_context_in_unspaced_text_has_whole_words(tmp_path):
    """A match inside a word shows the rest of the word as the first word of its context."""
    corpus = in_captions(tmp_path, "今天天气今天天气")
    hits = corpus.search("气", context=1)
    assert hits[["left", "match", "right"]].to_numpy().tolist() == [["天", "气", "今天"], ["天", "气", ""]]
    assert corpus.search("气", context=0)["left"].to_list() == ["", ""]
    assert corpus.search("天今", context=2)[["left", "right"]].to_numpy().tolist() == []
    assert corpus.search("气今", context=2)[["left", "right"]].to_numpy().tolist() == [["今天天", "天天气"]]


def test_merged_segments_of_the_index_keep_the_words(tmp_path):
    """A corpus whose index is merged from several segments counts the same words."""
    corpus = voxframe.Corpus(tmp_path / "corpus")
    for n in range(9):
        (tmp_path / f"{n}.srt").write_text(f"1\n00:00:01,000 --> 00:00:05,000\n{'abc ' * n}今天天气\n")
        corpus.add(tmp_path / f"{n}.srt")
        corpus.search("天气")
    assert corpus.counts("天气")["words"].to_list() == [n + 2 for n in range(9)]


def test_without_the_extra_words_are_characters(tmp_path, monkeypatch):
    """Characters are counted if ICU is not installed."""
    monkeypatch.setattr("voxframe.analysis.search_terms.SEGMENTATION", "characters")
    corpus = in_captions(tmp_path, "今天天气")
    assert ngrams(corpus.words())["ngram"].to_list() == ["天", "今", "气"]
    assert corpus.counts("天气")["words"].to_list() == [4]


def test_a_tone_mark_tells_words_apart(tmp_path):
    """Vowel signs and tone marks of Thai and Hindi are part of the word, as accents of Latin letters are not."""
    corpus = corpus_of(tmp_path, {"a": "ใกล้ की café"})
    found = {query: len(corpus.search(query)) for query in ("ใกล", "ใกล้", "की", "के", "cafe")}
    assert found == {"ใกล": 0, "ใกล้": 1, "की": 1, "के": 0, "cafe": 1}


def test_characters_are_compared_in_scripts_without_spaces():
    """Engines are compared by characters in Chinese and by words in English, unless told otherwise."""
    truth = pd.DataFrame({"recording": ["x", "y"], "text": ["今天天气很好", "我们走吧"]})
    other = truth.assign(text=["今天天气不好", "我们走吧"])
    aligned = align(truth, other, on="recording")
    assert compare_engines(aligned, aligned)["cer_a"].to_list() == [0.1]
    assert error_rates(aligned)["cer"].to_list() == [0.1]
    english = align("good day", "good days")
    assert "wer_a" in compare_engines(english, english)


def test_regular_expressions_match_whole_words(tmp_path):
    """With regex=True, each word of a query is an expression of a whole word; an invalid one is an error."""
    corpus = corpus_of(tmp_path, {"a": "The colour, colors and Color of a discolored wall."})
    assert corpus.search("colou?rs?", regex=True)["match"].to_list() == ["colour,", "colors", "Color"]
    assert corpus.search("(a|the) (dis)?colou?r(ed)?", regex=True)["match"].to_list() == ["The colour,", "a discolored"]
    assert corpus.counts("colou?rs?", regex=True)["occurrences"].to_list() == [3]
    with pytest.raises(OptionError, match="is not a regular expression"):
        corpus.search("colou(", regex=True)


@pytest.mark.parametrize(
    "query",
    [
        "colour|color",
        "colour OR wall",
        "colour -wall",
        r"\w+",
        "col.*",
        "[cC]olour",
        "col.+",
        "walls+",
        "colour^2",
        "wall~",
        "/wall/",
    ],
)
def test_operators_of_other_engines_are_named(tmp_path, query):
    """A query that looks like one with operators is searched as words, with a warning that says so."""
    corpus = corpus_of(tmp_path, {"a": "The colour of a wall."})
    with pytest.warns(CorpusWarning, match="is searched as words.*regex=True"):
        corpus.search(query)


@pytest.mark.parametrize("query", ["third-party", "the - wall", "or not", "a.b", "co*r", "C++", "e.g. this"])
def test_usual_queries_are_not(tmp_path, query, recwarn):
    """Hyphens, dashes, wildcards and the word `or` are no operators."""
    corpus_of(tmp_path, {"a": "The colour of a wall."}).search(query)
    assert not [warning for warning in recwarn if "is searched as words" in str(warning.message)]
