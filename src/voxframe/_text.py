"""Text for client and server: one-line texts, search forms, sentences, captions as SRT and WebVTT, masked URLs."""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import chain, pairwise
from typing import Any, NamedTuple

WordDict = dict[str, Any]

#: Default limit of characters in a caption: two lines of the usual width.
DEFAULT_CHARS = 84
_LINE = DEFAULT_CHARS // 2
_SHORTEST_MS, _LONGEST_MS, _CHARS_PER_S = 800, 7000, 17  # of a caption of two lines
#: A silence in milliseconds after which a new caption or turn begins.
PAUSE_MS = 2000

#: English function words, and words that are as frequent in conversation as these.
FUNCTION_WORDS = frozenset(
    """
    a about after again all also am an and any are as at back be because been before being both but by came can
    could did do does doing done down each even every for from get gets getting give go goes going gone good got had
    has have having he her here him his how i if in into is it its just kind know let like little look lot make many
    may maybe me mean might more most much must my never no not now of off oh ok okay on one only or other our out
    over own people put quite rather really right said same say see shall she should so some something sort still
    such sure take than thank thanks that the their them then there these they thing things think this those though
    through to too two up us use used very want was way we well went were what when where which while who why will
    with would yeah yes yet you your yours
    """.split()
)
# Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese, and their punctuation.
UNSPACED = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff]"
)
_NO_SPACE = re.compile(f"(?<={UNSPACED}) (?={UNSPACED})")
_UNSPACED = re.compile(UNSPACED)
_HYPHEN = re.compile("[-\u2010-\u2015\u2212]")
# A character of such a script with its vowel signs and tone marks, also stacked ones, or a run of other characters.
_MARKS = (
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064"
    "\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d\u17b4-\u17d3\u17dd\u3099\u309a\ufe00-\ufe0f"
)
_CLUSTER = re.compile(f"{UNSPACED}(?:[{_MARKS}]|(?<=[\u1039\u17d2]){UNSPACED})*|(?:(?!{UNSPACED}).)+")
_NOT_SPOKEN = re.compile(r"(?<=\d),(?=\d)|(?!(?<=\d)\.(?=\d))[\W_]")  # "3,000" is 3000, but "3.5" is not 35

#: Patterns of `pieces`, and words that are no part of a compound, for searches in pages without a kernel.
SEARCH_RULES = {
    "unspaced": UNSPACED,
    "cluster": _CLUSTER.pattern,
    "hyphen": _HYPHEN.pattern,
    "functionWords": sorted(FUNCTION_WORDS),
}

#: Punctuation that ends a sentence, in all scripts.
SENTENCE_ENDS = tuple(".?!\u2026\u3002\uff1f\uff01\u061f\u06d4\u0964\u0965\u1362\u1367\u104b\u17d4")
#: Words whose full stop ends no sentence.
ABBREVIATIONS = frozenset({"Mr.", "Mrs.", "Ms.", "Dr.", "St.", "Prof.", "Jr.", "vs.", "e.g.", "i.e."})
_UNMARKED_PAUSE_MS = 500  # ends a sentence if the words have no punctuation
_PARAGRAPH_PAUSE_MS = 1500
_FULL_PARAGRAPH = 70  # words; after that, a pause of _FULL_PAUSE_MS ends a paragraph
_FULL_PAUSE_MS = 400
_LONGEST_PARAGRAPH = 120  # words


class Cue(NamedTuple):
    """One caption, or one word to be put into a caption.

    Attributes:
        text: Text of the caption or word.
        start: Start in milliseconds.
        end: End in milliseconds.
        speaker: Speaker to name, or None.
        estimated: True if it begins or ends inside a word or row, so that its time is estimated from the number of
            letters.
    """

    text: str
    start: int
    end: int
    speaker: str | None = None
    estimated: bool = False


class _Piece(NamedTuple):
    text: str
    start: int
    end: int
    is_first: bool
    is_last: bool


def one_line(text: str) -> str:
    r"""Return the text on one line: white space as single spaces, without control characters and lone surrogates.

    Example:
        >>> one_line("a\n\n\x00b")
        'a b'
    """
    line = " ".join(text.split())
    return line if line.isprintable() else "".join(c for c in line if unicodedata.category(c) not in ("Cc", "Cs"))


