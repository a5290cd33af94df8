"""Formats of text: captions and labels (SRT, WebVTT, SSA, TTML, Audacity), plain text, Markdown and Word.

Advanced SubStation Alpha is read by pysubs2. It reads TTML without speakers, frames and times relative to an element
around, so TTML has a reader here. `voxframe.formats.payload` has the rule for names before a text.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from itertools import zip_longest
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

from voxframe._text import one_line
from voxframe.errors import MissingExtraError, PayloadError, PayloadWarning
from voxframe.formats.payload import (
    CLOCK,
    NAME,
    SpokenTurn,
    SpokenWord,
    by_line,
    from_turns,
    ms,
    spellings,
    split_name,
    with_names,
    without_heading,
    xml_fields,
    xml_root,
)

# Of a fraction, which some tools leave out or write with more digits, only the milliseconds are read.
_TIME = r"(-?(?:\d+:)?\d{1,2}:\d{2}(?:[.,]\s?\d+|:\d{3})?)"
_TIMES = re.compile(rf"^\s*{_TIME}\s*(?:-->|,(?=\d+:))\s*{_TIME}")  # with a comma: SubViewer, of YouTube
_TAG = re.compile(r"</?[a-zA-Z][^>]*>|<\d[\d:.]*>|\{\\[^}]*\}")
#: Tags of players, and those of WebVTT that converters leave. SRT has no escapes, so other text in "<>" was said.
_SRT_TAG = re.compile(
    r"</?(?:(?:b|i|u|s|em|strong|span|font|ruby|rt|lang|c|v)(?:\.[\w.-]*)?|(?:font|span|lang|v)\s[^>]*)>"
    r"|<\d+:[\d:.]+>|\{\\[^}]*\}",
    re.IGNORECASE,
)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_CUE_NAME = re.compile(r'\d+ "([^"]+)"(?: \(\d+\))?$')
_STAMP = re.compile(r"<((?:\d+:)?\d{2}:\d{2}\.\d{3})>")
#: A voice tag, also after the dash that captions have before each of two speakers.
_VOICE = re.compile(r"(?:^[ \t]*[-–—][ \t]*)?<v(?:\.[^\s>]*)?\s+([^>]*)>", re.MULTILINE)  # noqa: RUF001
_SPAN = rf"{CLOCK}(?:\s*(?:-->|-|to)\s*{CLOCK})?"
#: A time: [0:01:15], (01:15), 00:01:15.20, a span, or #00:01:15-3# of MAXQDA and f4.
_TIME_MARK = rf"(?:[\[(]\s*{_SPAN}\s*[\])]:?|#{CLOCK}(?:-\d+)?#|{_SPAN}:?(?=\s|$))"
_SINCE = re.compile(rf"^\s*{_TIME_MARK}\s*(?:[-–—|]\s+)?")  # noqa: RUF001
_UNTIL = re.compile(rf"\s*(?:#{CLOCK}(?:-\d+)?#|\[{CLOCK}\])\s*$")
#: A line of only a name and a time, as Otter, Rev, Zoom and Microsoft Teams write before each turn.
_HEADER = re.compile(rf"(?:\[({NAME})\]|({NAME}))(?:[\s,:-]+|(?=[\[(])){_TIME_MARK}:?\s*$")
#: What can be a name on a line of its own, beside a line of only a time.
_ALONE = re.compile(r"\[?[^\W\d_][\w.'’\-]*(?: [\w'’\-&()]+){0,5}\]?:?")  # noqa: RUF001
#: Times as Microsoft Teams copies them: "1 hour 2 minutes 3 seconds".
_IN_WORDS = re.compile(r"(?=\d)(?:(\d+) hours?\s*)?(?:(\d+) minutes?\s*)?(?:(\d+) seconds?)?")
#: The last part of times such as 00:01:15.29.
_LAST_PART = re.compile(r"(?<=\d:\d{2}:\d{2})\.(\d{2})(?!\d)")
_MANY, _FRAMES_A_SECOND = 8, 30
_CREDIT = re.compile(r"Transcri(?:bed|pt|ption) by \S.{0,60}")
_LABEL = re.compile(r"^-?\d+(\.\d+)?\t-?\d+(\.\d+)?(\t|\r|$)", re.MULTILINE)


def srt(text: str, *, carry: bool = True) -> dict[str, Any]:
    """Read SRT. Names before the text are speakers; see `voxframe.formats.payload`. Tags are removed.

    Source: the SubRip documentation, https://wiki.videolan.org/SubRip. A cue ends where the next one begins, so its
    text may have blank lines.
    """
    turns = []
    lines = lines_of(text)
    at = [n for n, line in enumerate(lines) if _TIMES.match(line)]
    for n, until in zip(at, [*at[1:], len(lines) + 1], strict=True):
        numbered = until <= len(lines) and lines[until - 1].strip().isdigit()  # the number of the next cue
        spoken = by_line(_SRT_TAG.sub("", _BREAK.sub("\n", "\n".join(lines[n + 1 : until - numbered]))))
        if spoken and (times := _TIMES.match(lines[n])):
            settings = lines[n][times.end() :].strip()
            source = {"cue_settings": settings} if settings else None
            turns.append(SpokenTurn(spoken, _ms(times[1]), _ms(times[2]), source=source))
    return from_turns(with_names(turns, carry=carry))


def webvtt(text: str, *, carry: bool = True) -> dict[str, Any]:
    """Read WebVTT, with the starts of words after timestamps, such as <00:01.500>.

    Voice tags, names before the text and names in the identifiers of cues (`12 "Ann" (3)`, as Webex writes them) are
    speakers; see `voxframe.formats.payload`. `<v ->`, as Rev writes it, is a change to an unknown speaker. Identifiers
    and settings are kept with their cue, and other blocks (NOTE, STYLE, REGION) in "webvtt".

    In captions with timestamps that roll up, as those that YouTube generates, a cue begins with the lines of the cue
    before; these are read once. Source: W3C, "WebVTT: The Web Video Text Tracks Format".
    """
    turns, blocks = [], list[str]()
    visible, until = list[str](), -1
    rolls_up = _STAMP.search(text) is not None
    for cue in _cues(text):
        if isinstance(cue, str):
            blocks.append(cue)
            continue
        start, end, lines, source = cue
        plain = [line for line in map(_clean, lines) if line]
        overlaps = range(min(len(visible), len(plain)), 0, -1) if rolls_up and start <= until else ()
        repeated = next((n for n in overlaps if visible[-n:] == plain[:n]), 0)
        visible, until = plain or visible, end
        pieces = _VOICE.split("\n".join([line for line in lines if _clean(line)][repeated:]))
        named = _CUE_NAME.match(source.get("cue_id", ""))
        for speaker, spoken in zip([named and named[1], *pieces[1::2]], pieces[::2], strict=True):
            if clean := _clean(spoken):
                name = None if speaker is None else one_line(unescape(speaker))
                name = "" if name is not None and not any(map(str.isalnum, name)) else name
                turns.append(SpokenTurn(clean, start, end, name, _stamped(spoken, start, name), source=source or None))
    extra = {"webvtt": blocks} if blocks != ["WEBVTT"] else {}
    return extra | from_turns(with_names(turns, carry=carry))


def _clean(text: str) -> str:
    """Return the lines of a part of a cue without tags."""
    return by_line(unescape(_TAG.sub("", text)))


def _stamped(text: str, start: int, speaker: str | None) -> list[SpokenWord]:
    """Return the words of a cue with timestamps, or none. Only the first word after a timestamp has a known start."""
    first, *parts = _STAMP.split(text)
    words = list[SpokenWord]()
    if parts:
        chunks = [(start, first)] + [(_ms(at), chunk) for at, chunk in zip(parts[::2], parts[1::2], strict=True)]
        glued = False
        for at, chunk in chunks:
            plain = unescape(_TAG.sub("", chunk))
            for n, token in enumerate(plain.split()):
                if glued and n == 0 and not plain[0].isspace():
                    words[-1] = words[-1]._replace(text=words[-1].text + token)
                else:
                    words.append(SpokenWord(token, None if n else at, speaker=speaker))
            glued = bool(words) and not plain[-1:].isspace()
    return words


def audacity(text: str, *, carry: bool = False) -> dict[str, Any]:
    """Read an Audacity label track. Names before the text are speakers.

    Source: the manual of Audacity, "Importing and Exporting Labels". Lines with frequencies begin with a backslash.
    """
    turns = []
    for n, line in enumerate(lines_of(text), 1):
        if line.strip() and not line.startswith("\\"):
            if not is_labels(line):
                raise PayloadError(f"line {n} must be start, end and label, between tabs, but is {line.strip()[:60]!r}")
            start, end, *label = line.split("\t", 2)
            if spoken := one_line(" ".join(label)):
                turns.append(SpokenTurn(spoken, ms(start), ms(end)))
    return from_turns(with_names(turns, carry=carry))


class _Line(NamedTuple):
    """A line of plain text: its times in milliseconds, its speaker, and the rest of its text."""

    since: int | None
    until: int | None
    speaker: str | None
    text: str


def plain(text: str, *, carry: bool = True) -> dict[str, Any]:
    """Read plain text in which turns begin with a name, a time or both, in any order, on the same line or before it.

    Other lines continue the turn before. These are the layouts of InqScribe, MAXQDA, f4, Otter, Rev, Trint, Sonix,
    Descript, Zoom, Teams and others. If turns have names and times, what stands before the first is kept in "heading".
    """
    lines = [line.strip() for line in _with_frames(text).splitlines() if line.strip()]
    extra = {"credit": lines.pop()} if lines and _CREDIT.fullmatch(lines[-1]) else {}
    forms = spellings([_SINCE.sub("", line) for line in lines])
    turns = list[SpokenTurn]()
    for line in _with_name_lines([_line(line, forms) for line in lines]):
        last = turns[-1] if turns else None
        if last and line.since is None and line.speaker is None:
            turns[-1] = last = last._replace(text=one_line(f"{last.text} {line.text}"))
        elif last and not last.text and None in (last.start, line.since) and None in (last.speaker, line.speaker):
            start, end = (last.start, last.end) if line.since is None else (line.since, line.until)
            turns[-1] = SpokenTurn(line.text, start, end, last.speaker or line.speaker)
        else:
            turns.append(SpokenTurn(line.text, line.since, None, line.speaker))
        if line.until is not None:
            turns[-1] = turns[-1]._replace(end=line.until)
    extra |= without_heading(turns)
    return extra | from_turns(with_names([turn for turn in turns if turn.text], carry=carry))


def _with_frames(text: str) -> str:
    """Return a text with a colon before the frames of its times, [00:01:15.29], as InqScribe writes them with a point.

    Two digits after the point are frames if none of many times has more than 29: hundredths would have.
    """
    parts = [int(digits) for digits in _LAST_PART.findall(text)]
    if len(parts) < _MANY or max(parts) >= _FRAMES_A_SECOND:
        return text
    return _LAST_PART.sub(r":\1", text)


def _line(text: str, forms: Sequence[re.Pattern[str]]) -> _Line:
    """Return the times, the name and the rest of a line."""
    if in_words := _IN_WORDS.fullmatch(text):
        hours, minutes, seconds = (int(part or 0) for part in in_words.groups())
        return _Line(1000 * (3600 * hours + 60 * minutes + seconds), None, None, "")
    since = _SINCE.match(text)
    until = _UNTIL.search(text, since.end() if since else 0)
    if since is None and (header := _HEADER.match(text)):
        return _Line(*_clocks(text[header.end(1 if header[1] else 2) :]), one_line(header[1] or header[2]), "")
    start, end = _clocks(since[0]) if since else (None, None)
    spoken = text[since.end() if since else 0 : until.start() if until else len(text)]
    speaker, spoken = split_name(spoken, forms)
    if start is None and speaker is not None and (since := _SINCE.match(spoken)):
        (start, end), spoken = _clocks(since[0]), spoken[since.end() :]
    return _Line(start, _clocks(until[0])[0] if until else end, speaker, spoken)


def _with_name_lines(lines: Sequence[_Line]) -> list[_Line]:
    """Return the lines, with names that stand alone beside a time as speakers.

    They are before a text and on or after a line with a time, or between a text and a time. These are names if each
    occurs twice on average, and half of the times have one.
    """
    nothing = _Line(None, None, None, "")
    is_time = [line.since is not None and line.speaker is None and not line.text for line in lines]
    places = []
    for n, line in enumerate(lines):
        after = lines[n + 1] if n + 1 < len(lines) else nothing
        follows_text = after.since is None and after.speaker is None and after.text
        is_before = follows_text and (line.since is not None or is_time[n - 1 : n] == [True])
        is_between = is_time[n + 1 : n + 2] == [True] and line.since is None and is_time[n - 1 : n] != [True]
        if line.speaker is None and (is_before or is_between) and _ALONE.fullmatch(line.text):
            places.append(n)
    names = [lines[n].text.strip("[]:") for n in places]
    timed = sum(line.since is not None for line in lines)
    if 2 * len(set(names)) > len(names) or 2 * len(names) < timed:
        return list(lines)
    names_at = dict(zip(places, names, strict=True))
    return [line._replace(speaker=names_at[n], text="") if n in names_at else line for n, line in enumerate(lines)]


def _clocks(text: str) -> tuple[int | None, int | None]:
    """Return the first and the second time in a text in milliseconds."""
    times = [ms(time.replace("-", ".")) for time in re.findall(rf"{CLOCK}(?:-\d+(?![\d:]))?", text)]
    return times[0] if times else None, times[1] if len(times) > 1 else None


def is_labels(text: str) -> bool:
    """Return True if the first line is an Audacity label."""
    return _LABEL.match(text) is not None


def is_srt(text: str) -> bool:
    """Return True if one of the first three lines has the times of a cue."""
    return any(_TIMES.match(line) for line in lines_of(text.lstrip())[:3])


def _cues(text: str) -> Iterator[str | tuple[int, int, list[str], dict[str, str]]]:
    """Yield start, end, lines, and identifier and settings of each cue that has text, and other blocks as they are.

    A cue ends at an empty line or at the times of the next.
    """
    for block in re.split(r"\n{2,}", "\n".join(lines_of(text)).strip("\n")):
        lines = block.split("\n")
        at = [n for n, line in enumerate(lines) if _TIMES.match(line)]
        before = "\n".join(lines[: at[0]] if at else lines)
        if before and (not at or before.startswith("WEBVTT")):
            yield before
        for n, until in zip(at, [*at[1:], len(lines)], strict=False):
            texts = [part for part in lines[n + 1 : until] if part.strip()]
            if texts and (times := _TIMES.match(lines[n])):
                about = {"cue_id": before if n == at[0] else "", "cue_settings": lines[n][times.end() :].strip()}
                source = {name: value for name, value in about.items() if value}
                yield _ms(times[1]), _ms(times[2]), texts, source


def lines_of(text: str) -> list[str]:
    """Split at LF, CRLF and CR, but not at other characters, such as U+2028 in a text."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _ms(time: str) -> int:
    """Return the time of a cue, such as "1:02,5" or "-00:00:01.250", in milliseconds."""
    clock, fraction = re.findall(r"((?:\d+:)?\d{1,2}:\d{2})\D*(\d*)", time)[0]
    value = (ms(clock) or 0) + int(fraction[:3].ljust(3, "0"))
    return -value if time.startswith("-") else value


