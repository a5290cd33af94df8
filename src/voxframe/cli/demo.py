"""`voxframe demo`: a recording to tables and a picture, on this machine alone."""

from __future__ import annotations

import time
from pathlib import Path

import pandas as pd

from voxframe import analysis
from voxframe.cli.media import check_audio
from voxframe.cli.terminal import columns, plain, shorten
from voxframe.corpus import Corpus
from voxframe.errors import OptionError, TranscriptError
from voxframe.loaders import load_paragraphs, load_sentences
from voxframe.options import TranscriptOptions
from voxframe.plots.style import clock
from voxframe.samples import sample


def demo(audio: str | None, out: Path, speakers: int | None) -> int:
    """Transcribe with the embedded service, keep, print, draw.

    Args:
        audio: Path of a recording; None takes the sample.
        out: Directory to write: a corpus and `timeline.png`.
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
    recording = sample("interview") if audio is None else Path(audio)
    if audio is None and speakers is None:
        speakers = 2
    options: TranscriptOptions = {"speaker_labels": True, "speakers_expected": speakers}
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
    picture = _draw(tables, out)
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
    print("\n".join(f"  {name:<12} {count:>6}" for name, count in filled))
    print(f"  and {len(tables) - len(filled)} tables with no rows: the demo asks for no further analyses.")
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


def _draw(tables: dict[str, pd.DataFrame], out: Path) -> Path:
    """The timeline as a picture; with no part of matplotlib that opens windows."""
    from matplotlib.figure import Figure

    from voxframe import plots

    spoken = tables["utterances"] if len(tables["utterances"]) else tables["words"]
    figure = Figure(figsize=(10, 1.2 + 0.45 * max(1, spoken["speaker"].nunique())), layout="constrained")
    plots.timeline(spoken, figure.subplots())
    path = out / "timeline.png"
    figure.savefig(path, dpi=150)
    return path


def _print_next_steps(transcript_id: str, out: Path, picture: Path) -> None:
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
                      tables = voxframe.Corpus({str(out)!r}).tables({transcript_id!r})
                      tables["words"].vox.timeline()
  your own recording  voxframe demo recording.mp3
  many, kept for you  voxframe transcribe *.mp3 && voxframe tables
  a hosted service    export VOXFRAME_BASE_URL=https://... VOXFRAME_API_KEY=...
                      voxframe transcribe recording.mp3""")
