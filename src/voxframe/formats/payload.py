"""Payloads of the interface from words and turns, for all readers; and names of speakers that stand before the text.

Values that a format does not have are null.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple, TypeVar
from xml.etree import ElementTree as ET

from voxframe._text import PAUSE_MS, join_words, one_line, quantity, split_words
from voxframe.errors import PayloadError, PayloadWarning, caller
from voxframe.formats.writing import Losses
from voxframe.options import LANGUAGES
from voxframe.schema import TABLES

#: Fields of payloads that an unknown field of another format must not replace.
_ITEM = frozenset({"text", "start", "end", "confidence", "speaker", "channel", "words"})
WHOLE = frozenset(re.split(r"[.\[]", column.path)[0] for t in TABLES.values() for column in t.columns if column.path)


class Fields(dict[str, Any]):
    """A JSON object that remembers which of its fields were read, so that the others can be kept."""

    __slots__ = ("kept", "read")

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__({name: tracked(value) for name, value in fields.items()})
        self.read, self.kept = set[str](), False

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field, and remember that it was read."""
        self.read.add(name)
        return super().get(name, default)

    def rest(self) -> dict[str, Any]:
        """Return the fields that were not read, at every level; of lists, the items that have some."""
        self.kept = True
        values = {}
        for name, value in self.items():
            other = _rest(value) if name in self.read else value
            if name not in self.read or other:
                values[name] = other
        return values


def tracked(value: Any) -> Any:
    """Return JSON in which all objects are `Fields`."""
    if isinstance(value, Mapping):
        return Fields(value)
    return [tracked(item) for item in value] if isinstance(value, list) else value


def _rest(value: Any) -> Any:
    if isinstance(value, Fields):
        return None if value.kept else value.rest()
    return [other for item in value if (other := _rest(item))] if isinstance(value, list) else None


def unread(source: Mapping[str, Any] | None, *, of_item: bool) -> dict[str, Any]:
    """Return the unread fields of an object; those with the name of a field of a payload are in "source"."""
    if not isinstance(source, Fields):
        return dict(source or {})
    if source.kept:
        return {}
    reserved = _ITEM if of_item else WHOLE
    fields = source.rest()
    extra = {name: value for name, value in fields.items() if name not in reserved}
    hidden = {name: value for name, value in fields.items() if name in reserved and value is not None}
    return extra | ({"source": hidden} if hidden else {})


def xml_root(text: str) -> ET.Element:
    """Return the root of an XML document. One that defines entities, which could fill the memory, is refused."""
    if re.search(r"<!DOCTYPE[^>]*\[", text):
        raise PayloadError("the XML has entities of its own, which are not read; remove [...] from <!DOCTYPE ...>")
    return ET.fromstring(re.sub(r"<\?xml[^>]*\?>|<!DOCTYPE[^>]*>", "", text).strip())  # noqa: S314


def xml_fields(element: ET.Element) -> dict[str, Any]:
    """Return an XML element as JSON: attributes, text, and elements inside by name, without namespaces."""
    fields: dict[str, Any] = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
    if (element.text or "").strip():
        fields["text"] = (element.text or "").strip()
    for inner in element:
        if isinstance(inner.tag, str):
            fields.setdefault(inner.tag.rpartition("}")[2], []).append(xml_fields(inner))
    return fields


class SpokenWord(NamedTuple):
    """A word, with its times in milliseconds. Unknown values are None. `source` is the object that it was read from."""

    text: str
    start: int | None = None
    end: int | None = None
    confidence: float | None = None
    speaker: str | None = None
    channel: str | None = None
    source: Mapping[str, Any] | None = None


class SpokenTurn(NamedTuple):
    """A passage of one speaker, with times in milliseconds.

    Without `words`, its text is split at white space, and between characters of scripts without spaces. Without a
    text, its words are joined.
    """

    text: str
    start: int | None = None
    end: int | None = None
    speaker: str | None = None
    words: Sequence[SpokenWord] = ()
    confidence: float | None = None
    channel: str | None = None
    source: Mapping[str, Any] | None = None