_OFFSET = re.compile(r"([\d.]+)(h|ms|m|s|f|t)")
_UNITS = {"h": 3_600_000.0, "m": 60_000.0, "s": 1000.0, "ms": 1.0}
_USED = frozenset({"begin", "end", "dur", "agent"})


def ass(text: str, *, carry: bool = True) -> dict[str, Any]:
    """Read ASS or SSA: the field Name is the speaker; comments, styles and effects are kept in `extra`.

    Raises:
        MissingExtraError: pysubs2 is not installed.
    """
    try:
        import pysubs2
    except ModuleNotFoundError:
        raise MissingExtraError("subtitles", "Reading .ass and .ssa files") from None
    document = pysubs2.SSAFile.from_string(text, format_="ass" if re.search(r"ScriptType:\s*v4\.00\+", text) else "ssa")
    turns, comments = list[SpokenTurn](), []
    for event in document:
        fields = {name: value for name, value in event.as_dict().items() if value not in ("", 0, False, "Dialogue")}
        spoken = by_line(event.plaintext)
        if event.is_comment or event.is_drawing or not spoken:
            comments.append(fields)
            continue
        extra = {name: value for name, value in fields.items() if name not in ("start", "end", "name", "text")}
        extra |= {"markup": event.text} if one_line(event.text) != one_line(spoken) else {}
        turns.append(SpokenTurn(spoken, event.start, event.end, event.name.strip() or None, source=extra))
    about = {"script_info": dict(document.info), "comments": comments}
    return {name: value for name, value in about.items() if value} | from_turns(with_names(turns, carry=carry))


