"""Files of research tools (CHAT, Transcriber, EXMARaLDA, oTranscribe, Label Studio) and of scoring (CTM, STM, RTTM).

Source of Label Studio's format: https://labelstud.io/guide/predictions and the template "Automatic Speech Recognition
using Segments", https://labelstud.io/templates/automatic_speech_recognition_segments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from itertools import dropwhile, takewhile
from typing import Any
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

import numpy as np
import pandas as pd

from voxframe._arrow import takes_frames
from voxframe._text import one_line
from voxframe.errors import OptionError, PayloadError
from voxframe.formats.payload import (
    SpokenTurn,
    SpokenWord,
    from_turns,
    from_words,
    in_time,
    label,
    language_fields,
    ms,
    number,
    unread,
    with_names,
    xml_fields,
    xml_root,
)
from voxframe.formats.text_readers import lines_of
from voxframe.formats.tiers import UNKNOWN, speaker_of, tier_names
from voxframe.formats.writing import Losses, counted, transcripts, turns

_BULLET = re.compile(r"\x15?(\d+)_(\d+)\x15?")
_CODES = re.compile(
    r"\[[^\]]*\]|&[-+=~*]?[\w:.]*|\(\.+\)|[<>\u21ab]|\+[/.,\"!?^<+]*(?=\s|$)|(?<=\s)0(?=\w)|@[\w:$]+|[\u2308-\u230b\u2191\u2193]"
)
_FILLED_PAUSE = re.compile(r"(?<!\S)&-(?=\w)")
_MARK = re.compile(r"(?<=\w) ([.,?!;:]+)(?=\s|$)")
_STAMP = re.compile(r"""<span[^>]*\sdata-timestamp=["']([\d.]+)["'][^>]*>.*?</span>""", re.DOTALL)
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_TAG = re.compile(r"<[^>]*>")
_PARAGRAPH = ("<p>", "</p>", "<div>", "</div>")


def chat(text: str) -> dict[str, Any]:
    """Read CHAT of the CHILDES and TalkBank corpora. Speakers have the names of @Participants, or else their codes.

    Codes in brackets, events (&=laughs), unfinished marks and retracing signs are left out of the text; filled pauses
    (&-um) are words. Each main line is in `extra` as it stands, with its dependent tiers (%mor, %gra, ...).

    Source: MacWhinney, "Tools for Analyzing Talk, Part 1: The CHAT Transcription Format".
    """
    names, headers, turns = dict[str, str](), dict[str, list[str]](), list[SpokenTurn]()
    lines = re.sub(r"\n[ \t]+", " ", text.replace("\r\n", "\n")).split("\n")
    for line in lines:
        mark, _, content = line.partition(":")
        if line.startswith("@Participants"):
            for person in content.split(","):
                code, *parts = person.split()
                names[code] = parts[0] if len(parts) > 1 else code
        if line.startswith("@") and content:
            headers.setdefault(mark[1:], []).append(content.strip())
        elif line.startswith("%") and turns:
            turns[-1].source[mark] = content.strip()  # type: ignore[index]
        elif line.startswith("*"):
            code, times = mark[1:], _BULLET.search(content)
            spoken = one_line(_CODES.sub(" ", _FILLED_PAUSE.sub("", _BULLET.sub(" ", content))))
            spoken = _MARK.sub(r"\1", spoken)  # a token of its own in CHAT
            start, end = (int(times[1]), int(times[2])) if times else (None, None)
            turns.append(SpokenTurn(spoken, start, end, names.get(code, code), source={"chat": content.strip()}))
    once_or_more = {name: lines if len(lines) > 1 else lines[0] for name, lines in headers.items()}
    language = language_fields(re.split(r"[\s,]", (headers.get("Languages") or [""])[0], maxsplit=1)[0])
    return {"headers": once_or_more, **language, **from_turns(turn for turn in turns if turn.text)}


def transcriber(text: str) -> dict[str, Any]:
    """Read a file of Transcriber (.trs): a passage after each Sync; speakers have the names of the Speakers list.

    Source: trans-14.dtd of Transcriber. Of two speakers at once, each Who begins the text of one.
    """
    root = xml_root(text)
    people = {speaker.get("id", ""): dict(speaker.attrib) for speaker in root.iter("Speaker")}
    turns = list[SpokenTurn]()
    for turn in root.iter("Turn"):
        who = (turn.get("speaker") or "").split()
        parts = list(_passages(turn))
        for n, (start, nth, spoken) in enumerate(parts):
            end = next((later for later, _, _ in parts[n + 1 :] if later != start), turn.get("endTime"))
            code = who[min(nth, len(who) - 1)] if who else None
            name = None if code is None else people.get(code, {}).get("name") or code
            turns.append(SpokenTurn(spoken, ms(start), ms(end), name, source=None if n else _marks(turn)))
    header: dict[str, Any] = {
        part.tag.lower(): xml_fields(part) for part in root if part.tag not in ("Speakers", "Episode")
    }
    header["sections"] = [dict(part.attrib) for part in root.iter() if part.tag in ("Episode", "Section")]
    fields = dict(root.attrib)
    language = language_fields(fields.get(_LANGUAGE))
    return {"header": header, "speakers": list(people.values()), **fields, **language, **from_turns(turns)}


def exmaralda(text: str) -> dict[str, Any]:
    """Read a basic transcription of EXMARaLDA (.exb): events of a transcription tier that follow each other are a turn.

    Speakers have their abbreviations. Tiers of other types, such as descriptions, are kept in "tiers". Source:
    https://exmaralda.org, basic-transcription.dtd.
    """
    root = xml_root(text)
    times = {point.get("id"): ms(point.get("time")) for point in root.iter("tli")}
    order = {point: n for n, point in enumerate(times)}
    people = {person.get("id"): person.findtext("abbreviation") or person.get("id") for person in root.iter("speaker")}
    spoken, others = list[tuple[int, SpokenTurn]](), []
    for tier in root.iter("tier"):
        if tier.get("type") != "t":
            others.append(xml_fields(tier))
            continue
        notes = [xml_fields(event) for event in tier.iter("event") if len(event)]
        others.append({**tier.attrib, **({"event": notes} if notes else {})})
        name, last, place = people.get(tier.get("speaker")), None, 0
        for event in sorted(tier.iter("event"), key=lambda event: order.get(event.get("start"), 0)):
            start, end = times.get(event.get("start")), times.get(event.get("end"))
            if spoken and last is not None and event.get("start") == last:
                before = spoken[-1][1]
                spoken[-1] = (place, before._replace(text=before.text + (event.text or ""), end=end))
            else:
                place = order.get(event.get("start"), 0)
                spoken.append((place, SpokenTurn(event.text or "", start, end, name)))
            last = event.get("end")
    turns = [turn._replace(text=one_line(turn.text)) for _, turn in sorted(spoken, key=lambda pair: pair[0])]
    head = root.find("head")
    header = {} if head is None else {"header": xml_fields(head)}
    return {**header, "tiers": others, **from_turns(turn for turn in turns if turn.text)}


def _marks(turn: ET.Element) -> dict[str, Any]:
    """Return what a turn has besides its speaker, times and text."""
    fields: dict[str, Any] = {
        name: value for name, value in turn.attrib.items() if name not in ("speaker", "startTime", "endTime")
    }
    marks = [{"mark": mark.tag, **mark.attrib} for mark in turn if mark.tag not in ("Sync", "Who")]
    return fields | ({"marks": marks} if marks else {})


def _passages(turn: ET.Element) -> Iterator[tuple[str | None, int, str]]:
    """Yield start, number of the speaker and text of each passage of a turn."""
    start, nth, text = turn.get("startTime"), 0, turn.text or ""
    for mark in turn:
        if mark.tag in ("Sync", "Who"):
            if one_line(text):
                yield start, nth, one_line(text)
            text = ""
            start = mark.get("time", start) if mark.tag == "Sync" else start
            nth = int(mark.get("nb") or 1) - 1 if mark.tag == "Who" else nth
        text += f" {mark.tail or ''}"
    if one_line(text):
        yield start, nth, one_line(text)


def otranscribe(document: Mapping[str, Any]) -> dict[str, Any]:
    """Read a file of oTranscribe (.otr): HTML with time stamps; names before the text are speakers.

    A turn with other markup, such as bold text, has it as it stands in "markup".
    """
    html = re.sub(r"<br\s*/?>|</p>|</div>", "\n", document["text"])
    turns = list[SpokenTurn]()
    for line in html.split("\n"):
        pieces = _STAMP.split(line)
        for start, part in zip([None, *pieces[1::2]], pieces[::2], strict=True):
            if text := one_line(unescape(_TAG.sub("", part))):
                is_marked = any(tag not in _PARAGRAPH for tag in _TAG.findall(part))
                turns.append(SpokenTurn(text, ms(start), source={"markup": part.strip()} if is_marked else None))
    return from_turns(with_names(turns, carry=True))


def read_label_studio(document: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Read tasks of Label Studio with regions of speech: the last annotation of each task, else its prediction.

    Both exports are read, JSON and JSON-MIN. Sources: https://labelstud.io/guide/export and
    https://labelstud.io/templates/automatic_speech_recognition_segments.
    """
    spoken = []
    for n, task in enumerate(document["tasks"]):
        payload = _payload_of_task(task)
        spoken.append((payload["id"] or label(task.get("id")) or str(n), payload))
    if not any(payload["text"] for _, payload in spoken):
        raise PayloadError("tasks of Label Studio, but no region with a start, an end and a text in any of them")
    return spoken


def _annotations(task: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the annotations of a task that were not cancelled, the last one at the end."""
    done = (annotation for annotation in task.get("annotations") or () if not annotation.get("was_cancelled"))
    return sorted(done, key=_updated)


def _updated(annotation: Mapping[str, Any]) -> str:
    return str(annotation.get("updated_at") or "")


def _payload_of_task(task: Mapping[str, Any]) -> dict[str, Any]:
    last = [*(task.get("predictions") or ())[:1], *_annotations(task)][-1:]
    places: dict[str, dict[str, Any]] = {}
    untimed = []  # texts of the whole recording
    for part in (last[0].get("result") or ()) if last else ():
        value = part.get("value") or {}  # a relation between regions has none
        if not {"start", "end"} <= value.keys() and isinstance(value.get("text"), list):
            untimed += value["text"]
        elif {"start", "end"} <= value.keys() and not isinstance(value["start"], str):  # a number of a paragraph
            place = places.setdefault(part["id"], {"parts": []})
            place.update({name: value[name] for name in ("start", "end", "text", "labels") if name in value})
            place["parts"].append(unread(part, of_item=True))
    turns = [_region(value) for value in places.values()] if last else _minimal(task)
    silent = [value for value, turn in zip(places.values(), turns, strict=False) if last and not turn.text]
    turns += [SpokenTurn(one_line(text)) for text in untimed]
    payload = from_turns(sorted((turn for turn in turns if turn.text), key=lambda turn: turn.start or 0))
    silence = {"regions_without_text": silent} if silent else {}
    return {"id": label((task.get("data") or {}).get("transcript_id")), **silence, **payload}


def _minimal(task: Mapping[str, Any]) -> list[SpokenTurn]:
    """Return the turns of a task in JSON-MIN, which has a list of regions and beside it a list of their texts."""
    regions: list[Mapping[str, Any]] = next((value for value in task.values() if _are_regions(value)), [])
    after_data = dropwhile(lambda field: field[0] != "id", task.items())
    results = takewhile(lambda field: field[0] != "annotator", after_data)
    lists = [[value] if isinstance(value, str) else value for _, value in results]
    texts = [
        value
        for value in lists
        if isinstance(value, list) and len(value) == len(regions) and all(isinstance(text, str) for text in value)
    ]
    if not regions:
        text = task.get("transcription")  # of the whole recording
        return [SpokenTurn(one_line(text))] if isinstance(text, str) else []
    if not texts:
        raise PayloadError("the export JSON-MIN does not say which region a text is of; export as JSON")
    return [_region({**region, "text": text}) for region, text in zip(regions, texts[0], strict=True)]


def _are_regions(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, Mapping) and {"start", "end"} <= item.keys() for item in value)
    )


