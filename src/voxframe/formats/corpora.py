"""Files of transcription tools: CHAT, Transcriber, EXMARaLDA, oTranscribe and Label Studio."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from itertools import dropwhile, takewhile
from typing import Any
from xml.etree import ElementTree as ET

from voxframe._text import one_line
from voxframe.errors import PayloadError
from voxframe.formats.names import with_names
from voxframe.formats.payload import SpokenTurn, from_turns, label, language_fields, ms, unread, xml_fields, xml_root
from voxframe.formats.tiers import UNKNOWN

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


def label_studio(document: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Read tasks of Label Studio with regions of speech: the last annotation of each task, else its prediction.

    Both exports are read, JSON and JSON-MIN. Sources: https://labelstud.io/guide/export and
    https://labelstud.io/templates/automatic_speech_recognition_segments.
    """
    spoken = []
    for n, task in enumerate(document["tasks"]):
        done = [annotation for annotation in task.get("annotations") or () if not annotation.get("was_cancelled")]
        last = [
            *(task.get("predictions") or ())[:1],
            *sorted(done, key=lambda annotation: str(annotation.get("updated_at") or "")),
        ][-1:]
        places: dict[str, dict[str, Any]] = {}
        untimed = []  # texts of the whole recording
        for part in last[0]["result"] if last else ():
            value = part["value"]
            if not {"start", "end"} <= value.keys() and isinstance(value.get("text"), list):
                untimed += value["text"]
            elif {"start", "end"} <= value.keys() and not isinstance(value["start"], str):  # a number of a paragraph
                place = places.setdefault(part["id"], {"parts": []})
                place.update({name: value[name] for name in ("start", "end", "text", "labels") if name in value})
                place["parts"].append(unread(part, of_item=True))
        turns = [_region(value) for value in places.values()] if last else _minimal(task)
        silent = [value for value, turn in zip(places.values(), turns, strict=False) if last and not turn.text]
        turns += [SpokenTurn(one_line(text)) for text in untimed]
        data = task.get("data") or {}
        name = label(data.get("transcript_id")) or label(task.get("id")) or str(n)
        payload = from_turns(sorted((turn for turn in turns if turn.text), key=lambda turn: turn.start or 0))
        regions = {"regions_without_text": silent} if silent else {}
        spoken.append((name, {"id": label(data.get("transcript_id")), **regions, **payload}))
    if not any(payload["text"] for _, payload in spoken):
        raise PayloadError("tasks of Label Studio, but no region with a start, an end and a text in any of them")
    return spoken


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
