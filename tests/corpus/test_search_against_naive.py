"""The search index compared with a slow, plain implementation."""

import json
import re
from collections import Counter
from fnmatch import fnmatchcase
from itertools import groupby

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxframe import frames
from voxframe.analysis.search_terms import spoken
from voxframe.corpus.archive import Archive
from voxframe.corpus.search import index
from voxframe.corpus.search.concordance import SearchQuery, counts, find_in_context
from voxframe.corpus.search.segment import spoken_of_all

# What each word is compared as, by hand.
SPOKEN = {
    "the": ["the"],
    "The,": ["the"],
    "a": ["a"],
    "Café!": ["cafe"],
    "cafe": ["cafe"],
    "cafe\u0301s": ["cafes"],
    "Don\u2019t": ["dont"],
    "dont": ["dont"],
    "Boston's": ["bostons"],
    "boston": ["boston"],
    "3,000": ["3000"],
    "3.5": ["3.5"],
    "35": ["35"],
    "STRASSE": ["strasse"],
    "straße": ["strasse"],
    "New York": ["new", "york"],
    "—": [],
    "": [],
    "economy": ["economy"],
    "economic.": ["economic"],
    "日本": ["日", "本"],
    "हिन्दी": ["हिन्दी"],
    "third-party": ["third", "party"],
}
# What each word of a query is compared with, by hand; with * as in file names.
ASKED = {
    **{word: spoken[0] for word, spoken in SPOKEN.items() if len(spoken) == 1},
    "york": "york",
    "econom*": "econom*",
    "Caf*": "caf*",
    "*o*": "*o*",
    "*y": "*y",
    "b*n*s": "b*n*s",
    "zebra": "zebra",
    "*": "*",
}

WORDS = st.lists(
    st.tuples(st.sampled_from(list(SPOKEN)), st.sampled_from([None, "1", "2"]), st.sampled_from(["A", "B", None])),
    max_size=30,
)
QUERIES = st.lists(st.sampled_from(list(ASKED)), min_size=1, max_size=6).filter(lambda q: set(q) - {"*"})


def payload(transcript_id, words):
    """Return a transcript in which word n is said at n seconds."""
    return json.dumps(
        {
            "id": transcript_id,
            "status": "completed",
            "words": [
                {"text": text, "start": 1000 * n, "end": 1000 * n + 500, "channel": channel, "speaker": speaker}
                for n, (text, channel, speaker) in enumerate(words)
            ],
        }
    ).encode()


def spans(transcripts, query, slop):
    """Return the first and last word of every match, by trying all spans of each channel of each transcript."""
    patterns = [ASKED[word] for word in query]
    for transcript_id, words in transcripts.items():
        numbered = sorted(enumerate(words), key=lambda word: str(word[1][1]))
        for _, channel in groupby(numbered, key=lambda word: word[1][1]):
            tokens = [(token, n) for n, (text, *_) in channel for token in SPOKEN[text]]
            texts = [token for token, _ in tokens]
            for first in range(len(texts)):
                for last in range(first, min(len(texts), first + (slop or len(query)))):
                    if is_match(texts[first : last + 1], patterns, ordered=slop is None):
                        yield transcript_id, tokens[first][1], tokens[last][1]


def is_match(texts, patterns, *, ordered):
    """Return True if a span is a match and contains no shorter one."""
    if ordered:
        return len(texts) == len(patterns) and all(map(fnmatchcase, texts, patterns))

    def holds(part):
        return all(sum(fnmatchcase(t, p) for t in part) >= n for p, n in Counter(patterns).items())

    return holds(texts) and not holds(texts[1:]) and not holds(texts[:-1])


def length(word):
    """Return the number of words of a row, by hand: Japan is one word of two characters."""
    return 1 if word[0] == "日本" else len(SPOKEN[word[0]])


def line(words):
    """Return words joined by spaces, with none between two words of Chinese characters."""
    return re.sub("(?<=日本) (?=日本)", "", " ".join(words))