def _region(value: Mapping[str, Any]) -> SpokenTurn:
    text: str | Sequence[str] = value.get("text") or ""
    line = one_line(text if isinstance(text, str) else " ".join(text))
    speaker = label((value.get("labels") or [None])[0])
    extra = {name: inner for name, inner in value.items() if name not in ("start", "end", "text", "labels")}
    speaker = None if speaker == UNKNOWN else speaker
    return SpokenTurn(line, ms(value["start"]), ms(value["end"]), speaker, source=extra or None)


_LABELS, _TEXT, _AUDIO = "labels", "transcription", "audio"


@takes_frames
def label_studio(df: pd.DataFrame, *, audio: Mapping[str, str] | None = None, losses: Losses | None = None) -> str:
    """Return turns as Label Studio tasks: one per transcript, with a region for each turn.

    Import the text into a project with the labeling configuration of `label_studio_config`. `read_edits` reads what
    was changed in the JSON that Label Studio exports.

    Args:
        df: Words, or turns (`voxframe.load_utterances`).
        audio: URL of the recording by transcript id, as Label Studio reaches it. None (default): the column `audio_url`
            if there is one, otherwise empty.
        losses: Counter for values that a task cannot hold. None (default): warn about them.

    Raises:
        OptionError: A column is missing, or `audio` is not a dict.

    Warns:
        ExportWarning: A task cannot hold a value.
    """
    if audio is not None and not isinstance(audio, Mapping):
        raise OptionError(f"audio must be a dict of URLs by transcript id, not of type {type(audio).__name__}")
    tasks = []
    with counted(losses, "labelstudio") as lost:
        if audio is None and {"audio_url", "transcript_id"} <= set(getattr(df, "columns", ())):
            with_audio = df.dropna(subset=["audio_url"]).drop_duplicates("transcript_id")
            audio = dict(zip(map(str, with_audio["transcript_id"]), with_audio["audio_url"], strict=True))
        for transcript_id, segments in transcripts(df, "labelstudio", lost):
            names = tier_names(segments, lost)
            result: list[dict[str, Any]] = []
            for n, turn in enumerate(turns(segments)):
                place = {"start": turn.start / 1000, "end": turn.end / 1000, "channel": 0}
                common = {"id": f"turn-{n}", "to_name": _AUDIO}
                speaker = speaker_of(names[turn.voice, turn.channel])
                result += [
                    {**common, "from_name": _LABELS, "type": "labels", "value": {**place, "labels": [speaker]}},
                    {**common, "from_name": _TEXT, "type": "textarea", "value": {**place, "text": [turn.text]}},
                ]
            data = {_AUDIO: (audio or {}).get(transcript_id, ""), "transcript_id": transcript_id}
            tasks.append({"data": data, "predictions": [{"model_version": "voxframe", "result": result}]})
    return json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"


