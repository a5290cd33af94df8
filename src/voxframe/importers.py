"""Transcripts of other engines and annotation files become payloads of the interface.

`converted` recognises a format. The loaders and `Corpus.add` call it, so files of these formats can be given wherever a
payload file can. The payload says what the format says. Everything else is null: no time or confidence is estimated.
The field `imported_from` names the format; it is in the column `extra` of `transcripts`.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import PurePath
from typing import Any

import msgspec
import orjson

from voxframe._text import quantity
from voxframe.errors import PayloadError, PayloadWarning
from voxframe.formats import FORMATS, SUFFIXES, Format
from voxframe.formats.corpora import with_speakers
from voxframe.formats.payload import WHOLE, tracked, unread
from voxframe.formats.rows import from_table
from voxframe.formats.text_readers import has_speech
from voxframe.formats.whisper import is_spoken, language_of, names_beside
from voxframe.validators import shown

__all__ = ["SUFFIXES", "converted", "from_table", "with_speakers"]

_JUMP_MS = 60_000
_JSON = (b"{", b"[")  # first characters of payloads
_PACKED = re.compile(r"\.(gz|zst)$", re.IGNORECASE)
_SIGNS = (b"WEBVTT", b"ooText", b"<ANNOTATION", b"-->", b"@UTF8", b"<Trans", b"[Script Info]", b"/ttml")
#: Fields of engines with spoken text.
_TASK_FIELDS = frozenset({"annotations", "predictions", "annotation_id"})  # of Label Studio
_ROW_FIELDS = _TASK_FIELDS | {"text", "body", "words", "word", "transcript", "timestamp", "segments", "chunks"}
_TIME = re.compile("start|begin|from|offset|time")
_TEXT_FIELDS = ("text", "word", "punctuated_word", "content", "value", "transcript", "full_transcript")
_NULL_TEXT = re.compile(rf'"(?:{"|".join(_TEXT_FIELDS)})"\s*:\s*null'.encode())
_ENGINE_FIELDS = frozenset(
    "annotations transcription results monologues recognizedPhrases phrases response result segments chunks items "
    "lines word_segments transcript Transcript output data".split()
)
#: Fields of which every response of the interface about speech has one.
_OF_INTERFACE = frozenset(
    "id transcript_id request_id status text words utterances audio_url sentences paragraphs".split()
)
#: A time in seconds; the interface has whole milliseconds.
_SECONDS = re.compile(rb'"(?:start|end)"\s*:\s*\d+\.\d*[1-9]')
#: An XML declaration with another encoding than UTF-8, as Transcriber writes it.
_XML_ENCODING = re.compile(rb"\s*<\?xml[^>]*\sencoding=[\"'](?!utf)([\w-]+)[\"']", re.IGNORECASE)
_PROSE = frozenset({"txt", "md", "docx"})
#: Names of files that describe a folder.
_DOCUMENT = re.compile(r"(?:readme|licen[cs]e|copying|notice|change_?log|requirements)(?:[-_. ].*)?", re.IGNORECASE)


def converted(data: bytes, name: str = "", *, carry: bool | None = None) -> bytes:
    """Return the payload of a transcript in another format; bytes that are not recognised are returned unchanged.

    Args:
        data: Content of a file.
        name: Its name; may end in .gz or .zst. Its stem and a hash of the content become the id, unless the format has
            one. CTM, STM, Audacity labels and plain text are only recognised by their name.
        carry: In captions and plain text, a name holds for the lines that follow, until the next name. None (default):
            as usual in the format, which is True except for Audacity labels.

    Returns:
        The payload as JSON; a JSON list of payloads if the file has several recordings.

    Raises:
        PayloadError: The format is recognised by content or name, but the content is not as it should be. The message
            does not contain the name.

    Example:
        >>> converted(b'{"monologues": [{"speaker": 0, "elements": [{"type": "text", "value": "Hi"}]}]}')[:38]
        b'{"id":"rev-355d2b6d","imported_from":"'
    """
    if not isinstance(data, bytes) or not isinstance(name, str):
        raise PayloadError(f"a file is given as its bytes and its name, not as {shown(data)} and {shown(name)}")
    if name and (not data or data.isspace()):
        raise _empty()
    format_name = "another engine"
    try:
        suffix = PurePath(_PACKED.sub("", name)).suffix.lower()
        format_name, read = (
            _byte_format(data, suffix, carry)
            or _json_format(data)
            or _text_format(data, name, suffix, carry)
            or ("", None)
        )
        if read is None:
            return data
        payloads = read()
    except (ArithmeticError, AttributeError, LookupError, RecursionError, SyntaxError, TypeError, ValueError) as error:
        if isinstance(error, PayloadError):
            raise
        raise PayloadError(
            f"the payload looks like a transcript of {format_name}, but cannot be read ({type(error).__name__}: "
            f"{error}); check that it is complete"
        ) from None
    stem = PurePath(_PACKED.sub("", name)).stem or format_name
    if format_name in _PROSE and _DOCUMENT.fullmatch(stem) and not has_speech(payloads):
        raise PayloadError(
            f"a file named {stem} without speakers and times describes others; rename it if it is a transcript"
        )
    _warn_of_times([payload for _, payload in payloads] if isinstance(payloads, list) else [payloads], format_name)
    named = payloads if isinstance(payloads, list) else [(stem, payloads)]
    named = [(f"{stem}-{own}" if own.isdecimal() and len(named) > 1 else own, payload) for own, payload in named]
    several = [_encoded(payload, f"{own}{_mark(data)}", format_name) for own, payload in named]
    if not several:
        raise PayloadError(f"the file has the form of {format_name}, but no words; check that it is complete")
    return several[0] if len(several) == 1 else b"[" + b",".join(several) + b"]"


def recording_of(transcript_id: str, data: bytes) -> str:
    """Return the name that one of several transcripts in a file has there, given its id and the content of the file."""
    return transcript_id.removesuffix(_mark(data))


def _mark(data: bytes) -> str:
    """Return the end of ids of transcripts from files that have none."""
    return f"-{hashlib.sha256(data).hexdigest()[:8]}"


def _warn_of_times(payloads: list[dict[str, Any]], format_name: str) -> None:
    """Warn how many rows end before their start, or begin a minute or more before the row before."""
    count = 0
    for payload in payloads:
        last: dict[Any, int] = {}
        for row in payload.get("utterances") or payload.get("words") or ():
            start, end, channel = row.get("start"), row.get("end"), row.get("channel")
            times = [time for time in (start, end) if isinstance(time, int) and time < 2**53]
            count += times != sorted(times) or bool(times and times[0] <= last.get(channel, 0) - _JUMP_MS)
            last[channel] = times[0] if times else last.get(channel, 0)
    if count:
        warnings.warn(
            f"{quantity(count, 'row')} of {format_name} with impossible times (an end before its start, or a jump "
            "back), kept as they are; correct them in the file if measures of time matter",
            PayloadWarning,
            stacklevel=2,
        )


def _empty() -> PayloadError:
    return PayloadError("the file is empty; export or fetch the transcript again")


def _encoded(payload: dict[str, Any], given: str, format_name: str) -> bytes:
    document = {"id": payload.pop("id", None) or given, "imported_from": format_name, **payload}
    try:
        return orjson.dumps(document)
    except TypeError:  # integers beyond 64 bits and unpaired surrogates, which are repaired when the payload is read
        return json.dumps(document).encode()


def _json_format(data: bytes) -> tuple[str, Callable[[], Any]] | None:
    """Return the name and the reader of the JSON of another engine. Payloads of the interface are not parsed."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", "replace").encode()
    data = _as_list(data.removeprefix(codecs.BOM_UTF8))
    start = _first(data)
    if start not in _JSON or _is_of_interface(data):
        return None
    try:
        if start == b"[":  # a list of segments or tasks
            rows = msgspec.json.decode(data, type=list[dict[str, msgspec.Raw]])[:1]
            if not rows or rows[0].keys() & {"status", "utterances"} or not rows[0].keys() & _ROW_FIELDS:
                return None
        else:
            names = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).keys()
            native = "status" in names or not {"text", "words", "utterances"} & names
            seconds = {"words", "utterances"} & names and _SECONDS.search(data[:65_536])
            is_unknown = not names & _OF_INTERFACE and not names <= WHOLE
            if "imported_from" in names or (native and not names & _ENGINE_FIELDS and not seconds and not is_unknown):
                return None
        document = orjson.loads(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, orjson.JSONDecodeError):
        document = _lenient(data)
    if _NULL_TEXT.search(data):
        document = _without_null_texts(document)
    return _engine_of(document)


