"""Speech formats that are text: captions, documents, tab-separated values, and lines for NIST tools and Audacity.

RTTM: NIST Rich Transcription 2009 evaluation plan, appendix A. CTM and STM: the manual of NIST's sclite. Times are in
seconds. Spaces separate their fields, so spaces in a name or a label become `_`.
"""

from __future__ import annotations

import io
import operator
import re

import pandas as pd

from voxframe import _text
from voxframe._arrow import takes_frames
from voxframe._text import DEFAULT_CHARS, Cue, clock
from voxframe.errors import MissingExtraError
from voxframe.formats.payload import OTHER_NAME, with_prefixes
from voxframe.formats.writing import (
    LENGTHENED,
    PARTS,
    Losses,
    SpeechSegment,
    check_columns,
    counted,
    grouped,
    token,
    transcripts,
    turns,
    whole,
)
from voxframe.validators import Boolean, Integer, checked

_MARKUP = re.compile(r"([\\`*_\[\]<>&|~$#])")
_NONCHARACTERS = "texts or names with characters that a Word document cannot hold, written without them"
_TSV = ("transcript_id", "start_ms", "end_ms", "speaker", "speaker_name", "channel", "confidence", "text")
_EMPTY_CAPTIONS = "captions without a length, shown for 0.8 seconds"
_ESTIMATED = "captions that begin or end inside a row, at a time estimated from the number of letters"
_ARROWS = "captions with -->, written as \N{RIGHTWARDS ARROW}"
_UNESCAPED = "captions that a player may read as markup, because SRT has no escapes"
_MARKUP_OF_PLAYERS = re.compile(r"</?\s*[A-Za-z][^>]*>|\{\\")
_EMPTY_TURNS = "turns without a length, left out"
_NO_SPEAKER = "turns without a speaker, written as 'unknown'"
_SHARED_TIMES = "words of rows with several words, at times estimated from the number of letters"
_JOINED_TURNS = "turns after one of the same speaker, read as one turn with it"
_CODES = "turns with characters that readers of STM take for codes: braces, @ or a name of a pause"
_STM_CODES = re.compile(r"[{}]|(?<!\S)@(?!\S)|^(?:ignore_time_segment_in_scoring|inter_segment_gap)$", re.IGNORECASE)
_LABELS = "turns that begin with <, which would begin a label, written without it"


@takes_frames
def txt(df: pd.DataFrame, *, losses: Losses | None = None) -> str:
    r"""Return one transcript as plain text: one line per turn with its start, its speaker and its text.

    Args:
        df: Words, or turns (`voxframe.load_utterances`).
        losses: Counter for values that plain text cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing, or there is more than one transcript.

    Warns:
        ExportWarning: Plain text cannot hold a value.

    Example:
        >>> turns = pd.DataFrame({"text": ["Hi!", "Yes."], "start_ms": [0, 2000], "end_ms": [900, 2900]})
        >>> txt(turns.assign(transcript_id="t", speaker=["A", "B"]))
        '[0:00:00] A: Hi!\n[0:00:02] B: Yes.\n'
    """
    with counted(losses, "txt") as lost:
        found = _turns(df, "txt", lost)
        texts = with_prefixes([(s.voice, s.text, True) for s in found], lost, carry=True)
        lines = zip(found, texts, strict=True)
        return "".join(f"{f'[{_start(s)}] ' if s.timed else ''}{text}\n" for s, text in lines)


@takes_frames
def md(df: pd.DataFrame, *, losses: Losses | None = None) -> str:
    r"""Return one transcript as Markdown: one paragraph per turn. Characters with a meaning in Markdown are escaped.

    Args:
        df: Words, or turns.
        losses: Counter for values that Markdown cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing, or there is more than one transcript.

    Warns:
        ExportWarning: Markdown cannot hold a value.

    Example:
        >>> words = pd.DataFrame({"transcript_id": "t", "text": ["2*3?"], "start_ms": 0, "end_ms": 9, "speaker": "A"})
        >>> print(md(words), end="")
        **A** (0:00:00): 2\*3?
    """
    with counted(losses, "md") as lost:
        found = _turns(df, "md", lost)
        _count_unnamed(found, lost)
        return "\n".join(
            f"{f'**{_escaped(s.voice)}**{_blank(s)}' if s.voice else ''}{_mark(s)}{_escaped(s.text)}\n" for s in found
        )