@takes_frames
def label_studio_config(df: pd.DataFrame) -> str:
    """Return the labeling configuration of a Label Studio project for the tasks of `label_studio`.

    Args:
        df: The same rows.

    Raises:
        OptionError: A column is missing.

    Example:
        >>> words = pd.DataFrame({"transcript_id": "t", "text": ["Hi!"], "start_ms": 0, "end_ms": 400, "speaker": "A"})
        >>> print(label_studio_config(words).splitlines()[2].strip())
        <Label value="A"/>
    """
    speakers = [
        speaker_of(name) for _, s in transcripts(df, "labelstudio", Losses()) for name in tier_names(s).values()
    ]
    labels = "".join(f"    <Label value={quoteattr(name)}/>\n" for name in dict.fromkeys(speakers))
    return (
        f'<View>\n  <Labels name="{_LABELS}" toName="{_AUDIO}">\n{labels}  </Labels>\n'
        f'  <Audio name="{_AUDIO}" value="${_AUDIO}"/>\n'
        f'  <TextArea name="{_TEXT}" toName="{_AUDIO}" rows="2" editable="true" perRegion="true" required="true"/>\n'
        "</View>\n"
    )


def regions(text: str, transcript_id: str | None) -> list[tuple[str, str, int, int]]:
    """Return speaker, text, start and end (ms) of the regions of a task that Label Studio exported."""
    tasks = [task for task in json.loads(text) if task.get("data", {}).get("transcript_id") == transcript_id]
    if not tasks:
        raise PayloadError(f"no task has the transcript_id {transcript_id!r} in its data; export the project as JSON")
    if not (done := [task for task in tasks if _annotations(task)]):
        raise PayloadError(f"the task of {transcript_id!r} has no annotation; submit it in Label Studio first")
    last = max(done, key=lambda task: _updated(_annotations(task)[-1]))
    turns = _payload_of_task(last)["utterances"]
    return [
        (turn["speaker"] or UNKNOWN, turn["text"], turn["start"], turn["end"])
        for turn in turns
        if turn["start"] is not None
    ]


