"""`voxframe transcribe`: transcribe recordings into a corpus."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from voxframe._text import clock
from voxframe.cli.arguments import add_corpus, add_job_options, job_options
from voxframe.cli.output import plain, shorten
from voxframe.client import connect
from voxframe.corpus import Corpus
from voxframe.corpus.addresses import is_address
from voxframe.errors import AudioError, AudioNotFoundError
from voxframe.loaders import load_paragraphs, load_sentences, load_transcripts
from voxframe.options import check

_TYPES = "wav, mp3, m4a, flac, ogg, mp4 or most others"


def add_transcribe(commands: argparse._SubParsersAction[Any], help_line: str) -> None:
    """Add `voxframe transcribe`."""
    parser = commands.add_parser(
        "transcribe",
        help=help_line,
        description="Transcribe files or URLs and store the transcripts in a corpus. A recording that was transcribed "
        "with the same options before is not sent again. Uses the hosted service at VOXFRAME_BASE_URL, if it is set, "
        "otherwise the embedded server.",
        epilog="-o sets any option of the jobs to a JSON value or text: -o auto_highlights=true "
        "-o word_boost='[\"voxframe\"]' -o language_code=en_uk. `voxframe options` lists them.",
    )
    parser.add_argument("audio", nargs="+", metavar="AUDIO", help="audio or video files, or http(s) URLs")
    add_corpus(parser)
    add_job_options(parser)
    parser.add_argument(
        "--force", action="store_true", help="send recordings again (a hosted service charges for them again)"
    )
    parser.set_defaults(run=transcribe)


def transcribe(given: argparse.Namespace) -> int:
    """Transcribe recordings into a corpus, and print the result of each.

    Returns:
        Exit status: 1 if a recording failed.

    Raises:
        OptionError: An option is invalid; nothing was sent.
        AudioError: A file is not a recording; nothing was sent.
        ServiceError: The service is unavailable or refused the request.
    """
    options = job_options(given)
    check(**options)
    for source in given.audio:
        if not is_address(source):
            check_audio(Path(source))
    corpus = Corpus(given.corpus)
    client = connect()
    failed = 0
    for source in given.audio:
        sys.stderr.write(f"{plain(source)} ...\n")
        transcript_id = corpus.transcribe(client, source, force=given.force, **options)
        load_sentences(transcript_id, client=client, corpus=corpus)
        load_paragraphs(transcript_id, client=client, corpus=corpus)
        row = load_transcripts(transcript_id, corpus=corpus).iloc[0]
        if row["status"] == "completed":
            text = row["text"] if isinstance(row["text"], str) else ""
            print(f"{transcript_id}  {clock(row['audio_duration_s'])}  {shorten(plain(text), 80)}")
        else:
            failed += 1
            print(f"{transcript_id}  failed: {plain(row['error'])}")
    sys.stderr.write(f"stored in {corpus.path}\n")
    return 1 if failed else 0


def check_audio(path: Path) -> None:
    """Check that a file is a recording before anything is sent, so that a mistake costs no time or money.

    The content is checked with the decoder of the embedded server. If it is not installed, the service checks the
    content.

    Args:
        path: The file.

    Raises:
        AudioError: The file does not exist, or holds no audio.
    """
    if path.is_dir():
        raise AudioError(f"{str(path)!r} is a directory; give one of its files")
    if not path.exists():
        raise AudioNotFoundError(f"there is no file {str(path)!r}; check its path")
    if not path.is_file():
        raise AudioError(f"{str(path)!r} is a pipe or a device; save the recording to a file first")
    if path.stat().st_size == 0:
        raise AudioError(f"{str(path)!r} is empty; give a file with audio")
    if find_spec("av") is None:
        return
    from voxframe.server.jobs import JobFailed
    from voxframe.server.speech.audio import Audio

    try:
        next(Audio(path).blocks(), None)  # the first seconds are enough
    except JobFailed as e:
        raise AudioError(f"{str(path)!r} cannot be transcribed: {e} Give {_TYPES}, at least 160 ms long") from None