@takes_frames
def docx(df: pd.DataFrame, *, losses: Losses | None = None) -> bytes:
    """Return one transcript as a Word document: one paragraph per turn, with the speaker in bold and the start.

    Args:
        df: Words, or turns.
        losses: Counter for values that a document cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing, or there is more than one transcript.
        MissingExtraError: python-docx is not installed.

    Warns:
        ExportWarning: A document cannot hold a value.
    """
    try:
        from docx import Document
    except ModuleNotFoundError:
        raise MissingExtraError("docx", "Export to .docx") from None
    document = Document()
    with counted(losses, "docx") as lost:

        def held(text: str) -> str:
            plain = re.sub("[\ufffe\uffff]", "", text)
            lost[_NONCHARACTERS] += plain != text
            return plain

        found = _turns(df, "docx", lost)
        _count_unnamed(found, lost)
        for s in found:
            paragraph = document.add_paragraph()
            if s.voice:
                paragraph.add_run(f"{held(s.voice)}{_blank(s)}").bold = True
            paragraph.add_run(f"{_mark(s)}{held(s.text)}")
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


@takes_frames
def tsv(df: pd.DataFrame, *, losses: Losses | None = None) -> str:
    r"""Return rows with times in milliseconds as tab-separated values with a header, for any number of transcripts.

    A null is an empty field. A text with a quotation mark, a tab or a line end is quoted, as spreadsheets and pandas
    expect.

    Args:
        df: Words, or longer rows.
        losses: Counter for turns that TSV cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing.

    Warns:
        ExportWarning: Words of several turns of one speaker in a row are read as one turn.

    Example:
        >>> tsv(pd.DataFrame({"transcript_id": "t", "text": ["Hi!"], "start_ms": 0, "end_ms": 400}))
        'transcript_id\tstart_ms\tend_ms\ttext\nt\t0\t400\tHi!\n'
    """
    check_columns(df, "tsv")
    with counted(losses, "tsv") as lost:
        lost[_JOINED_TURNS] += _joined_turns(df)
    return df[[name for name in _TSV if name in df.columns]].to_csv(sep="\t", index=False, lineterminator="\n")


def _joined_turns(df: pd.DataFrame) -> int:
    """Return the number of turns of words that follow a turn of the same speaker, or of nobody."""
    if not {"word_idx", "utterance_idx"} <= {*df.columns}:
        return 0
    who = df[[name for name in ("transcript_id", "speaker", "speaker_name", "channel") if name in df]]
    is_same = (who.eq(who.shift()) | (who.isna() & who.shift().isna())).all(axis=1)
    turn = df["utterance_idx"]
    return int((is_same & turn.notna() & turn.shift().notna() & turn.ne(turn.shift()).fillna(False)).sum())


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)


def _turns(df: pd.DataFrame, purpose: str, losses: Losses) -> list[SpeechSegment]:
    found = turns(whole(df, purpose, losses))
    return sorted(found, key=lambda s: s.start) if all(s.timed for s in found) else found


def _count_unnamed(found: list[SpeechSegment], losses: Losses) -> None:
    """Count turns without a speaker after one with a speaker, which readers give to that speaker."""
    first = next((n for n, s in enumerate(found) if s.voice), len(found))
    losses[OTHER_NAME] += sum(s.voice is None for s in found[first:])


def _mark(segment: SpeechSegment) -> str:
    """Return what stands between the speaker and the text: the start, if it is known, and a colon."""
    return f"({_start(segment)}): " if segment.timed else ": " if segment.voice else ""


def _blank(segment: SpeechSegment) -> str:
    return " " if segment.timed else ""