def _engine_of(document: Any) -> tuple[str, Callable[[], Any]] | None:
    """Return the name and the reader of a document of another engine, or of a list of such documents."""
    if isinstance(document, list) and document and all(map(_is_whole, document)):
        parts = [part for part in map(_engine_of, document) if part is not None]
        if len(parts) < len(document):
            return None
        if len(parts) == 1:
            return parts[0]
        return parts[0][0], lambda: [(str(n), read()) for n, (_, read) in enumerate(parts)]
    if isinstance(document, Mapping) and len(document) > 1 and all(map(_is_whole, document.values())):
        by_name = [(name, part[1]) for name, inner in document.items() if (part := _engine_of(inner)) is not None]
        return "segments", lambda: [(name, read()) for name, read in by_name]
    if isinstance(document, list):
        tasks = [row for row in document if isinstance(row, dict) and row.keys() & _TASK_FIELDS]
        document = {"tasks": document} if tasks else {"segments": document}
    if isinstance(document, Mapping) and {"data", "annotations"} <= document.keys():
        document = {"tasks": [document]}
    if not isinstance(document, Mapping):
        return None
    for inner in (document, *_inner(document)):
        for format_name, form in _taking("json"):
            if form.is_of(inner, "") and form.read:
                envelope = {} if inner is document else _envelope(document, inner)
                return format_name, partial(_whole, form.read, tracked(inner), envelope)
    return None


