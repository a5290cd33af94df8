"""`voxframe transcribe`: recordings into a corpus."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from voxframe.cli.media import check_audio
from voxframe.cli.terminal import plain, shorten
from voxframe.corpus import Corpus
from voxframe.corpus.addresses import is_address
from voxframe.errors import OptionError
from voxframe.loaders import load_paragraphs, load_sentences, load_transcripts
from voxframe.options import TranscriptOptions, check
from voxframe.plots.style import clock
from voxframe.service import connect


def transcribe(
    audio: Sequence[str], directory: Path | None, options: dict[str, Any], spelled: Sequence[str], *, resend: bool
) -> int:
    """Have recordings transcribed, keep them, and say for each what came of it.

    Args:
        audio: Files or addresses.
        directory: Corpus directory; None is the default corpus.
        options: Options of the job.
        spelled: More of them as NAME=VALUE; these win.
        resend: Send again even what was sent before.

    Returns:
        Exit status: 1 where a recording failed.

    Raises:
        OptionError: An option is wrong; nothing was sent.
        AudioError: A file is no recording; nothing was sent.
        ServiceError: The service, or the way to it, failed.
    """
    wanted = cast("TranscriptOptions", options | dict(parse_option(text) for text in spelled))
    check(**wanted)
    for source in audio:
        if not is_address(source):
            check_audio(Path(source))
    corpus = Corpus(directory)
    client = connect()
    failed = 0
    for source in audio:
        sys.stderr.write(f"{plain(source)} ...\n")
        transcript_id = corpus.transcribe(client, source, resend=resend, **wanted)
        load_sentences(transcript_id, client=client, corpus=corpus)
        load_paragraphs(transcript_id, client=client, corpus=corpus)
        row = load_transcripts(transcript_id, corpus=corpus).iloc[0]
        if row["status"] == "completed":
            text = row["text"] if isinstance(row["text"], str) else ""
            print(f"{transcript_id}  {clock(row['audio_duration_s'])}  {shorten(plain(text), 80)}")
        else:
            failed += 1
            print(f"{transcript_id}  failed: {plain(row['error'])}")
    sys.stderr.write(f"kept in {corpus.path}\n")
    return 1 if failed else 0


def parse_option(text: str) -> tuple[str, Any]:
    """Name and value of NAME=VALUE, the value as JSON where it is some, else as text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise OptionError(f"--option takes NAME=VALUE, not {text!r}; such as -o auto_highlights=true")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