def storable(text: str) -> str:
    r"""Return a text that UTF-8 and SQLite can hold: a lone surrogate, as in some file names, becomes its escape.

    Example:
        >>> storable("caf\udce9.wav")
        'caf\\udce9.wav'
    """
    return text.encode("utf-8", "backslashreplace").decode()


def join_words(texts: Iterable[str | None]) -> str:
    """Join words into a text, with spaces between them unless their script has none. Empty ones are left out.

    Example:
        >>> join_words(["Good", "day."]), join_words(["你", "好。"]), join_words(["用", "pandas", "吧"])
        ('Good day.', '你好。', '用 pandas 吧')
    """
    text = " ".join(filter(None, texts))
    return text if text.isascii() else _NO_SPACE.sub("", text)


def is_spaced(texts: Sequence[str]) -> list[bool]:
    """Return for each word True if `join_words` puts a space between it and the word before.

    Example:
        >>> is_spaced(["用", "pandas", "吧", "。"])
        [False, True, True, False]
    """
    if not texts or not _NO_SPACE.search(" ".join(texts)):
        return [n > 0 for n in range(len(texts))]
    return [False, *(not _NO_SPACE.search(f"{a[-1:]} {b[:1]}") for a, b in pairwise(texts))]


def search_form(word: str) -> str:
    """Return a word in the form in which searches compare it: without case and punctuation.

    Example:
        >>> search_form("Runner's"), search_form("3,000."), search_form("3.5")
        ('runners', '3000', '3.5')
    """
    if word.isascii():
        return _NOT_SPOKEN.sub("", word.casefold())
    return _NOT_SPOKEN.sub(_sign, unicodedata.normalize("NFKC", word).casefold())


def _sign(match: re.Match[str]) -> str:
    """Return a vowel sign or tone mark of the scripts of South and South-East Asia; no other sign is spoken."""
    is_kept = "\u0900" <= match[0] <= "\u1cff" and unicodedata.category(match[0])[0] == "M"
    return match[0] if is_kept else ""