def _start(segment: SpeechSegment) -> str:
    return clock(segment.start // 1000, hours=True)


@takes_frames
def srt(df: pd.DataFrame, *, chars: int = DEFAULT_CHARS, speakers: bool = True, losses: Losses | None = None) -> str:
    """Return captions of one transcript as SRT.

    A caption contains words of one speaker from the start of its first word on, at least 0.8 seconds unless the next
    one of the same speaker begins, and until it can be read at 17 characters per second if the speech allows. It lasts
    at most 7 seconds, if no word is then alone. An interjection of another speaker does not cut a sentence that goes
    on within a second: both are shown at the same time. Long captions have two lines of similar length. A word without
    times is shown next to the nearest word of the same speaker. SRT has no field for the speaker, so each turn, and
    each caption after one of another speaker, starts with the name. SRT has no escapes either: `-->` in the text is
    written as one character, so that no parser reads the line as a timestamp.

    Args:
        df: Words (`voxframe.load_words`), or longer rows, each of which becomes one or more captions.
        chars: Maximum number of characters in a caption, without the name. With more than two lines of 42, captions
            may last longer than 7 seconds in proportion.
        speakers: Include the names of the speakers.
        losses: Counter for values that SRT cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing, or there is more than one transcript.

    Warns:
        ExportWarning: SRT cannot hold a value.

    Example:
        >>> turns = pd.DataFrame({"text": ["Hi!", "Yes."], "start_ms": [0, 2000], "end_ms": [400, 2900]})
        >>> print(srt(turns.assign(transcript_id="t", speaker=["A", "B"])), end="")
        1
        00:00:00,000 --> 00:00:00,800
        A: Hi!
        <BLANKLINE>
        2
        00:00:02,000 --> 00:00:02,900
        B: Yes.
    """
    checked("speakers", speakers, Boolean())
    with counted(losses, "srt") as lost:
        found = _captions(df, "srt", chars, lost, prefixes=speakers)
        captions = [cue for cue, _ in found]
        if speakers:
            before = [None, *(cue.speaker for cue in captions)]
            is_named = [begins or cue.speaker != last for (cue, begins), last in zip(found, before, strict=False)]
            lost[PARTS] += sum(map(operator.ne, is_named, (begins for _, begins in found)))
            parts = [(cue.speaker, cue.text, named) for cue, named in zip(captions, is_named, strict=True)]
            texts = with_prefixes(parts, lost, carry=True)
            captions = [cue._replace(text=text) for cue, text in zip(captions, texts, strict=True)]
        lost[_ARROWS] += sum("-->" in cue.text for cue in captions)
        lost[_UNESCAPED] += sum(_MARKUP_OF_PLAYERS.search(cue.text) is not None for cue in captions)
        return _text.srt(_shown(captions, lost))


@takes_frames
def vtt(df: pd.DataFrame, *, chars: int = DEFAULT_CHARS, speakers: bool = True, losses: Losses | None = None) -> str:
    """Return captions of one transcript as WebVTT, with the speaker of each as a voice tag (`<v Name>`).

    Args:
        df: Words or longer rows, as for `srt`.
        chars: Maximum number of characters in a caption.
        speakers: Include the names of the speakers.
        losses: Counter for values that WebVTT cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing, or there is more than one transcript.

    Warns:
        ExportWarning: WebVTT cannot hold a value.
    """
    checked("speakers", speakers, Boolean())
    with counted(losses, "vtt") as lost:
        found = _captions(df, "vtt", chars, lost)
        lost[PARTS] += sum(not begins for _, begins in found)
        captions = _shown([cue for cue, _ in found], lost)
        if not speakers:
            captions = [cue._replace(speaker=None) for cue in captions]
        first = next((n for n, cue in enumerate(captions) if cue.speaker), len(captions))
        lost[OTHER_NAME] += sum(cue.speaker is None for cue in captions[first:])
        return _text.vtt(captions)


def _captions(
    df: pd.DataFrame, purpose: str, chars: int, losses: Losses, *, prefixes: bool = False
) -> list[tuple[Cue, bool]]:
    """Return captions by start time, each with True if it is the first of its turn, which may have a prefix."""
    chars = checked("chars", chars, Integer(1))
    found: list[tuple[Cue, bool]] = []
    segments = whole(df, purpose, losses)
    places = {segment.row: place for place, segment in enumerate(segments)}
    for run in grouped(segments, is_sentence_whole=True):
        words = (Cue(s.text, s.start, s.end) for s in run)
        prefix = f"[{run[0].voice}]: " if prefixes and run[0].voice else ""
        is_interrupted = places[run[-1].row] - places[run[0].row] >= len(run)
        captions = _text.cues(words, chars, run[0].voice, prefix, is_repeated=is_interrupted)
        found += [(cue, n == 0) for n, cue in enumerate(captions)]
    found.sort(key=lambda pair: pair[0].start)
    losses[_ESTIMATED] += sum(cue.estimated for cue, _ in found)
    losses[_EMPTY_CAPTIONS] += sum(cue.end <= cue.start for cue, _ in found)
    return found


def _shown(captions: list[Cue], losses: Losses) -> list[Cue]:
    """Return captions that are shown long enough to be read."""
    shown = [*_text.readable(captions)]
    losses[LENGTHENED] += sum(
        cue.end > cue.start and (cue.start, cue.end) != (before.start, before.end)
        for cue, before in zip(shown, captions, strict=True)
    )
    return shown


@takes_frames
def rttm(df: pd.DataFrame, *, losses: Losses | None = None) -> str:
    r"""Return who speaks when as RTTM: one line per turn, for any number of transcripts.

    A turn without a speaker has the speaker `unknown`. Rows without times are left out.

    Args:
        df: Words, or turns (`voxframe.load_utterances`).
        losses: Counter for values that RTTM cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing.

    Warns:
        ExportWarning: RTTM cannot hold a value.

    Example:
        >>> words = pd.DataFrame({"transcript_id": "t", "text": ["Hi!"], "start_ms": 50, "end_ms": 450, "speaker": "A"})
        >>> rttm(words)
        'SPEAKER t 1 0.050 0.400 <NA> <NA> A <NA> <NA>\n'
    """
    lines = []
    with counted(losses, "rttm") as lost:
        for name, segments in transcripts(df, "rttm", lost, untimed=False):
            for s in turns(segments):
                if s.end == s.start:
                    lost[_EMPTY_TURNS] += 1
                    continue
                times = f"{_seconds(s.start)} {_seconds(s.end - s.start)}"
                lines.append(f"SPEAKER {_place(name, s, lost)} {times} <NA> <NA> {_speaker(s, lost)} <NA> <NA>\n")
    return "".join(lines)


@takes_frames
def ctm(df: pd.DataFrame, *, losses: Losses | None = None) -> str:
    """Return words with times and confidences as CTM, sorted by transcript, channel and time.

    Rows without times are left out.

    Args:
        df: Words. Longer rows are split into words, which share the time by their number of letters.
        losses: Counter for values that CTM cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing.

    Warns:
        ExportWarning: CTM cannot hold a value.
    """
    lines = []
    with counted(losses, "ctm") as lost:
        for name, segments in sorted(transcripts(df, "ctm", lost, untimed=False)):
            for s in sorted(segments, key=lambda s: (s.channel, s.start)):
                confidence = "" if s.confidence is None else f" {s.confidence!r}"
                words = s.text.split()
                if len(words) > 1:
                    lost[_SHARED_TIMES] += len(words)
                letters = sum(map(len, words))
                begin = 0
                for word in words:
                    start, end = (s.start + (s.end - s.start) * n // letters for n in (begin, begin + len(word)))
                    begin += len(word)
                    times = f"{_seconds(start)} {_seconds(end - start)}"
                    lines.append(f"{_place(name, s, lost)} {times} {word}{confidence}\n")
    return "".join(lines)


@takes_frames
def stm(df: pd.DataFrame, *, losses: Losses | None = None) -> str:
    """Return who says what when as STM: one line per turn, for any number of transcripts.

    A turn without a speaker has the speaker `unknown`. A `<` at the beginning of a text is removed, because it would
    start a label.

    Args:
        df: Words, or turns.
        losses: Counter for values that STM cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing.

    Warns:
        ExportWarning: STM cannot hold a value.
    """
    lines = []
    with counted(losses, "stm") as lost:
        for name, segments in sorted(transcripts(df, "stm", lost)):
            for s in sorted(turns(segments), key=lambda s: (s.channel, s.start)):
                text = s.text.lstrip("< ")
                if text != s.text:
                    lost[_LABELS] += 1
                lost[_CODES] += _STM_CODES.search(text) is not None
                times = f"{_seconds(s.start)} {_seconds(s.end)}"
                lines.append(f"{_place(name, s, lost)} {_speaker(s, lost)} {times} {text}".rstrip() + "\n")
    return "".join(lines)


@takes_frames
def audacity(df: pd.DataFrame, *, losses: Losses | None = None) -> str:
    """Return turns of one transcript as an Audacity label track (File, Import, Labels).

    Each line has start, end and text, separated by tabs.

    Args:
        df: Words, or turns.
        losses: Counter for values that a label cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing, or there is more than one transcript.

    Warns:
        ExportWarning: A label cannot hold a value.
    """
    with counted(losses, "audacity") as lost:
        found = turns(whole(df, "audacity", lost))
        texts = with_prefixes([(s.voice, s.text, True) for s in found], lost, carry=False)
        lines = zip(found, texts, strict=True)
        return "".join(f"{_seconds(s.start)}\t{_seconds(s.end)}\t{text}\n" for s, text in lines)


def _place(name: str, segment: SpeechSegment, losses: Losses) -> str:
    return f"{token(name, losses)} {token(segment.channel, losses)}"


def _speaker(segment: SpeechSegment, losses: Losses) -> str:
    if segment.voice is None:
        losses[_NO_SPEAKER] += 1
        return "unknown"
    return token(segment.voice, losses)


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.3f}"
