"""Names of speakers before the text, in captions and plain text: one rule for all formats."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

from voxframe._text import PAUSE_MS, join_words, one_line, quantity, split_words
from voxframe.errors import PayloadWarning
from voxframe.formats.payload import SpokenTurn, SpokenWord
from voxframe.formats.result import Losses

# ruff: noqa: RUF001  names have typographic characters
_WORD = r"[^\W_a-z][\w.'’\-]*"
_PARTICLES = "de|del|der|da|di|du|la|le|el|al|bin|ibn|van|von|den|ten|ter|zu|of|and|&"
_LABEL = r"(?i:speaker|spkr?|participant|interviewer|interviewee|moderator|host|guest|question|answer)[ _\-]?\w*"
_NAME = rf"(?:{_LABEL}|{_WORD}(?: (?:{_WORD}|(?:{_PARTICLES})(?= )|\d+)){{0,5}}(?: \([^()]{{1,30}}\))?)"
#: A name and a colon at the beginning of a text, such as "Anna Smith: ", "[SPEAKER_00]: " or ">> ANNA: ".
PREFIX = re.compile(
    rf"^\s*(?:>+\s*|[-–—]\s+)?(?:\[([^\[\]\n]{{1,60}})\]\s*[:：]|({_NAME})\s?[:：]|\[((?i:speaker|spk)[ _]?\w*)\])"
    r"(?:\s+|$|(?<=：))"
)
#: A line of only a name and a time, as Otter, Rev and Microsoft Teams write before each turn.
HEADER = re.compile(rf"^\s*({_NAME})[\s,:]+[\[(]?((?:\d+:)?\d{{1,2}}:\d{{2}}(?:[.,]\d+)?)[\])]?:?\s*$")

OTHER_NAME = "texts that are read with another speaker, because they have none or begin like a name"


def are_names(texts: Sequence[str]) -> bool:
    """Return True if the prefixes of texts are names: one of them repeats, or half of the texts have one."""
    prefixes = [name for text in texts if (name := split_name(text)[0]) is not None]
    return bool(prefixes) and (len(set(prefixes)) < len(prefixes) or 2 * len(prefixes) >= len(texts))


def split_name(text: str, *, bare: bool = True) -> tuple[str | None, str]:
    """Split "Ann: Yes" into name and text; the name is None if there is none.

    Args:
        text: The text.
        bare: Also split names without brackets.

    Example:
        >>> split_name("[SPEAKER_00]: Good day"), split_name("at 10: 30")
        (('SPEAKER_00', 'Good day'), (None, 'at 10: 30'))
    """
    found = PREFIX.match(text)
    if found is None or (found[2] and not bare):
        return None, one_line(text)
    return one_line(found[1] or found[2] or found[3]) or None, one_line(text[found.end() :])


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
        named, last, wrong = are_names(lines), None, 0
        for line, (voice, text, _) in zip(lines, parts, strict=True):
            name, said = split_name(line, bare=named)
            last = name or (last if carry else None)
            wrong += last != voice or said != one_line(text)
        styles.append((wrong, lines))
    wrong, lines = min(styles, key=lambda pair: pair[0])
    losses[OTHER_NAME] += wrong
    return lines


def with_names(turns: Sequence[SpokenTurn], *, carry: bool) -> list[SpokenTurn]:
    """Return turns with the names before their texts as speakers. A name lasts until the next one.

    Args:
        turns: The turns in order. An empty text as speaker ends the name before it.
        carry: Give turns without a name the name before them, and warn how many these are.

    Warns:
        PayloadWarning: Turns have the name of a turn before.
    """
    named = are_names([turn.text for turn in turns if turn.speaker is None])
    found, name, carried = list[SpokenTurn](), None, 0
    for turn in turns:
        speaker, text = (turn.speaker, turn.text) if turn.speaker is not None else split_name(turn.text, bare=named)
        goes_on = speaker is None and name is not None and carry
        carried += goes_on
        name = name if goes_on else speaker or None
        words = turn.words if text == turn.text else ()
        placed = turn._replace(text=text, speaker=name, words=[word._replace(speaker=name) for word in words])
        if goes_on and found and _follows(found[-1], turn):
            found[-1] = _joined(found[-1], placed)
        elif text:
            found.append(placed)
    if carried:
        warnings.warn(
            f"{quantity(carried, 'caption or line', 'captions or lines')} of {len(turns)} without a speaker got the "
            "speaker before; voxframe.importers.converted(data, name, carry=False) leaves them without one",
            PayloadWarning,
            stacklevel=2,
        )
    return found


def _follows(before: SpokenTurn, turn: SpokenTurn) -> bool:
    """Return True if a caption without a speaker continues the turn before, without a pause."""
    return turn.start is not None and before.end is not None and 0 <= turn.start - before.end < PAUSE_MS


def _joined(before: SpokenTurn, turn: SpokenTurn) -> SpokenTurn:
    """Return two captions as one turn, whose words lie in their own captions."""
    words = [word for part in (before, turn) for word in _words(part)]
    return before._replace(text=join_words([before.text, turn.text]), end=turn.end, words=words)


def _words(turn: SpokenTurn) -> list[SpokenWord]:
    """Return the words of a caption, the first with its start and the last with its end."""
    words = list(turn.words) or [SpokenWord(text, speaker=turn.speaker) for text in split_words(turn.text)]
    words[0] = words[0]._replace(start=turn.start if words[0].start is None else words[0].start)
    words[-1] = words[-1]._replace(end=turn.end if words[-1].end is None else words[-1].end)
    return words