def ttml(text: str, *, carry: bool = True) -> dict[str, Any]:
    """Read TTML or DFXP: a paragraph or a timed span is a turn, and `ttm:agent` its speaker.

    Timed spans of a paragraph with one word each, or hardly more, are its words. Source: W3C, "Timed Text Markup
    Language 2": times are relative to those of the element around, and may be in frames or ticks. If they would reach
    beyond that element, as in files of Apple, and absolute times would not, they are absolute.
    """
    root = xml_root(text)
    settings = _plain(root.attrib)
    people = {}
    for agent in (element for element in root.iter() if _tag(element) == "agent"):
        name = next((one_line("".join(inner.itertext())) for inner in agent if _tag(inner) == "name"), "")
        people[_plain(agent.attrib).get("id", "")] = name
    header = {_tag(element): xml_fields(element) for element in root if _tag(element) != "body"}
    bodies = [element for element in root if _tag(element) == "body"]
    absolute = {**settings, "times": "absolute"}
    if any(_overruns(body, settings, 0, math.inf) and not _overruns(body, absolute, 0, math.inf) for body in bodies):
        settings = absolute
    turns = [turn for body in bodies for turn in _spoken(body, settings, people, 0, None, None)]
    return {"header": header, **settings, **from_turns(with_names(turns, carry=carry))}