def _is_whole(document: Any) -> bool:
    """Return True for a transcript, and False for a segment: an object with a list of timed texts, but no time."""
    if not isinstance(document, Mapping) or is_spoken([document]):
        return False
    return any(is_spoken(document.get(name)) for name in ("segments", "chunks"))


def _inner(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the objects inside an envelope, such as {"output": {"segments": [...]}}, and lists of timed texts."""
    if document.keys() & {"words", "utterances", "text"}:  # it has the transcript itself
        return []
    values = [
        value[0] if isinstance(value, list) and len(value) == 1 and _is_whole(value[0]) else value
        for value in document.values()
    ]
    values = [value for value in values if isinstance(value, dict) or is_spoken(value)]
    return [{"segments": value} if isinstance(value, list) else value for value in values]


def _envelope(document: Mapping[str, Any], inner: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields beside the one that has the transcript."""
    read = (inner, inner.get("segments"))
    return {
        name: value for name, value in document.items() if not any(value is part or value == [part] for part in read)
    }


def _whole(read: Callable[[Any], Any], document: Any, envelope: Mapping[str, Any]) -> Any:
    """Return what a reader makes of a document, with the fields that it did not read, and those of its envelope."""
    payloads = read(document)
    if names := names_beside({**envelope, **document}):
        for _, payload in payloads if isinstance(payloads, list) else [("", payloads)]:
            for row in (*payload["words"], *(payload.get("utterances") or ())):
                row["speaker"] = names.get(row["speaker"], row["speaker"])
    rest = language_of(envelope) | unread(document, of_item=False)
    if envelope:
        rest["envelope"] = envelope
    if isinstance(payloads, list):
        return [(name, rest | payload) for name, payload in payloads]
    return rest | payloads


def _as_list(data: bytes) -> bytes:
    """Return JSON lines as a list if each is a segment with a time; other data as they are."""
    first, _, rest = data.lstrip().partition(b"\n")
    if not (first.rstrip().endswith(b"}") and rest.lstrip().startswith(b"{")):
        return data
    try:
        fields = msgspec.json.decode(first, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return data
    is_transcript = fields.keys() & {"status", "utterances"} or bytes(fields.get("words", b""))[:1] == b"["
    is_timed = any(map(_TIME.match, fields)) or "audio_filepath" in fields
    if is_transcript or not fields.keys() & _ROW_FIELDS or not is_timed:
        return data
    return b"[" + b",".join(line for line in data.splitlines() if line.strip()) + b"]"


def _is_of_interface(data: bytes) -> bool:
    """Return True if JSON has the `audio_url` of a payload of the interface. That of Gladia is in an inner object."""
    at = data.find(b'"audio_url"')
    # Searching the whole payload for `full_transcript` takes a tenth of the time of decoding it, so that is last.
    return at >= 0 and (data.count(b"{", 0, at) == 1 or b'"full_transcript"' not in data)


def _first(data: bytes) -> bytes:
    """Return the first byte that is not white space."""
    return data[:1024].removeprefix(codecs.BOM_UTF8).lstrip()[:1]


def _without_null_texts(value: Any) -> Any:
    """Return a document in which texts that are null are empty; the payload has them as null again."""
    if isinstance(value, dict):
        return {
            name: "" if inner is None and name in _TEXT_FIELDS else _without_null_texts(inner)
            for name, inner in value.items()
        }
    return [_without_null_texts(inner) for inner in value] if isinstance(value, list) else value


def _lenient(data: bytes) -> Any:
    """Return a JSON document of Whisper or whisper.cpp that is not strictly JSON, or None.

    Whisper writes NaN. Older versions of whisper.cpp split characters between tokens.
    """
    if b'"segments"' not in data and b'"transcription"' not in data:
        return None
    try:
        return json.loads(data.decode("utf-8", "surrogateescape"), strict=False)
    except (ValueError, RecursionError):
        return None


def _taking(kind: str) -> list[tuple[str, Format]]:
    """Return the formats whose readers take bytes, text or JSON."""
    return [(name, form) for name, form in FORMATS.items() if form.takes == kind and form.read]


def _reader(form: Format, content: Any, carry: bool | None) -> Callable[[], Any]:
    assert form.read is not None
    return partial(form.read, content, **({"carry": carry} if carry is not None and form.has_names else {}))


def _byte_format(data: bytes, suffix: str, carry: bool | None) -> tuple[str, Callable[[], Any]] | None:
    """Return the name and the reader of a format that is not text."""
    for format_name, form in _taking("bytes"):
        if form.is_of(data, suffix):
            return format_name, _reader(form, data, carry)
    return None


def _text_format(data: bytes, name: str, suffix: str, carry: bool | None) -> tuple[str, Callable[[], Any]] | None:
    """Return the name and the reader of a text format."""
    begin = data[:400]
    utf16 = begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    known = any(suffix in map(str.lower, form.suffixes) for _, form in _taking("text"))
    if not known and not utf16 and not any(sign in begin for sign in _SIGNS):
        return None
    declared = _XML_ENCODING.match(begin)
    try:
        text = data.decode("utf-16" if utf16 else declared[1].decode() if declared else "utf-8-sig")
        is_text = "\0" not in text[:2]  # UTF-16 without a byte order mark, or UTF-32
    except (UnicodeDecodeError, LookupError):
        text, is_text = "", False
    if not is_text:
        if _first(data) in _JSON or (utf16 and not known):  # invalid bytes of JSON are replaced later
            return None
        raise PayloadError(
            "the text is neither UTF-8 nor UTF-16 with a byte order mark, and its encoding cannot be told from its "
            "bytes; save it as UTF-8, or convert it with iconv -f CP1252 -t UTF-8 OLD > NEW (CP1252 is the usual "
            "encoding of Western European subtitles)"
        )
    if name and (not text or text.isspace()):  # only a byte order mark, or blanks that are not ASCII
        raise _empty()
    for format_name, form in _taking("text"):
        if form.is_of(text, suffix):
            return format_name, _reader(form, text, carry)
    named = [form for _, form in _taking("text") if form.begins and suffix in map(str.lower, form.suffixes)]
    if named and _first(data) not in _JSON:
        lines = [(n, line.strip()) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
        is_numbered = suffix == ".srt" and len(lines) > 1 and lines[0][1].isdecimal()
        n, line = lines[is_numbered]
        raise PayloadError(
            f"not a valid {named[0].title} file: line {n} should be {named[0].begins}, but is {line[:60]!r}; check "
            "that the file is complete and that its suffix is right"
        )
    return None
