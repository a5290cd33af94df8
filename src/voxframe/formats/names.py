"""Names of speakers before the text, in captions and plain text: one rule for all formats."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from voxframe._text import PAUSE_MS, join_words, one_line, quantity, split_words
from voxframe.errors import PayloadWarning, caller
from voxframe.formats.payload import SpokenTurn, SpokenWord
from voxframe.formats.result import Losses

# ruff: noqa: RUF001  names have typographic characters
_WORD = r"[^\W_a-z][\w.'’\-]*"
_PARTICLES = "de|del|der|da|di|du|la|le|el|al|bin|ibn|van|von|den|ten|ter|zu|of|and|&"
_LABEL = r"(?i:speaker|spkr?|participant|interviewer|interviewee|moderator|host|guest|question|answer)[ _\-]?\w*"
#: A capitalised name, or a label such as "speaker 1".
NAME = rf"(?:{_LABEL}|{_WORD}(?: (?:{_WORD}|(?:{_PARTICLES})(?= )|\d+)){{0,5}}(?: \([^()]{{1,30}}\))?)"
#: A time in plain text.
CLOCK = r"(?:\d+:\d{1,2}:\d{1,2}(?:[:;]\d{2}(?!\d))?|\d{1,2}:\d{2})(?:[.,]\d+)?"
#: Marks of a change of speaker.
_CHANGE = r"^\s*(?:>+\s*|[-–—]\s*)?"
_END = r"(?:\s+|$|(?<=：))"
#: Spellings of a name before a text: "[SPEAKER_00]: x", "Anna Smith: x", "(Anna) x", "anna: x", "Anna:x",
#: "Anna [0:01] x".
_SPELLINGS = {
    "label": re.compile(rf"{_CHANGE}(?:\[([^\[\]\n]{{1,60}})\]\s*[:：]|\[((?i:speaker|spk)[ _]?\w*)\]){_END}"),
    "colon": re.compile(rf"{_CHANGE}({NAME})\s?[:：]{_END}"),
    "bracket": re.compile(rf"{_CHANGE}[\[(]([^\W\d_][^\[\]()\n]{{0,40}})[\])]\s*[:：]?\s+(?=\S)"),
    "lower": re.compile(rf"{_CHANGE}([^\W\d_][\w.'’\-]*(?: [\w.'’\-]+){{0,3}})\s?:{_END}"),
    "timed": re.compile(rf"{_CHANGE}({NAME})(?=\s*[\[(]\s*{CLOCK}\s*[\])]:?\s+\S)\s*"),
    "tight": re.compile(rf"{_CHANGE}({NAME}):(?=[^\W\d])"),
}
_USUAL = (_SPELLINGS["label"], _SPELLINGS["colon"])
#: Any characters before a colon, but for "(Anna):".
_PREFIX = re.compile(rf"{_CHANGE}(?![\[(][^\[\]()]*[\])]\s*[:：])(\S[^:：\n]{{0,79}}?)\s?[:：]{_END}")
_UNNAMED = re.compile(r"^\s*>{2,}\s*")
_DASH = re.compile(r"^\s*[-–—]\s*(?=\S)")
_MANY = 6  # labels
OTHER_NAME = "texts that are read with another speaker, because they have none or begin like a name"


def spellings(texts: Sequence[str], size: int | None = None) -> tuple[re.Pattern[str], ...]:
    """Return the spellings of names before texts, such as the lines of captions; `size` is the number of captions.

    Other spellings than labels and names with a colon count if a quarter of the texts have them, and each name occurs
    twice on average: "(laughs)" and "note:" are no names.
    """
    forms, size = [_SPELLINGS["label"]], size or len(texts)
    for spelling in (*list(_SPELLINGS)[1:],):
        open_texts = [text for text in texts if not split_name(text, forms)[0]]
        if spelling == "colon":
            if names := _before_colons(open_texts, size):
                forms.append(re.compile(rf"{_CHANGE}({'|'.join(map(re.escape, names))})\s?[:：]{_END}"))
            continue
        found = [match[1] for text in open_texts if (match := _SPELLINGS[spelling].match(text))]
        if found and 2 * len(set(found)) <= len(found) and 4 * len(found) >= size:
            forms.append(_SPELLINGS[spelling])
    return tuple(forms)


def _prefixes(texts: Sequence[str]) -> Counter[str]:
    """Count what can be a name before a colon: capitalised names, and others that repeat or if each text has one."""
    counts = Counter(match[1] for text in texts if (match := _PREFIX.match(text)))
    names = {match[1] for text in texts if (match := _SPELLINGS["colon"].match(text))}
    is_everywhere = counts.total() == len(texts)
    for prefix, count in list(counts.items()):
        if prefix not in names and (_is_sentence(prefix) or not (is_everywhere or count > 1)):
            del counts[prefix]
    return counts


def _is_sentence(prefix: str) -> bool:
    """Return True if a prefix begins with a word in lower case, which is no address."""
    first = prefix.split(maxsplit=1)[0]
    return first[0].islower() and re.fullmatch(r"[\w'’\-]+", first) is not None


def _before_colons(texts: Sequence[str], size: int) -> set[str]:
    """Return the names before colons.

    Prefixes that repeat are names if a quarter of the texts have a prefix, or a twentieth if two of them repeat, or a
    fiftieth if these stand where the speaker changes: none twice in a row. Others are names beside them, written alike,
    if half of the texts have a prefix, or if all are in capitals. If none repeats, two are needed.
    """
    counts = _prefixes(texts)
    repeated = {prefix for prefix, count in counts.items() if count > 1}
    total = counts.total()
    marked = [match[1] for text in texts if (match := _PREFIX.match(text)) and match[1] in repeated]
    is_at_changes = len(marked) >= _MANY and all(one != other for one, other in pairwise(marked))
    rarest = 4 if len(repeated) < 2 else 50 if is_at_changes else 20
    names = repeated if rarest * total >= size else set[str]()
    if names and all(map(str.isupper, names)):
        names |= {prefix for prefix in counts if prefix.isupper()}
    if total > 1 and 2 * total >= size:
        is_upper = [prefix.isupper() for prefix in repeated]
        names |= {prefix for prefix in counts if not repeated or prefix.isupper() in is_upper}
    return names


def split_name(text: str, forms: Sequence[re.Pattern[str]] = _USUAL) -> tuple[str | None, str]:
    """Split "Ann: Yes" into name and text. The name is None if there is none, and "" after ">>", another speaker.

    Example:
        >>> split_name("[SPEAKER_00]: Good day"), split_name("at 10: 30")
        (('SPEAKER_00', 'Good day'), (None, 'at 10: 30'))
    """
    for form in forms:
        if match := form.match(text):
            return one_line(next(filter(None, match.groups()))) or None, one_line(text[match.end() :])
    spoken = _UNNAMED.sub("", text)
    return None if spoken == text else "", one_line(spoken)


def by_line(text: str) -> str:
    """Return a text with each of its lines on one line, without empty ones."""
    return "\n".join(filter(None, map(one_line, text.split("\n"))))


def with_prefixes(parts: Sequence[tuple[str | None, str, bool]], losses: Losses, *, carry: bool) -> list[str]:
    """Return texts with names before them, in brackets if readers would not find the names otherwise.

    Args:
        parts: Speaker and text, and True for those that begin a turn: only these have the name.
        losses: Counter for parts that are read with another speaker.
        carry: Readers give texts without a name the name before.
    """
    styles = []
    odd = {voice for voice, _, _ in parts if voice and split_name(f"{voice}: x")[0] != voice}
    for bracketed in (set[str](), odd, {voice for voice, _, _ in parts if voice}):
        before = {voice: f"[{voice}]: " if voice in bracketed else f"{voice}: " for voice, _, _ in parts if voice}
        lines = [f"{before[voice]}{text}" if voice and begins else text for voice, text, begins in parts]
        forms, last, wrong = spellings(lines), None, 0
        for line, (voice, text, _) in zip(lines, parts, strict=True):
            name, spoken = split_name(line, forms)
            last = last if carry and name is None else name or None
            wrong += last != voice or spoken != one_line(text)
        styles.append((wrong, lines))
    wrong, lines = min(styles, key=lambda pair: pair[0])
    losses[OTHER_NAME] += wrong
    return lines


def with_names(turns: Sequence[SpokenTurn], *, carry: bool) -> list[SpokenTurn]:
    """Return turns with the names before their texts as speakers. A name lasts until the next one.

    Each line of a text that begins with a name, and each of several with a dash, is a turn with the times of the
    whole. A name does not last past a text with a prefix that repeats, but is not read as a name.

    Args:
        carry: Give turns without a name the name before them, and warn how many these are.
    """
    lines = [line for turn in turns if turn.speaker is None for line in turn.text.split("\n")]
    forms, prefixes = spellings(lines, len(turns)), _prefixes(lines)
    named, name, carried = list[SpokenTurn](), None, 0
    parts = [part for turn in turns for part in _parts(turn, forms)]
    for turn in parts:
        speaker, text = turn.speaker, turn.text
        is_other = (prefix := _PREFIX.match(text)) is not None and prefixes[prefix[1]] > 1
        goes_on = speaker is None and name is not None and carry and not is_other
        carried += goes_on
        name = name if goes_on else speaker or None
        placed = turn._replace(speaker=name, words=[word._replace(speaker=name) for word in turn.words])
        if goes_on and named and _follows(named[-1], turn):
            named[-1] = _joined(named[-1], placed)
        elif text:
            named.append(placed)
    if carried:
        warnings.warn(
            f"{quantity(carried, 'caption or line', 'captions or lines')} of {len(parts)} without a speaker got the "
            "speaker before; voxframe.importers.converted(data, name, carry=False) leaves them without one",
            PayloadWarning,
            stacklevel=caller(),
        )
    return named


def without_heading(turns: list[SpokenTurn]) -> dict[str, str]:
    """Remove a text without name and time before turns with both, and return it as the field "heading"."""
    is_headed = any(turn.speaker is not None and turn.start is not None for turn in turns)
    return {"heading": turns.pop(0).text} if is_headed and (turns[0].speaker, turns[0].start) == (None, None) else {}


def _parts(turn: SpokenTurn, forms: Sequence[re.Pattern[str]]) -> Iterator[SpokenTurn]:
    """Yield the parts of a turn that begin with a name or a dash, with the name as speaker."""
    if turn.speaker is not None:
        yield turn._replace(text=one_line(turn.text))
        return
    lines = turn.text.split("\n")
    is_dialogue = sum(_DASH.match(line) is not None for line in lines) > 1
    parts = list[tuple[str | None, str]]()
    for line in lines:
        name, spoken = split_name(line, forms)
        if name is None and is_dialogue and (dash := _DASH.match(line)):
            name, spoken = "", one_line(line[dash.end() :])
        if name is None and parts:
            parts[-1] = parts[-1][0], one_line(f"{parts[-1][1]} {spoken}")
        else:
            parts.append((name, spoken))
    for name, spoken in parts:
        is_whole = len(parts) == 1 and spoken == one_line(turn.text)
        yield turn._replace(text=spoken, speaker=name, words=turn.words if is_whole else ())


def _follows(before: SpokenTurn, turn: SpokenTurn) -> bool:
    """Return True if a caption without a speaker continues the turn before, without a pause."""
    return turn.start is not None and before.end is not None and 0 <= turn.start - before.end < PAUSE_MS


def _joined(before: SpokenTurn, turn: SpokenTurn) -> SpokenTurn:
    """Return two captions as one turn, whose words lie in their own captions."""
    words = [word for part in (before, turn) for word in _words(part)]
    sources = [cue for part in (before, turn) if part.source for cue in part.source.get("cues", [part.source])]
    source = {"cues": sources} if sources else None
    return before._replace(text=join_words([before.text, turn.text]), end=turn.end, words=words, source=source)


def _words(turn: SpokenTurn) -> list[SpokenWord]:
    """Return the words of a caption, the first with its start and the last with its end."""
    words = list(turn.words) or [SpokenWord(text, speaker=turn.speaker) for text in split_words(turn.text)]
    words[0] = words[0]._replace(start=turn.start if words[0].start is None else words[0].start)
    words[-1] = words[-1]._replace(end=turn.end if words[-1].end is None else words[-1].end)
    return words