#: Codes of three letters (ISO 639-3, and 639-2/B), each before the code of the interface.
_ISO_639_3 = """
    eng en spa es fra fr fre fr deu de ger de ita it por pt nld nl dut nl afr af sqi sq alb sq amh am ara ar arb ar
    hye hy arm hy asm as aze az bak ba eus eu baq eu bel be ben bn bos bs bre br bul bg mya my bur my cat ca zho zh
    chi zh cmn zh hrv hr ces cs cze cs dan da est et fao fo fin fi glg gl kat ka geo ka ell el gre el guj gu hat ht
    hau ha heb he hin hi hun hu isl is ice is ind id jpn ja jav jw kan kn kaz kk khm km kor ko lao lo lat la lav lv
    lin ln lit lt ltz lb mkd mk mac mk mlg mg msa ms may ms mal ml mlt mt mri mi mao mi mar mr mon mn nep ne nor no
    nob no nno nn oci oc pan pa pus ps fas fa per fa pol pl ron ro rum ro rus ru san sa srp sr sna sn snd sd sin si
    slk sk slo sk slv sl som so sun su swa sw swe sv tgl tl tgk tg tam ta tat tt tel te tha th bod bo tib bo tur tr
    tuk tk ukr uk urd ur uzb uz vie vi cym cy wel cy yid yi yor yo
"""
_THREE_LETTERS = dict(zip(_ISO_639_3.split()[::2], _ISO_639_3.split()[1::2], strict=True))
_CODES = {name.lower(): code for code, name in LANGUAGES.items()}
_CLOCK = re.compile(r"(-?)(?:(\d+):)?(\d+):(\d+(?:[.,]\d+)?)")
_FRAMES = re.compile(r"(\d+:\d+:\d+)[:;](\d+(?:\.\d+)?)")
Spoken = TypeVar("Spoken", SpokenWord, SpokenTurn)


def ms(seconds: Any, frame_rate: float = 30) -> int | None:
    """Return seconds as whole milliseconds, from a number, text such as "1.5s" or a mapping; None if there are none.

    A fourth part of a clock, as in "0:00:01:15", counts frames.

    Example:
        >>> ms(1.2345), ms("0.5s"), ms("1:02.5"), ms("0:00:01:15"), ms({"seconds": "1", "nanos": 500_000_000}), ms(None)
        (1234, 500, 62500, 1500, 1500, None)
    """
    if seconds is None or seconds == "":
        return None
    if isinstance(seconds, Mapping):
        return round(int(seconds.get("seconds") or 0) * 1000 + (seconds.get("nanos") or 0) / 1_000_000)
    if isinstance(seconds, str) and (frames := _FRAMES.fullmatch(seconds.strip())):
        return (ms(frames[1]) or 0) + round(1000 * float(frames[2]) / frame_rate)
    if isinstance(seconds, str) and (clock := _CLOCK.fullmatch(seconds.strip())):
        value = int(clock[2] or 0) * 3600 + int(clock[3]) * 60 + float(clock[4].replace(",", "."))
        return round(-1000 * value if clock[1] else 1000 * value)
    value = float(seconds.removesuffix("s") if isinstance(seconds, str) else seconds)
    return round(value * 1000) if math.isfinite(value) else None


def number(value: Any) -> float | None:
    """Return a number, also from text; None if there is none or it is not finite."""
    parsed = None if value is None or value == "" else float(value)
    return parsed if parsed is not None and math.isfinite(parsed) else None


def label(value: Any) -> str | None:
    """Return the label of a speaker or channel as text; None if there is none."""
    if isinstance(value, float) and value.is_integer():  # a column of numbers with missing values
        value = int(value)
    return None if value is None or str(value).strip() == "" else str(value)


