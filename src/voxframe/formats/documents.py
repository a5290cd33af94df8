"""Transcripts in Markdown and Word: a speaker in bold, a time, and a text in each paragraph."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from voxframe._text import one_line
from voxframe.errors import MissingExtraError, PayloadError, PayloadWarning
from voxframe.formats.names import CLOCK, with_names, without_heading
from voxframe.formats.payload import SpokenTurn, from_turns, ms
from voxframe.formats.text_readers import plain

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
        paragraphs.append((_plain(bold[1]) if bold else "", _plain(line_text)))
    return _of_paragraphs(paragraphs, text if not any(bold for bold, _ in paragraphs) else None, carry=carry)


def _plain(text: str) -> str:
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
        return plain("\n".join(_plain(_MARKS.sub("", line)) for line in text.split("\n")), carry=carry)
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