@pytest.fixture(scope="module")
def small_segments():
    """Segments so small that a few transcripts are merged repeatedly."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "MAX_WORDS", 60)
        patch.setattr(index, "FAN", 3)
        patch.setattr(index, "_LEAST_TIER", 10)
        yield


@given(
    transcripts=st.dictionaries(st.sampled_from("abcdefg"), WORDS, max_size=5),
    later=st.lists(st.dictionaries(st.sampled_from("abcdefg"), WORDS, max_size=3), max_size=3),
    query=QUERIES,
    room=st.sampled_from([None, None, 0, 2, 6]),
)
@settings(max_examples=40, deadline=None)
def test_search_equals_a_plain_implementation(tmp_path_factory, small_segments, transcripts, later, query, room):
    """Phrases, wildcards and slop give the same matches while transcripts are added, removed and replaced."""
    archive = Archive(tmp_path_factory.mktemp("corpus"))
    built, store = index.SearchIndex(archive), archive.store
    slop = None if room is None else len(query) + room
    asked = SearchQuery.check(" ".join(query), slop)
    here = {}
    for change in [transcripts, *later]:
        for transcript_id, words in change.items():
            store.put(transcript_id, "transcript", payload(transcript_id, words))
        here |= change
        for transcript_id in [i for i, words in here.items() if len(words) == 7]:
            next(store.root.glob(f"raw/*/{transcript_id}.json.zst")).unlink()
            del here[transcript_id]
        found = frames.to_pandas(find_in_context(built.view(), asked, 2), "concordance")
        rows = list(zip(found["transcript_id"], found["word_idx"], found["last_word_idx"], strict=True))
        assert rows == sorted(spans(here, query, slop))
    counted = counts(built.view(), asked, by="transcript_id").set_index("transcript_id")
    assert counted["occurrences"].to_dict() == {i: sum(row[0] == i for row in rows) for i in here}
    assert counted["words"].to_dict() == {i: sum(map(length, words)) for i, words in here.items()}
    by_speaker = counts(built.view(), asked, by=["transcript_id", "speaker"])
    assert by_speaker["occurrences"].sum() == len(rows)
    assert counts(built.view(), asked, by="speaker").equals(by_speaker)
    for of_words in (
        "speaker_name",
        "channel",
        ["channel", "speaker_name"],
    ):  # counted in another way than with transcripts
        names = [of_words] if isinstance(of_words, str) else of_words
        summed = counts(built.view(), asked, by=["transcript_id", *names])
        summed = summed.groupby(names, dropna=False)[["occurrences", "words"]].sum().reset_index()
        voices = counts(built.view(), asked, by=of_words)
        assert voices[[*names, "occurrences", "words"]].values.tolist() == summed.values.tolist() or voices.empty
    for row in found.to_dict("records"):
        words = here[row["transcript_id"]]
        _, channel, speaker = words[row["word_idx"]]
        of_channel = [n for n, word in enumerate(words) if word[1] == channel]
        first, last = of_channel.index(row["word_idx"]), of_channel.index(row["last_word_idx"])
        expected = [
            line(words[n][0] for n in of_channel[a:b])
            for a, b in ((max(0, first - 2), first), (first, last + 1), (last + 1, last + 3))
        ]
        assert [row["left"], row["match"], row["right"]] == expected
        assert (row["start_ms"], row["end_ms"]) == (1000 * row["word_idx"], 1000 * row["last_word_idx"] + 500)
        assert [row["channel"], row["speaker"]] == [channel, speaker] or None in (channel, speaker)


@given(st.lists(st.one_of(st.text(max_size=8), st.text("aZ3.,'_- \x1f\u00e9", max_size=8)), max_size=20))
@settings(max_examples=100, deadline=None)
def test_many_texts_are_folded_as_one_is(texts):
    """Folding many texts at once gives the same words as folding each alone."""
    words, text = spoken_of_all(pa.array(texts, pa.string()))
    expected = [(word, n) for n, each in enumerate(texts) for word in spoken(each)]
    assert list(zip(words.to_pylist(), text.tolist(), strict=True)) == expected
