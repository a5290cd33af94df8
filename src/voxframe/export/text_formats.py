"""Transcripts to read: plain text, Markdown and Word documents by turn; and words as tab-separated values."""

from __future__ import annotations

import io
import re

import pandas as pd

from voxframe._text import clock
from voxframe.errors import MissingExtraError, OptionError
from voxframe.export.result import Losses, counted
from voxframe.export.segments import SpeechSegment, turns, whole

_MARKUP = re.compile(r"([\\`*_\[\]<>&|~$#])")
_NONCHARACTERS = "texts or names with characters that a Word document cannot hold, written without them"
_TSV = ("transcript_id", "start_ms", "end_ms", "speaker", "speaker_name", "channel", "confidence", "text")
_NEEDED = ("transcript_id", "start_ms", "end_ms", "text")


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
        >>> words = pd.DataFrame({"transcript_id": "t", "text": ["Hi!"], "start_ms": 0, "end_ms": 900, "speaker": "A"})
        >>> txt(words)
        '[0:00:00] A: Hi!\n'
    """
    with counted(losses, "txt") as lost:
        return "".join(f"[{_start(s)}] {f'{s.voice}: ' if s.voice else ''}{s.text}\n" for s in _turns(df, "txt", lost))


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
        return "\n".join(
            f"{f'**{_escaped(s.voice)}** ' if s.voice else ''}({_start(s)}): {_escaped(s.text)}\n"
            for s in _turns(df, "md", lost)
        )


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

        for s in _turns(df, "docx", lost):
            paragraph = document.add_paragraph()
            if s.voice:
                paragraph.add_run(f"{held(s.voice)} ").bold = True
            paragraph.add_run(f"({_start(s)}): {held(s.text)}")
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def tsv(df: pd.DataFrame, *, losses: Losses | None = None) -> str:  # noqa: ARG001  every format has it
    r"""Return rows with times in milliseconds as tab-separated values with a header, for any number of transcripts.

    A null is an empty field. A text with a quotation mark, a tab or a line end is quoted, as spreadsheets and pandas
    expect.

    Args:
        df: Words, or longer rows.
        losses: Not used: TSV holds every value. All formats have it.

    Raises:
        OptionError: A column is missing.

    Example:
        >>> tsv(pd.DataFrame({"transcript_id": "t", "text": ["Hi!"], "start_ms": 0, "end_ms": 400}))
        'transcript_id\tstart_ms\tend_ms\ttext\nt\t0\t400\tHi!\n'
    """
    if missing := [name for name in _NEEDED if name not in df.columns]:
        raise OptionError(f"tsv needs the columns {', '.join(_NEEDED)}; the DataFrame lacks {', '.join(missing)}")
    return df[[name for name in _TSV if name in df.columns]].to_csv(sep="\t", index=False, lineterminator="\n")


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)


def _turns(df: pd.DataFrame, purpose: str, losses: Losses) -> list[SpeechSegment]:
    return sorted(turns(whole(df, purpose, losses)), key=lambda s: s.start)


def _start(segment: SpeechSegment) -> str:
    return clock(segment.start // 1000, hours=True)
