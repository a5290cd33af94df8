"""`voxframe demo`: a recording to tables and a picture, on this machine alone."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import pandas as pd

from voxframe import analysis
from voxframe.cli.media import check_audio
from voxframe.cli.terminal import columns, plain, shorten
from voxframe.corpus import Corpus
from voxframe.corpus.addresses import is_address
from voxframe.errors import OptionError, TranscriptError
from voxframe.loaders import load_paragraphs, load_sentences
from voxframe.options import TranscriptOptions
from voxframe.plots.style import clock
from voxframe.samples import sample

#: What the demo asks for besides the words.
_ANALYSES: TranscriptOptions = {
    "auto_chapters": True,
    "auto_highlights": True,
    "content_safety": True,
    "entity_detection": True,
    "iab_categories": True,
    "sentiment_analysis": True,
}


def demo(audio: str | None, out: Path, speakers: int | None) -> int:
    """Transcribe with the embedded service, keep, print, draw.

    Args:
        audio: Path of a recording; None takes the sample.
        out: Directory to write: a corpus, and a picture for the recording.
        speakers: How many speakers there are; None where it is not known.

    Returns:
        Exit status.

    Raises:
        OptionError: `out` is a file, or `speakers` is out of range.
        AudioError: The recording cannot be used.
        TranscriptError: Nothing came of it.
        ServiceError: The embedded service failed.
    """
    if out.exists() and not out.is_dir():
        raise OptionError(f"--out takes a directory, and {str(out)!r} is a file")
    if any("\ud800" <= c <= "\udfff" for c in str(out)):  # bytes that are no UTF-8: Arrow takes no such path
        raise OptionError(f"--out {str(out)!r} is not UTF-8; name another directory")
    if audio is not None and is_address(audio):
        raise OptionError(f"demo takes a file; `voxframe transcribe {audio}` transcribes what is at an address")
    recording = sample("interview") if audio is None else Path(audio)
    if audio is None and speakers is None:
        speakers = 2
    options: TranscriptOptions = {**_ANALYSES, "speaker_labels": True, "speakers_expected": speakers}
    corpus = Corpus(out)
    begin = time.monotonic()
    transcript_id = corpus.known(recording, **options)
    if transcript_id is not None:
        print(f"Read {plain(recording.name)} from {out}: it was transcribed before.")
    else:
        check_audio(recording)
        print(f"Transcribing {plain(recording.name)} with the embedded service: no key, no network.")
        transcript_id = _transcribe(corpus, recording, options)
        print(f"Done in {time.monotonic() - begin:.0f} s.")
    tables = corpus.tables(transcript_id)
    transcript = tables["transcripts"].iloc[0]
    if transcript["status"] != "completed":
        raise TranscriptError(transcript_id, plain(transcript["error"]))
    _print_tables(tables, transcript["audio_duration_s"])
    picture = _draw(tables, out / f"{recording.stem or 'recording'}.timeline.png")
    _print_next_steps(transcript_id, out, picture)
    return 0


def _transcribe(corpus: Corpus, recording: Path, options: TranscriptOptions) -> str:
    """Identifier of the finished transcript, which is in the corpus with its exports."""
    from voxframe.service import connect
    from voxframe.service.embedded import launch
    from voxframe.settings import resolve

    service = launch(resolve())  # not connect(): that would go to a hosted service where one is configured
    with connect(service.base_url, api_key=service.api_key) as client:
        transcript_id = corpus.transcribe(client, recording, **options)
        for load in (load_sentences, load_paragraphs):
            load(transcript_id, client=client, corpus=corpus)
    return transcript_id


def _print_tables(tables: dict[str, pd.DataFrame], duration_s: float) -> None:
    spoken = tables["utterances"] if len(tables["utterances"]) else tables["words"]
    print(f"\nFound in {clock(duration_s)} of audio, rows per table:")
    filled = [(name, len(df)) for name, df in tables.items() if len(df)]
    width = max(len(name) for name, _ in filled)
    print("\n".join(f"  {name:<{width}} {count:>6}" for name, count in filled))
    if len(filled) < len(tables):
        print(f"  no rows: {', '.join(name for name, df in tables.items() if not len(df))}")
    if len(tables["highlights"]):
        print(f"\nKey phrases: {shorten(plain(', '.join(tables['highlights']['text'])), 100)}")
    print("\nTalk time:")
    talk = analysis.talk_time(spoken)
    heading = ("speaker", "turns", "words", "talk time", "share", "words/min")
    rows = [
        (
            _name(t["speaker"]),
            t["turns"],
            t["words"],
            clock(t["talk_s"]),
            f"{t['share']:.0%}",
            f"{t['words_per_minute']:.0f}",
        )
        for t in talk.to_dict("records")
    ]
    print(columns([heading, *rows]) if rows else "  nobody spoke")
    print("\nThe conversation begins:")
    turns = spoken if "word_idx" not in spoken.columns else analysis.turns(spoken)
    for turn in turns.head(6).to_dict("records"):
        print(f"  {clock(turn['start_ms'] / 1000):>5}  {_name(turn['speaker'])}: {shorten(plain(turn['text']), 96)}")


def _name(speaker: object) -> str:
    return shorten(plain(speaker), 20) if isinstance(speaker, str) else "(unknown)"


def _draw(tables: dict[str, pd.DataFrame], path: Path) -> Path:
    """The timeline as a picture; with no part of matplotlib that opens windows."""
    from matplotlib.figure import Figure

    from voxframe import plots

    spoken = tables["utterances"] if len(tables["utterances"]) else tables["words"]
    figure = Figure(figsize=(10, 1.2 + 0.45 * max(1, spoken["speaker"].nunique())), layout="constrained")
    plots.timeline(spoken, figure.subplots())
    figure.savefig(path, dpi=150)
    return path


def _command() -> str:
    """How this command was called, so that what is printed can be typed."""
    called = sys.argv[0]
    if Path(called).name == "__main__.py":
        return f"{Path(sys.executable).name} -m voxframe"
    found = shutil.which("voxframe")
    return called if found is None or Path(found).resolve() != Path(called).resolve() else "voxframe"


def _print_next_steps(transcript_id: str, out: Path, picture: Path) -> None:
    command = _command()
    print("\nWritten:")
    written = (
        (f"{out}/tables/<table>/*.parquet", "every table, for pandas, DuckDB, Polars ..."),
        (f"{out}/raw/*.json.zst", "the service's answers as they came"),
        (f"{picture}", "who speaks when"),
    )
    width = max(len(path) for path, _ in written)
    print("\n".join(f"  {path:<{width}}  {what}" for path, what in written))
    print(f"""
Go on:
  in a notebook       import voxframe
                      tables = voxframe.Corpus({str(out.absolute())!r}).tables({transcript_id!r})
                      tables["words"].vox.timeline()
  your own recording  {command} demo recording.mp3
  many, kept for you  {command} transcribe *.mp3 && {command} tables
  a hosted service    export VOXFRAME_BASE_URL=https://... VOXFRAME_API_KEY=...
                      {command} transcribe recording.mp3""")
