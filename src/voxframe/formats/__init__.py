"""Formats of transcripts: one table with how each is recognised, read and written, and what it cannot hold.

Everything that lists formats takes them from `FORMATS`: exports, imports, the command line and messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from voxframe.formats import (
    corpora,
    engines,
    rows,
    text_readers,
    text_writers,
    tiers,
)
from voxframe.formats.whisper import is_segments, is_whisper, is_whisper_cpp, segments, whisper_cpp


class Format(NamedTuple):
    """A format of transcripts.

    Attributes:
        title: Its name in documentation.
        suffixes: Endings of its files; exports have the first.
        takes: What `recognises` and `read` take: the content as bytes or text, or a parsed JSON document.
        recognises: Takes the content, and unless it is JSON, the suffix of the file in lower case. None: the suffix
            alone decides.
        read: Returns a payload, or pairs of name and payload. None: the format is only written.
        write: Returns the content for a DataFrame of words or turns. None: the format is only read, or is for tables.
        columns: Columns that are written exactly. Values of other columns are counted in `ExportResult.omitted`.
        losses: What else the format cannot hold; an export counts it in `ExportResult.losses`.
        has_names: True if the names of speakers stand before the text, so that they may carry on.
        is_table: True if any DataFrame can be written.
        begins: Beginning that is expected of a file with this suffix, for messages.
    """

    title: str
    suffixes: tuple[str, ...] = ()
    takes: Literal["bytes", "json", "text"] = "text"
    recognises: Callable[..., bool] | None = None
    read: Callable[..., Any] | None = None
    write: Callable[..., str | bytes] | None = None
    columns: frozenset[str] = frozenset()
    losses: str = ""
    has_names: bool = False
    is_table: bool = False
    begins: str = ""

    def is_of(self, content: Any, suffix: str) -> bool:
        """Return True if a content, or the suffix of its file in lower case, is of this format."""
        if self.recognises is None:
            return suffix in map(str.lower, self.suffixes)
        return self.recognises(content) if self.takes == "json" else self.recognises(content, suffix)


def _at(value: Any, path: list[str]) -> Any:
    for name in path:
        if name == "*":
            value = value[0] if isinstance(value, list) and value else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def _has(*paths: str) -> Callable[[Any], bool]:
    """Return a test of a document for fields, such as "results.channels"; `*` is the first item of a list."""
    return lambda document: all(_at(document, path.split(".")) is not None for path in paths)


def _is_xml(root: str) -> Callable[[str, str], bool]:
    """Return a test of a text for the root element of an XML document."""
    return lambda text, _: re.search(rf"<(?:\w+:)?{root}\b", text[:2000]) is not None and text.lstrip()[:1] == "<"


_TIMES = frozenset({"transcript_id", "start_ms", "end_ms"})
_SPEAKER = frozenset({"speaker", "speaker_name"})
_TEXT = _TIMES | _SPEAKER | {"text"}
_UNTIMED = _TEXT - {"start_ms", "end_ms"}
_ROWS = "nothing that is in the rows; types other than those of Arrow are written as text"
_LINE = "line ends and repeated blanks in texts"
_TURNS = f"times of single words; {_LINE}"
_CLOCK = f"times except the starts of turns in whole seconds; {_LINE}; turns without a speaker after a named one"

#: Each format by name. The first that recognises a content reads it.
FORMATS: dict[str, Format] = {
    # tables
    "parquet": Format(
        "Parquet",
        (".parquet",),
        "bytes",
        lambda data, _: data[:4] == b"PAR1",
        rows.of_parquet,
        losses=_ROWS,
        is_table=True,
    ),
    "csv": Format("CSV", (".csv", ".nlp"), read=rows.of_text, losses=_ROWS, is_table=True),
    "jsonl": Format(
        "JSON lines", (".jsonl",), "bytes", rows.is_json_lines, rows.of_json_lines, losses=_ROWS, is_table=True
    ),
    "huggingface": Format("Hugging Face datasets", losses=_ROWS, is_table=True),
    "excel": Format("Excel", (".xlsx",), "bytes", read=rows.of_excel),
    "docx": Format(
        "Word",
        (".docx",),
        "bytes",
        read=text_readers.read_docx,
        write=text_writers.docx,
        columns=_UNTIMED,
        losses=f"{_CLOCK}; characters that XML excludes",
        has_names=True,
    ),
    # JSON of speech engines and of annotation tools
    "otranscribe": Format(
        "oTranscribe",
        (".otr",),
        "json",
        lambda d: isinstance(d.get("text"), str) and ("media-time" in d or "data-timestamp=" in d["text"]),
        corpora.otranscribe,
    ),
    "labelstudio": Format(
        "Label Studio",
        (".json",),
        "json",
        lambda d: "tasks" in d,
        corpora.read_label_studio,
        corpora.label_studio,
        _TEXT | {"audio_url"},
        _TURNS,
    ),
    "whisper.cpp": Format("whisper.cpp", (".json",), "json", is_whisper_cpp, whisper_cpp),
    "deepgram": Format("Deepgram", (".json",), "json", _has("results.channels"), engines.deepgram),
    "rev": Format("Rev", (".json",), "json", _has("monologues"), engines.rev),
    "aws": Format(
        "Amazon Transcribe",
        (".json",),
        "json",
        lambda d: any(_has(f"results.{at}")(d) for at in ("items", "audio_segments", "channel_labels.channels")),
        engines.aws,
    ),
    "azure": Format(
        "Azure Speech",
        (".json",),
        "json",
        lambda d: _has("recognizedPhrases")(d) or _has("phrases", "combinedPhrases")(d),
        engines.azure,
    ),
    "speechmatics": Format(
        "Speechmatics",
        (".json",),
        "json",
        lambda d: _has("results.*.type")(d) or (_has("results", "format")(d) and not d["results"]),
        engines.speechmatics,
    ),
    "watson": Format("IBM Watson", (".json",), "json", engines.is_watson, engines.watson),
    "google": Format("Google Cloud Speech-to-Text", (".json",), "json", engines.is_google, engines.google),
    "gladia": Format(
        "Gladia",
        (".json",),
        "json",
        lambda d: any(_has(f"{at}transcription.full_transcript")(d) for at in ("", "result.")),
        engines.gladia,
    ),
    "whisper": Format("Whisper and tools built on it", (".json",), "json", is_whisper, segments),
    "segments": Format(
        "segments of any other tool (transformers, Podcasting 2.0, SegLST)", (".json",), "json", is_segments, segments
    ),
    # text
    "vtt": Format(
        "WebVTT",
        (".vtt",),
        recognises=lambda text, _: text.startswith("WEBVTT"),
        read=text_readers.webvtt,
        write=text_writers.vtt,
        columns=_TEXT,
        losses=f"{_TURNS}; captions are shown for at least 0.8 seconds; turns without a speaker after a named one",
        has_names=True,
        begins="WEBVTT",
    ),
    "textgrid": Format(
        "TextGrid",
        (".TextGrid",),
        recognises=lambda text, _: "ooTextFile" in text[:200],
        read=tiers.read_textgrid,
        write=tiers.textgrid,
        columns=_TEXT,
        losses=f"words without times; {_LINE}",
        begins='File type = "ooTextFile"',
    ),
    "eaf": Format(
        "EAF",
        (".eaf",),
        recognises=_is_xml("ANNOTATION_DOCUMENT"),
        read=tiers.read_eaf,
        write=tiers.eaf,
        columns=_TEXT,
        losses=f"words without times; {_LINE}; characters that XML excludes",
        begins="<ANNOTATION_DOCUMENT ...>",
    ),
    "ctm": Format(
        "CTM",
        (".ctm",),
        read=corpora.read_ctm,
        write=text_writers.ctm,
        columns=_TIMES | {"text", "channel", "confidence"},
        losses="speakers and turns; rows without times; blanks in names",
    ),
    "stm": Format(
        "STM",
        (".stm",),
        read=corpora.read_stm,
        write=text_writers.stm,
        columns=_TEXT | {"channel"},
        losses=f"{_TURNS}; blanks in names; a < at the beginning of a text",
    ),
    "rttm": Format(
        "RTTM",
        (".rttm",),
        read=corpora.read_rttm,
        write=text_writers.rttm,
        columns=_TIMES | _SPEAKER | {"channel"},
        losses="texts and words; turns without times or without a length; blanks in names",
    ),
    "ttml": Format(
        "TTML", (".ttml", ".dfxp"), recognises=_is_xml("tt"), read=text_readers.ttml, has_names=True, begins="<tt ...>"
    ),
    "ass": Format(
        "ASS and SSA",
        (".ass", ".ssa"),
        recognises=lambda text, _: "[Script Info]" in text[:2000],
        read=text_readers.ass,
        has_names=True,
        begins="[Script Info]",
    ),
    "chat": Format(
        "CHAT",
        (".cha",),
        recognises=lambda text, suffix: suffix == ".cha" or text.startswith("@UTF8"),
        read=corpora.chat,
    ),
    "transcriber": Format("Transcriber", (".trs",), recognises=_is_xml("Trans"), read=corpora.transcriber),
    "exmaralda": Format("EXMARaLDA", (".exb",), recognises=_is_xml("basic-transcription"), read=corpora.exmaralda),
    "srt": Format(
        "SRT",
        (".srt", ".sbv"),
        recognises=lambda text, _: text_readers.is_srt(text),
        read=text_readers.srt,
        write=text_writers.srt,
        columns=_TEXT,
        losses=f"{_TURNS}; captions are shown for at least 0.8 seconds; --> in a text; turns without a speaker after a "
        "named one",
        has_names=True,
        begins="the times of the first cue, such as 00:00:01,000 --> 00:00:02,500",
    ),
    "audacity": Format(
        "Audacity labels",
        (".txt",),
        recognises=lambda text, suffix: suffix == ".txt" and text_readers.is_labels(text),
        read=text_readers.audacity,
        write=text_writers.audacity,
        columns=_TEXT,
        losses=_TURNS,
        has_names=True,
    ),
    "tsv": Format(
        "TSV of words",
        (".tsv",),
        read=rows.of_text,
        write=text_writers.tsv,
        columns=_TEXT | {"channel", "confidence"},
        losses="limits of turns of one speaker in a row",
    ),
    "md": Format(
        "Markdown",
        (".md",),
        read=text_readers.markdown,
        write=text_writers.md,
        columns=_UNTIMED,
        losses=_CLOCK,
        has_names=True,
    ),
    "txt": Format(
        "plain text (InqScribe, MAXQDA, f4, Otter, Rev, Trint, Sonix, Descript, Zoom, Teams)",
        (".txt",),
        read=text_readers.plain,
        write=text_writers.txt,
        columns=_UNTIMED,
        losses=_CLOCK,
        has_names=True,
    ),
}

#: Formats for any DataFrame, and formats of words or turns with one file per transcript.
TABLE_FORMATS = {name: form for name, form in FORMATS.items() if form.is_table}
SPEECH_FORMATS = {name: form for name, form in FORMATS.items() if form.write is not None}
#: Suffixes of files that are read, in lower case.
SUFFIXES = tuple(dict.fromkeys(end.lower() for form in FORMATS.values() if form.read for end in form.suffixes))