def language_fields(value: Any) -> dict[str, Any]:
    """Return a language code as `language_code`; a name or code of three letters, such as "eng", also as `language`."""
    if not value or not isinstance(value, str):
        return {}
    if value.lower() == "auto":
        return {}
    is_code = (len(value) <= 3 or "-" in value or "_" in value) and value.lower() not in _THREE_LETTERS
    code = value.lower().replace("-", "_") if is_code else (_CODES | _THREE_LETTERS).get(value.lower())
    return ({} if code is None else {"language_code": code}) | ({} if is_code else {"language": value})


def turn_of(
    words: Sequence[SpokenWord],
    speaker: str | None,
    text: str | None = None,
    confidence: float | None = None,
    channel: str | None = None,
) -> SpokenTurn:
    """Return a turn with the times of its first and last word."""
    start, end = (words[0].start, words[-1].end) if words else (None, None)
    return SpokenTurn(text or join_words(word.text for word in words), start, end, speaker, words, confidence, channel)


def in_time(spoken: Sequence[Spoken]) -> list[Spoken]:
    """Sort words or turns of several channels by start. One without a start follows the one before on its channel."""
    last: dict[str | None, int] = {}
    keys = []
    for item in spoken:
        last[item.channel] = last.get(item.channel, 0) if item.start is None else item.start
        keys.append(last[item.channel])
    return [spoken[place] for place in sorted(range(len(spoken)), key=keys.__getitem__)]


def from_turns(turns: Iterable[SpokenTurn], **fields: Any) -> dict[str, Any]:
    """Return the payload of a transcript given as turns. Its list of words joins the words of the turns."""
    utterances, words = [], []
    for turn in turns:
        of_turn = turn.words or [
            SpokenWord(text, speaker=turn.speaker, channel=turn.channel) for text in split_words(turn.text)
        ]
        spoken = [_word(word) for word in of_turn]
        words += spoken
        spoken_text = turn.text or join_words(word["text"] for word in spoken)
        place = (turn.start, turn.end, turn.confidence, turn.speaker, turn.channel, turn.source)
        utterances.append({**_word(SpokenWord(spoken_text, *place)), "words": spoken})
    text = _characters(fields.pop("text", None) or "") or join_words(turn["text"] for turn in utterances)
    return {"status": "completed", "text": text, "words": words, "utterances": utterances, **fields}


def from_words(words: Sequence[SpokenWord], **fields: Any) -> dict[str, Any]:
    """Return the payload of a transcript in words. Words in a row of one known speaker make a turn."""
    if any(word.speaker is not None or word.channel is not None for word in words):
        runs = [[*run] for _, run in groupby(words, key=lambda word: (word.speaker, word.channel))]
        turns = (
            SpokenTurn(
                join_words(word.text for word in run),
                next((word.start for word in run if word.start is not None), None),
                next((word.end for word in reversed(run) if word.end is not None), None),
                run[0].speaker,
                run,
                channel=run[0].channel,
            )
            for run in runs
        )
        return from_turns(turns, **fields)
    spoken = [_word(word) for word in words]
    text = _characters(fields.pop("text", None) or "") or join_words(word["text"] for word in spoken)
    return {"status": "completed", "text": text, "words": spoken, **fields}


def _word(word: SpokenWord) -> dict[str, Any]:
    """Return a word or turn of a payload. An empty text is null.

    A value outside 0-1, such as a log-likelihood, is no confidence.
    """
    sure = word.confidence
    confidence = sure if sure is not None and 0 <= sure <= 1 else None
    fields = {
        "text": _characters(word.text).strip() or None,
        "start": word.start,
        "end": word.end,
        "confidence": confidence,
    }
    fields["speaker"] = word.speaker
    if word.channel is not None:
        fields["channel"] = word.channel
    return fields | unread(word.source, of_item=True)


def _characters(text: str) -> str:
    """Return a text in which bytes that were decoded one by one, with "surrogateescape", are characters again."""
    try:
        return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # another unpaired surrogate, which is repaired when the payload is read
        return text


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
            named[-1] = _continued(named[-1], placed)
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


def _continued(before: SpokenTurn, turn: SpokenTurn) -> SpokenTurn:
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