def is_unspaced(text: str) -> bool:
    """Return True if a text has letters of a script without spaces between words."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def pieces(word: str) -> list[str]:
    """Return the parts of a word that are counted and searched.

    These are its parts between hyphens, and in scripts without spaces its characters, with their vowel signs and tone
    marks.

    Example:
        >>> pieces("third-party"), pieces("用pandas吧。"), pieces("ที่นี่")
        (['third', 'party'], ['用', 'pandas', '吧', '。'], ['ที่', 'นี่'])
    """
    if word.isascii():
        return [part for part in word.split("-") if part]
    return [piece for part in _HYPHEN.split(unicodedata.normalize("NFKC", word)) for piece in _CLUSTER.findall(part)]


def split_words(text: str) -> list[str]:
    """Split a text at white space, and between the characters of scripts without spaces. Punctuation stays at its word.

    Example:
        >>> split_words("Good day."), split_words("今天很好。")
        (['Good', 'day.'], ['今', '天', '很', '好。'])
    """
    if text.isascii() or not _UNSPACED.search(text):
        return text.split()
    words: list[str] = []
    for word in text.split():
        first = len(words)
        for piece in _CLUSTER.findall(word):
            if len(words) > first and not search_form(piece):
                words[-1] += piece
            else:
                words.append(piece)
    return words


def cues(
    words: Iterable[Cue],
    chars: int = DEFAULT_CHARS,
    speaker: str | None = None,
    prefix: str = "",
    *,
    is_repeated: bool = False,
) -> Iterator[Cue]:
    """Divide the words of one turn into captions that read well.

    Captions end at sentences and clauses if they can, have at least two words, fit into two lines, can be read in their
    time, last at most 7 seconds if no word is then alone, or longer if more characters are asked for, and are filled
    evenly. A new one begins after a pause of two seconds.

    Args:
        words: Words in order; each may contain more than one word. A word longer than a caption is split.
        prefix: What the text of the first caption will begin with, such as "Ada: ". It is counted, and not added.
        is_repeated: Each caption may have the prefix.
    """
    run: list[_Piece] = []
    end = 0
    for piece in chain.from_iterable(_pieces(word, chars) for word in words):
        if run and piece.start - end >= PAUSE_MS:
            yield from _divided(run, chars, speaker, prefix, is_repeated)
            run, prefix = [], prefix if is_repeated else ""
        end = max(end, piece.end) if run else piece.end
        run.append(piece)
    yield from _divided(run, chars, speaker, prefix, is_repeated)


def _divided(run: list[_Piece], chars: int, speaker: str | None, prefix: str, is_repeated: bool) -> Iterator[Cue]:
    """Divide words without a long pause at the places of the lowest cost (dynamic programming over the ends)."""
    width = max(_LINE, -(-chars // 2))
    cost, start = [0.0], [0]
    for end in range(1, len(run) + 1):
        best, from_, spoken = math.inf, end - 1, ""
        for begin in range(end - 1, -1, -1):
            spoken = f"{run[begin].text} {spoken}".rstrip()
            text = prefix + spoken if begin == 0 or is_repeated else spoken
            length = len(text)
            if length > chars and begin < end - 1:
                break
            if begin < end - 1 and length > width and not _fits(text, width):
                continue
            own = cost[begin] + _cost(run, begin, end, length, chars)
            if own < best:
                best, from_ = own, begin
        cost.append(best)
        start.append(from_)
    ends = [len(run)]
    while ends[-1]:
        ends.append(start[ends[-1]])
    for begin, end in pairwise(reversed(ends)):
        line = run[begin:end]
        estimated = not (line[0].is_first and line[-1].is_last)
        spoken = join_words(piece.text for piece in line)
        yield Cue(spoken, line[0].start, max(piece.end for piece in line), speaker, estimated)


def _fits(text: str, width: int) -> bool:
    """Return True if the text fits into two lines of this width."""
    at = text.rfind(" ", 0, width + 1)
    return at >= 0 and len(text) - at - 1 <= width


def _cost(run: list[_Piece], begin: int, end: int, length: int, chars: int) -> float:
    """Return the cost of a caption: of being there, of a bad end, a single word, a bad length, and of haste."""
    last, start = run[end - 1], run[begin].start
    ends_well = 0.0 if last.text.endswith(SENTENCE_ENDS) else 0.3 if last.text.endswith((",", ";", ":")) else 0.7
    short = last.end - start < _SHORTEST_MS
    longest_ms = _LONGEST_MS * max(DEFAULT_CHARS, chars) // DEFAULT_CHARS
    too_long = max(0, last.end - start - 1) // longest_ms
    lonely = end - begin == 1 and len(run) > 1
    needed_ms = 1000 * length / _CHARS_PER_S
    shown_ms = max(_SHORTEST_MS, run[end].start - start) if end < len(run) else needed_ms
    haste = min(1.0, max(0.0, needed_ms / shown_ms - 1))
    ends_badly = ends_well if end < len(run) else 0
    return 1 + (1 - length / chars) ** 2 + ends_badly + 12 * lonely + 4 * short + 9 * too_long + 3 * haste


def readable(captions: Sequence[Cue]) -> Iterator[Cue]:
    """Return captions, sorted by start, that are shown long enough to be read.

    A caption stays until it could be read at 17 characters per second, or until the next one after its speech begins,
    at least 0.8 seconds, but not beside the next one of the same speaker. Source: Netflix, "English (USA) Timed Text
    Style Guide" (17 characters per second, 42 per line, 5/6 s).
    """
    starts = [caption.start for caption in captions]
    own: dict[str | None, int] = {}  # the start of the next caption of each speaker
    shown = []
    for n, caption in reversed([*enumerate(captions)]):
        reading_ms = math.ceil(1000 * len(caption.text) / _CHARS_PER_S)
        after = bisect_left(starts, caption.end, n + 1)
        until = starts[after] if after < len(starts) else math.inf
        end = max(caption.end, min(caption.start + reading_ms, until), caption.start + _SHORTEST_MS)
        next_start = own.get(caption.speaker, math.inf)
        if caption.speaker is not None and next_start > caption.start:
            end = min(end, next_start)
        own[caption.speaker] = caption.start
        shown.append(caption._replace(end=int(end)))
    return reversed(shown)


def two_lines(text: str) -> str:
    r"""Return the text of a caption with a line break near its middle if it is longer than a line.

    Example:
        >>> two_lines("The birch canoe slid on the smooth planks of the old pier.")
        'The birch canoe slid on the\nsmooth planks of the old pier.'
    """
    if len(text) <= _LINE or " " not in text:
        return text
    at = min((n for n, c in enumerate(text) if c == " "), key=lambda n: abs(2 * n - len(text)))
    return f"{text[:at]}\n{text[at + 1 :]}"


def srt(captions: Iterable[Cue]) -> str:
    """Return captions as SRT.

    SRT has no escapes and no field for the speaker. `-->` in a text becomes one character, so that no parser reads the
    line as a timestamp.

    Example:
        >>> print(srt([Cue("R&D --> x", 250, 650)]), end="")
        1
        00:00:00,250 --> 00:00:00,650
        R&D → x
    """
    return "\n".join(
        f"{n}\n{_timestamp(cue.start, ',')} --> {_timestamp(cue.end, ',')}\n{two_lines(cue.text.replace('-->', '→'))}\n"
        for n, cue in enumerate(captions, 1)
    )


def vtt(captions: Iterable[Cue]) -> str:
    """Return captions as WebVTT, with the speaker of each as a voice tag (`<v Name>`).

    Example:
        >>> print(vtt([Cue("R&D", 250, 650, "Ann")]), end="")
        WEBVTT
        <BLANKLINE>
        00:00:00.250 --> 00:00:00.650
        <v Ann>R&amp;D
    """
    blocks = (
        f"{_timestamp(cue.start, '.')} --> {_timestamp(cue.end, '.')}\n"
        f"{f'<v {_escape(cue.speaker)}>' if cue.speaker else ''}{_escape(two_lines(cue.text))}\n"
        for cue in captions
    )
    return "WEBVTT\n\n" + "\n".join(blocks)


def _pieces(word: Cue, chars: int) -> Iterator[_Piece]:
    """Split a word into parts without spaces that each fit into a caption; they share its time by number of letters."""
    texts = [part[at : at + chars] for part in one_line(word.text).split() for at in range(0, len(part), chars)]
    length, letters, before = word.end - word.start, sum(map(len, texts)), 0
    for n, text in enumerate(texts):
        after = before + len(text)
        start, end = (word.start + length * count // letters for count in (before, after))
        yield _Piece(text, start, end, n == 0, n == len(texts) - 1)
        before = after


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def quantity(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    Example:
        >>> quantity(1, "job"), quantity(1200, "match", "matches")
        ('1 job', '1,200 matches')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def clock(seconds: float, *, hours: bool = False) -> str:
    """Return seconds as m:ss, or as h:mm:ss from one hour on.

    Example:
        >>> clock(75), clock(75, hours=True), clock(3675)
        ('1:15', '0:01:15', '1:01:15')
    """
    minutes, second = divmod(round(seconds), 60)
    if hours or minutes >= 60:
        return f"{minutes // 60}:{minutes % 60:02d}:{second:02d}"
    return f"{minutes}:{second:02d}"


def _timestamp(ms: int, point: str) -> str:
    seconds, ms = divmod(ms, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{point}{ms:03}"


_LOGIN = re.compile(r"(?<=://)[^/?#\s'\"<>]+@")
_SECRET = re.compile(
    r"([?&;#](?:[\w.-]*(?:signature|token|secret|password|passwd|credential|api[_-]?key|accesskeyid|googleaccessid"
    r"|hmac|jwt|session(?:_?id)?|[_-]key|rlkey)|sig|sid|key|pass|pwd|pw|(?:temp)?auth|authorization|bearer|policy|sas"
    r"|hdnts|hdnea)=)[^&;#\s'\"<>]+",
    re.IGNORECASE,
)


def moment_of(text: object) -> datetime | None:
    """Return a time from ISO 8601 text, in UTC and as UTC if it has no offset; None if it is not a time.

    Example:
        >>> moment_of("2024-03-11T09:30:00+02:00").hour, moment_of("soon")
        (7, None)
    """
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (OverflowError, ValueError):  # an offset can lead out of the years 1 to 9999
        return None


def masked(text: str) -> str:
    """Replace each login and each secret query parameter in the URLs of a text, also relative ones, with "***".

    Example:
        >>> masked("no audio at https://ada:pw@b.example/a.mp3?v=1&X-Amz-Signature=ab12")
        'no audio at https://***@b.example/a.mp3?v=1&X-Amz-Signature=***'
    """
    text = _LOGIN.sub("***@", text) if "@" in text and "://" in text else text
    if "=" not in text or ("://" not in text and "?" not in text):  # "take #key=C.wav" is a file name
        return text
    return _SECRET.sub(r"\1***", text)


#: HTML attribute that keeps MathJax in a notebook page from rendering "$5 and $6" as a formula. MathJax 2 reads the
#: first class name, MathJax 3 the second.
PLAIN = 'class="tex2jax_ignore mathjax_ignore"'


def html_table(rows: Mapping[str, str], longest: int = 300) -> str:
    """Return names and values as an HTML table, readable in light and dark themes. All text is escaped.

    Example:
        >>> html_table({"text": "<b>", "error": ""}).removeprefix(f"<table {PLAIN}>")
        '<tr><th style="text-align:left">text</th><td style="text-align:left">&lt;b&gt;</td></tr></table>'
    """
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value if len(value) <= longest else value[:longest] + "…")}</td></tr>'
        for name, value in rows.items()
        if value
    )
    return f"<table {PLAIN}>{cells}</table>"


def sentences(words: Sequence[WordDict]) -> list[list[WordDict]]:
    """Group words into sentences, ordered by start time.

    A sentence ends at ".", "?", "!" or their like in other scripts, and at a change of speaker or channel. If no word
    of the transcript has such a mark, it ends at pauses of half a second. Channels are processed separately, so that
    overlapping speech does not split sentences.

    Example:
        >>> words = [{"text": t, "start": 0, "end": 1} for t in "Good morning. So what is it?".split()]
        >>> [" ".join(word["text"] for word in sentence) for sentence in sentences(words)]
        ['Good morning.', 'So what is it?']
    """
    marked = any(_closes(word) for word in words)
    channels: dict[Any, list[WordDict]] = {}
    for word in words:
        channels.setdefault(word.get("channel"), []).append(word)
    groups: list[list[WordDict]] = []
    for channel in channels.values():
        open_group = False
        for at, word in enumerate(channel):
            if open_group:
                groups[-1].append(word)
            else:
                groups.append([word])
            after = channel[at + 1] if at + 1 < len(channel) else None
            open_group = (
                after is not None
                and after.get("speaker") == word.get("speaker")
                and not (_closes(word) if marked else after["start"] - word["end"] >= _UNMARKED_PAUSE_MS)
            )
    return sorted(groups, key=lambda group: group[0]["start"])


def paragraphs(words: Sequence[WordDict]) -> list[list[WordDict]]:
    """Group words into paragraphs: consecutive sentences of one speaker on one channel.

    A new paragraph starts after a pause of 1.5 s; after 70 words, at the next pause of 0.4 s; after 120 words, at the
    next sentence.
    """
    groups: list[list[WordDict]] = []
    for sentence in sentences(words):
        if groups and _goes_on(groups[-1], sentence):
            groups[-1].extend(sentence)
        else:
            groups.append(list(sentence))
    return groups


def _closes(word: WordDict) -> bool:
    text = word["text"].rstrip("\"')]")
    return text.endswith(SENTENCE_ENDS) and text not in ABBREVIATIONS


def _goes_on(paragraph: Sequence[WordDict], sentence: Sequence[WordDict]) -> bool:
    last, first = paragraph[-1], sentence[0]
    if any(last.get(name) != first.get(name) for name in ("speaker", "channel")):
        return False
    pause = first["start"] - last["end"]
    if pause >= _PARAGRAPH_PAUSE_MS or len(paragraph) >= _LONGEST_PARAGRAPH:
        return False
    return len(paragraph) < _FULL_PARAGRAPH or pause < _FULL_PAUSE_MS