def _overruns(element: ET.Element, settings: Mapping[str, str], base: float, limit: float) -> bool:
    """Return True if the times of an element, or of one in it, would be outside of those of the element around."""
    begin, end = (_time(_plain(element.attrib).get(name), settings) for name in ("begin", "end"))
    offset = 0 if settings.get("times") == "absolute" else base
    start, stop = base if begin is None else offset + begin, limit if end is None else offset + end
    return not base <= start <= stop <= limit or any(_overruns(inner, settings, start, stop) for inner in element)


def _timed_words(element: ET.Element, settings: Mapping[str, str], base: int, speaker: str | None) -> list[SpokenWord]:
    """Return the words of a paragraph, if its timed spans have hardly more than one each."""
    words, spans = list[SpokenWord](), 0
    for inner in element.iter():
        fields, texts = _plain(inner.attrib), "".join(inner.itertext()).split()
        if (
            inner is element
            or "begin" not in fields
            or any("begin" in _plain(part.attrib) for part in [*inner.iter()][1:])
        ):
            continue
        begin, end = (_time(fields.get(name), settings) for name in ("begin", "end"))
        offset = 0 if settings.get("times") == "absolute" else base
        times = [None if time is None else offset + time for time in (begin, end)]
        spans += 1
        for n, text in enumerate(texts):
            start, stop = times[0] if n == 0 else None, times[1] if n == len(texts) - 1 else None
            words.append(SpokenWord(text, start, stop, speaker=speaker))
    is_whole = " ".join(word.text for word in words) == one_line(" ".join(element.itertext()))
    return words if is_whole and spans > 1 and len(words) < 2 * spans else []