_ALTERNATIVES = re.compile(r"\{([^{}/]*)/[^{}]*\}")
#: Fields of an RTTM line; those without a name here have a place in a payload.
_RTTM = ("", "", "", "", "", "orthography", "subtype", "", "", "lookahead")
_IGNORED = frozenset({"ignore_time_segment_in_scoring", "inter_segment_gap"})


def read_ctm(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Read CTM: recording, channel, start, duration, word, confidence. Of alternatives, the first is read.

    Source: the manual of NIST's sclite, "ctm", https://github.com/usnistgov/SCTK/blob/master/doc/infmts.htm. Scores
    outside 0-1, as in its example, are no confidence.
    """
    by_recording: dict[str, list[SpokenWord]] = {}
    unused: dict[str, list[str]] = {}
    is_other = False
    for fields in _rows(text, "recording, channel, start, duration, word"):
        recording, channel, begin, length, word = fields[:5]
        if begin == "*":  # <ALT_BEGIN>, <ALT> and <ALT_END> have no times
            is_other = word == "<ALT>" or (is_other and word != "<ALT_END>")
        if is_other and word != "<ALT>":
            unused.setdefault(recording, []).append(" ".join(fields))
        if begin == "*" or is_other:
            continue
        start = ms(begin)
        end = None if start is None or length == "NA" else start + (ms(length) or 0)
        confidence = number(fields[5]) if len(fields) > 5 and fields[5] not in ("NA", "<NA>") else None
        extra = {"fields": fields[6:]} if len(fields) > 6 else None
        by_recording.setdefault(recording, []).append(SpokenWord(word, start, end, confidence, None, channel, extra))
    return [
        (name, _rest(text, unused.get(name)) | from_words(_channels(words))) for name, words in by_recording.items()
    ]


def _rest(text: str, lines: Sequence[str] | None) -> dict[str, Any]:
    """Return the lines of a file of scoring that are no rows: comments, and those that a reader leaves out."""
    comments = [line.strip() for line in lines_of(text) if line.lstrip().startswith(";;")]
    return {name: value for name, value in (("comments", comments), ("other_lines", lines)) if value}


def read_stm(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Read STM: recording, channel, speaker, start, end, labels, text. Of alternatives { a / b }, the first is read.

    Source: the manual of NIST's sclite, "stm", https://github.com/usnistgov/SCTK/blob/master/doc/infmts.htm. "@" stands
    for no word.
    """
    by_recording: dict[str, list[SpokenTurn]] = {}
    unused: dict[str, list[str]] = {}
    for fields in _rows(text, "recording, channel, speaker, start, end"):
        recording, channel, speaker, start, end = fields[:5]
        words, extra = fields[5:], dict[str, str]()
        if words and words[0].startswith("<") and words[0].endswith(">"):  # labels, such as <o,f0,male>
            extra["labels"], words = words[0][1:-1], words[1:]
        if any("{" in word or word == "@" for word in words):
            extra["alternatives"] = " ".join(words)
        spoken = " ".join(words)
        while (first := _ALTERNATIVES.sub(r"\1", spoken)) != spoken:  # they may be nested
            spoken = first
        spoken = " ".join(word for word in spoken.split() if word != "@")
        if spoken and spoken.lower() not in _IGNORED:
            name = None if speaker == "unknown" else speaker
            by_recording.setdefault(recording, []).append(
                SpokenTurn(spoken, ms(start), ms(end), name, channel=channel, source=extra or None)
            )
        else:
            unused.setdefault(recording, []).append(" ".join(fields))
    return [
        (name, _rest(text, unused.get(name)) | from_turns(_channels(turns))) for name, turns in by_recording.items()
    ]


def rttm(text: str) -> dict[str, list[SpokenTurn]]:
    """Read who speaks when from RTTM: the turns without text of each recording.

    Source: NIST Rich Transcription 2009 evaluation plan, appendix A.
    """
    by_recording: dict[str, list[SpokenTurn]] = {}
    for fields in _rows(text):
        if fields[0] != "SPEAKER":
            continue
        try:
            start, length, speaker = ms(fields[3]), ms(fields[4]), fields[7]
            fields += ["<NA>"] * (len(_RTTM) - len(fields))
            sure = None if fields[8] == "<NA>" else number(fields[8])
        except (IndexError, ValueError):
            raise PayloadError(
                "a line of an RTTM file must be SPEAKER, recording, channel, start, duration, two fields and the "
                f"speaker, but is {' '.join(fields)[:60]!r}"
            ) from None
        if start is not None and length is not None:
            turn = SpokenTurn("", start, start + length, None if speaker in ("<NA>", "unknown") else speaker)
            others = {name: fields[n] for n, name in enumerate(_RTTM) if name and fields[n] != "<NA>"}
            extra = others | {"fields": fields[len(_RTTM) :]} if len(fields) > len(_RTTM) else others
            turn = turn._replace(confidence=sure, channel=fields[2], source=extra or None)
            by_recording.setdefault(fields[1], []).append(turn)
    return {name: _channels(sorted(turns, key=lambda turn: turn.start or 0)) for name, turns in by_recording.items()}


def read_rttm(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Read who speaks when from RTTM alone: turns without text, by recording. Other lines are in "other_lines"."""
    unused = [fields for fields in _rows(text) if fields[0] != "SPEAKER"]
    return [
        (name, _rest(text, [" ".join(fields) for fields in unused if fields[1:2] == [name]]) | from_turns(turns))
        for name, turns in rttm(text).items()
    ]


def with_speakers(payload: Mapping[str, Any], text: str, recording: str | None = None) -> dict[str, Any]:
    """Join the speakers of an RTTM file to the words of a transcript.

    A word gets the speaker of the turn that overlaps it longest (in ms; the first of equals). A word without times, or
    without any overlap, gets none.

    Args:
        payload: A transcript, as a payload of the interface with `words`.
        text: Content of the RTTM file.
        recording: Name of the recording in the RTTM file. None (default): the file has only one.

    Returns:
        The payload with the speakers. Consecutive words of one speaker make a turn. Words keep their other fields.

    Raises:
        PayloadError: The payload has no list of words, the text is not RTTM, or it has several recordings or not this
            one.

    Example:
        >>> words = [{"text": "Hi", "start": 0, "end": 400}, {"text": "Yes", "start": 500, "end": 900}]
        >>> line = "SPEAKER x 1 0.000 0.450 <NA> <NA> Ann <NA> <NA>"
        >>> [word["speaker"] for word in with_speakers({"id": "a", "words": words}, line)["words"]]
        ['Ann', None]
    """
    if not isinstance(payload, Mapping) or not isinstance(payload.get("words"), list):
        kind = "a dict without it" if isinstance(payload, Mapping) else type(payload).__name__
        raise PayloadError(
            f"payload must be a dict with the list words, got {kind}; pass the transcript as the service returned it"
        )
    by_recording = rttm(text) if isinstance(text, str) else {}
    if not by_recording:
        raise PayloadError("text has no line that begins with SPEAKER; pass the content of an RTTM file, not its name")
    if recording is None and len(by_recording) != 1:
        raise PayloadError(
            f"the RTTM file has {len(by_recording)} recordings; pass recording=..., one of {', '.join(by_recording)}"
        )
    turns = next(iter(by_recording.values())) if recording is None else by_recording.get(recording)
    if turns is None:
        raise PayloadError(f"the RTTM file has no recording {recording!r}; it has {', '.join(by_recording)}")
    begins, ends = (
        np.array(side, np.float64) for side in zip(*((turn.start, turn.end) for turn in turns), strict=True)
    )

    def speaker(start: Any, end: Any) -> str | None:
        if not isinstance(start, int | float) or not isinstance(end, int | float):
            return None
        overlaps = np.minimum(ends, end) - np.maximum(begins, start)
        longest = int(overlaps.argmax())
        return turns[longest].speaker if overlaps[longest] > 0 else None

    own_words = [word if isinstance(word, Mapping) else {} for word in payload["words"]]
    words = [
        SpokenWord(
            str(word.get("text") or ""),
            word.get("start"),
            word.get("end"),
            None,
            speaker(word.get("start"), word.get("end")),
            word.get("channel"),
        )
        for word in own_words
    ]
    fields = {name: value for name, value in payload.items() if name not in ("words", "utterances", "status")}
    joined = from_words(words, **fields)
    for word, counterpart in zip(joined["words"], own_words, strict=True):  # turns have the same objects
        word.update({**counterpart, "speaker": word["speaker"]})
    return joined


def _rows(text: str, needed: str = "") -> Iterator[list[str]]:
    """Yield the fields of each line that is not a comment."""
    for n, line in enumerate(lines_of(text), 1):
        fields = line.split()
        if not fields or fields[0].startswith(";;"):
            continue
        if len(fields) < needed.count(",") + bool(needed):
            raise PayloadError(f"line {n} must begin with {needed}, but is {line.strip()[:60]!r}")
        yield fields


def _channels(rows: list[Any]) -> list[Any]:
    """Sort the rows of several channels by start; leave the channel out if there is only one."""
    several = len({row.channel for row in rows}) > 1
    return in_time(rows) if several else [row._replace(channel=None) for row in rows]
