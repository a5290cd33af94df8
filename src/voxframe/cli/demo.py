"""`voxframe demo`: turn a recording into tables and a plot, on this machine only."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Annotated

import pandas as pd

from voxframe import analysis
from voxframe._arguments import folder
from voxframe._files import sample
from voxframe._text import clock
from voxframe.cli.console import SpeakersOption, columns, plain, shorten, summary
from voxframe.cli.transcription import check_audio
from voxframe.corpus import Corpus
from voxframe.corpus.job import is_address
from voxframe.errors import OptionError, TranscriptError
from voxframe.loaders import load_paragraphs, load_sentences
from voxframe.options import TranscriptOptions

#: Analyses that the demo requests.
_ANALYSES: TranscriptOptions = {
    "auto_chapters": True,
    "auto_highlights": True,
    "content_safety": True,
    "entity_detection": True,
    "iab_categories": True,
    "sentiment_analysis": True,
}


def demo(
    audio: str | None = None,
    *,
    out: Annotated[Path, folder] = Path("voxframe-demo"),
    speakers: SpeakersOption = None,
) -> None:
    """Transcribe a recording with the embedded server, and show its tables.

    Write every table as Parquet, print who said what, and draw a speaker timeline. A second run reads the stored
    tables.

    Args:
        audio (AUDIO): Recording of English speech: wav, mp3, m4a, flac, ogg, mp4 ... (default: a two-minute interview
            included in voxframe).
        out (DIR): Output directory.
    """
    if out.exists() and not out.is_dir():
        raise OptionError(f"--out must be a directory, but {str(out)!r} is a file; name another directory")
    if any("\ud800" <= c <= "\udfff" for c in str(out)):  # bytes that are not UTF-8: Arrow rejects such a path
        raise OptionError(f"--out {str(out)!r} is not valid UTF-8; name another directory")
    if audio is not None and is_address(audio):
        raise OptionError(f"demo takes a file, got the URL {audio}; use `voxframe transcribe {audio}`")
    recording = sample("interview") if audio is None else Path(audio)
    if audio is None and speakers is None:
        speakers = 2
    options: TranscriptOptions = {**_ANALYSES, "speaker_labels": True, "speakers_expected": speakers}
    corpus = Corpus(out)
    begin = time.monotonic()
    transcript_id = corpus.parts.batch.find_transcript(recording, **options)
    if transcript_id is not None:
        summary(f"Reading {plain(recording.name)} from {out}; it was transcribed before.")
    else:
        check_audio(recording)
        summary(f"Transcribing {plain(recording.name)} with the embedded server on this machine, without a key.")
        transcript_id = _transcribe(corpus, recording, options)
        summary(f"Done in {time.monotonic() - begin:.0f} s.")
    tables = corpus.tables(transcript_id)
    transcript = tables["transcripts"].iloc[0]
    if transcript["status"] != "completed":
        raise TranscriptError(transcript_id, plain(transcript["error"]))
    _print_tables(tables, transcript["audio_duration_s"])
    picture = _draw(tables, out / f"{recording.stem or 'recording'}.timeline.png")
    _print_next_steps(transcript_id, out, picture)


def _transcribe(corpus: Corpus, recording: Path, options: TranscriptOptions) -> str:
    """Transcribe a recording into the corpus, with its exports. Return the id of the transcript."""
    from voxframe.client import connect
    from voxframe.client.embedded import launch
    from voxframe.settings import resolve

    service = launch(resolve())  # not connect(): it would use a hosted service if one is configured
    with connect(service.base_url, api_key=service.api_key) as client:
        transcript_id = corpus.transcribe(recording, client=client, **options)
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
    print(columns([heading, *rows]) if rows else "  no speech")
    print("\nThe conversation begins:")
    turns = spoken if "word_idx" not in spoken.columns else analysis.turns(spoken)
    for turn in turns.head(6).to_dict("records"):
        print(f"  {clock(turn['start_ms'] / 1000):>5}  {_name(turn['speaker'])}: {shorten(plain(turn['text']), 96)}")


def _name(speaker: object) -> str:
    return shorten(plain(speaker), 20) if isinstance(speaker, str) else "(unknown)"


def _draw(tables: dict[str, pd.DataFrame], path: Path) -> Path:
    """Draw the timeline to a file, without the parts of matplotlib that open windows."""
    from matplotlib.figure import Figure

    from voxframe import plots

    spoken = tables["utterances"] if len(tables["utterances"]) else tables["words"]
    figure = Figure(figsize=(10, 1.2 + 0.45 * max(1, spoken["speaker"].nunique())), layout="constrained")
    plots.timeline(spoken, figure.subplots())
    figure.savefig(path, dpi=150)
    return path


def _command() -> str:
    """Return the command by which this program was called, so that printed commands can be typed."""
    called = sys.argv[0]
    if Path(called).name == "__main__.py":
        return f"{Path(sys.executable).name} -m voxframe"
    installed = shutil.which("voxframe")
    return called if installed is None or Path(installed).resolve() != Path(called).resolve() else "voxframe"


def _print_next_steps(transcript_id: str, out: Path, picture: Path) -> None:
    command = _command()
    print("\nWritten:")
    written = (
        (f"{out}/tables/<table>/*.parquet", "every table, for pandas, DuckDB, Polars ..."),
        (f"{out}/raw/*/*.json.zst", "the responses of the service"),
        (f"{picture}", "the speaker timeline"),
    )
    width = max(len(path) for path, _ in written)
    print("\n".join(f"  {path:<{width}}  {what}" for path, what in written))
    print(f"""
Next steps:
  in a notebook       import voxframe
                      tables = voxframe.Corpus({str(out.absolute())!r}).tables({transcript_id!r})
                      tables["words"].vox.plot_timeline()
  your own recording  {command} demo recording.mp3
  another language    {command} transcribe -o language_detection=true recording.mp3
  many recordings     {command} transcribe *.mp3 && {command} tables
  a hosted service    export VOXFRAME_BASE_URL=https://... VOXFRAME_API_KEY=...
                      {command} transcribe recording.mp3""")