def _spoken(
    element: ET.Element,
    settings: Mapping[str, str],
    people: Mapping[str, str],
    base: int,
    end: int | None,
    speaker: str | None,
) -> Iterator[SpokenTurn]:
    """Yield the turns in an element, given the time at which its own begin and its speaker."""
    fields = _plain(element.attrib)
    begin, until, length = (_time(fields.get(name), settings) for name in ("begin", "end", "dur"))
    if settings.get("times") == "absolute":
        start, until = base if begin is None else begin, None if until is None else until - base
    else:
        start = base + (begin or 0)
    if until is not None:
        end = base + until
    elif length is not None:
        end = start + length
    code = fields.get("agent")
    speaker = speaker if code is None else people.get(code.split()[0]) or code
    inside = [inner for inner in element.iter() if inner is not element]
    if _tag(element) == "p" and (words := _timed_words(element, settings, start, speaker)):
        source = {name: value for name, value in fields.items() if name not in _USED}
        yield SpokenTurn(one_line(" ".join(element.itertext())), start, end, speaker, words, source=source or None)
        return
    if _tag(element) in ("body", "div") or any("begin" in _plain(inner.attrib) for inner in inside):
        timed = None if begin is None and base == 0 and end is None else start
        texts = [element.text, *(inner.tail for inner in element)]
        for loose, inner in zip_longest(texts, element):
            if said := one_line(loose or ""):
                yield SpokenTurn(said, timed, end, speaker)
            if inner is not None:
                yield from _spoken(inner, settings, people, start, end, speaker)
        return
    for line in inside:
        if _tag(line) == "br":
            line.tail = f" {line.tail or ''}"
    if said := one_line("".join(element.itertext())):
        is_timed = begin is not None or base > 0 or end is not None
        source = {name: value for name, value in fields.items() if name not in _USED}
        yield SpokenTurn(said, start if is_timed else None, end, speaker, source=source or None)


def _time(text: str | None, settings: Mapping[str, str]) -> int | None:
    """Return a time expression in milliseconds."""
    if text is None:
        return None
    rate = float(settings.get("frameRate", 30))
    multiplier = settings.get("frameRateMultiplier", "1 1").split()
    rate *= float(multiplier[0]) / float(multiplier[-1])
    if match := _OFFSET.fullmatch(text):
        unit = {**_UNITS, "f": 1000 / rate, "t": 1000 / float(settings.get("tickRate", 1))}[match[2]]
        return round(float(match[1]) * unit)
    return ms(text, rate)


def _tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _plain(fields: Mapping[str, str]) -> dict[str, str]:
    """Return attributes without their namespaces."""
    return {name.rpartition("}")[2]: value for name, value in fields.items()}


_BOLD = re.compile(r"(?:\*\*|__)(.+?)(?:\*\*|__)")
_ESCAPE = re.compile(r"\\([^\w\s]|_)")
_MARKS = re.compile(r"^\s*(?:#{1,6}\s+|[-*+]\s+|>\s?)")
#: What follows a name in bold: a time in brackets or not, and a colon.
_HEAD = re.compile(rf"\s*(?:[\[(]?\s*({CLOCK})\s*[\])]?)?\s*(:)?\s*")
_ANY_TIME = re.compile(rf"[\[(]?\s*({CLOCK})\s*[\])]?")


def markdown(text: str, *, carry: bool = True) -> dict[str, Any]:
    """Read Markdown with one paragraph per turn, such as "**Ann** (0:00:01): Good day."."""
    paragraphs = []
    for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n")):
        line = _MARKS.sub("", one_line(block))
        bold = _BOLD.match(line)
        line_text = line[bold.end() :] if bold else line
        paragraphs.append((_unescaped(bold[1]) if bold else "", _unescaped(line_text)))
    return _of_paragraphs(paragraphs, text if not any(bold for bold, _ in paragraphs) else None, carry=carry)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(r"\1", text)


def has_speech(payload: Mapping[str, Any]) -> bool:
    """Return True if a turn has a speaker or a time."""
    return any(turn.get(name) is not None for turn in payload.get("utterances") or () for name in ("speaker", "start"))


def is_prose(text: str) -> bool:
    """Return True for Markdown without any speaker or time, such as notes beside transcripts."""
    with warnings.catch_warnings(action="ignore", category=PayloadWarning):
        return not has_speech(markdown(text))


def read_docx(data: bytes, *, carry: bool = True) -> dict[str, Any]:
    """Read a Word document with one paragraph per turn, and the speaker in bold at its beginning."""
    try:
        from docx import Document
    except ModuleNotFoundError:
        raise MissingExtraError("docx", "Reading .docx files") from None
    try:
        document = Document(io.BytesIO(data))
    except Exception as error:  # noqa: BLE001  of zipfile, lxml and python-docx
        raise PayloadError(f"not a Word document ({error}); check that the file is complete") from None
    paragraphs = []
    for paragraph in _inside(document):
        bold, plain = "", ""
        for run in paragraph.runs:
            if run.bold and not plain.strip():
                bold += run.text
            else:
                plain += run.text
        paragraphs.append((bold, plain))
    text = "\n".join(bold + plain for bold, plain in paragraphs)
    return _of_paragraphs(paragraphs, None if any(bold.strip() for bold, _ in paragraphs) else text, carry=carry)


def _inside(container: Any) -> Iterator[Any]:
    """Yield the paragraphs of a document or a cell, also those in tables."""
    for block in container.iter_inner_content():
        if hasattr(block, "rows"):
            cells = {cell._tc: cell for row in block.rows for cell in row.cells}  # a merged cell is there twice
            for cell in cells.values():
                yield from _inside(cell)
        else:
            yield block


def _of_paragraphs(paragraphs: list[tuple[str, str]], text: str | None, *, carry: bool) -> dict[str, Any]:
    """Return the payload of paragraphs with a beginning in bold, or else that of plain text."""
    if text is not None:
        return plain("\n".join(_unescaped(_MARKS.sub("", line)) for line in text.split("\n")), carry=carry)
    turns = list[SpokenTurn]()
    for bold, after_bold in paragraphs:
        head = _HEAD.match(after_bold)
        time = _ANY_TIME.search(bold) or (head if head and head[1] else None)
        is_named = bold.strip() and (bold.rstrip().endswith(":") or (head and head[2]) or time)
        if is_named or (not bold.strip() and head and head[1]):
            name = one_line(_ANY_TIME.sub("", bold)).strip(" :-–—") or None  # noqa: RUF001
            spoken = one_line(after_bold[head.end() if head else 0 :])
            turns.append(SpokenTurn(spoken, ms(time[1]) if time else None, None, name))
        elif spoken := one_line(bold + after_bold):
            turns.append(SpokenTurn(spoken))
    heading = without_heading(turns)
    return heading | from_turns(turn for turn in with_names(turns, carry=carry) if turn.text)
