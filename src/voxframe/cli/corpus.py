"""Commands about the contents of a corpus: `voxframe add`, `tables`, `search`, `people`, `export` and others."""

from __future__ import annotations

import glob
import json
import shlex
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd

import voxframe
from voxframe._text import clock, quantity
from voxframe.cli import (
    CorpusOption,
    JsonOption,
    Output,
    Selected,
    in_command_terms,
    isolated,
    note,
    open_corpus,
    plain,
    read_table,
    report,
    shorten,
    summary,
)
from voxframe.corpus.importing import is_payload_file
from voxframe.corpus.llm import Answers, Refresh
from voxframe.corpus.query import unfinished
from voxframe.corpus.store import EXPORTS
from voxframe.errors import ExportWarning, OptionError, PayloadError
from voxframe.export.writers import FORMATS, format_of
from voxframe.formats import SPEECH_FORMATS, TABLE_FORMATS
from voxframe.formats.text_writers import srt, vtt
from voxframe.schema import TRANSCRIPT_TABLES

_TABLES = (*TRANSCRIPT_TABLES, *EXPORTS)


def add(files: list[str], *, corpus: CorpusOption = None, replace: bool = False) -> int:
    """Add transcripts that you have as files.

    Files are responses of the service, transcripts of other engines, captions and annotations. Those that are in the
    corpus already are left as they are.

    Args:
        files (FILE): Files, folders, zips or quoted patterns.
        replace: Replace different transcripts with the same ids.

    Examples:
      voxframe add old/ --corpus calls            every file in a folder
      voxframe add 'vendor/*.json' interview.srt  quoted patterns, and single files

    Exit status: 0 success; 1 a file was left out; 2 invalid arguments
    """
    store = voxframe.Corpus(corpus)
    added = store.add(files, replace=replace)
    show = print if added.left_out else summary  # failures are printed with --quiet, too
    show(f"{plain(repr(added))}\nin {plain(store.path)}")
    return 1 if added.left_out else 0


def metadata(file: Path | None = None, *, corpus: CorpusOption = None, output: Output) -> None:
    """Show the columns about recordings, or set them from a file with a column `recording` or `transcript_id`.

    `--where`, `--metadata` and `--partition-by` of other commands take these columns.

    Args:
        file (FILE): CSV or Parquet file with columns to set.
    """
    store = open_corpus(corpus)
    about = None if file is None else read_table(file, "FILE")
    output.write(store.metadata.get() if about is None else store.metadata.set(about))


def tables(
    file: list[str] | None = None,
    *,
    selected: Selected,
    table: Annotated[str | None, _TABLES] = None,
    output: Output,
) -> None:
    """Show the number of rows of each table of a corpus or of payload files, or with --table one table.

    Args:
        file (FILE): Payload files, folders or patterns, instead of a corpus.
        table (NAME): Table to show, such as words.

    Examples:
      voxframe tables --corpus calls
      voxframe tables --corpus calls --table words --id interview
      voxframe tables --table words --where 'confidence < 0.5'     with --table, a condition selects rows of that table
      voxframe tables old/call.json --table utterances --csv > call.csv

    Exit status: 0 success; 1 there is no such corpus; 2 invalid arguments
    """
    if file:
        if selected != Selected():
            raise OptionError("payload files and --corpus, --id or --where were given; give files or a corpus")
        frames = _from_payloads(file, table)
    elif table is None:
        frames = _row_counts(open_corpus(selected.corpus), selected)
    else:
        corpus = open_corpus(selected.corpus)
        ids, where = selected.parts(corpus)
        frames = {table: corpus.table(table, ids, where=where, metadata="recording")}
    if table is None:
        output = replace(output, rows=len(frames))
        output.write(pd.DataFrame({"table": list(frames), "rows": [len(df) for df in frames.values()]}))
    else:
        output.write(frames[table])


def _row_counts(corpus: voxframe.Corpus, selected: Selected) -> dict[str, pd.DataFrame]:
    """Return a column of each table of a corpus, and name the transcripts that are not completed once."""
    ids = selected.ids(corpus)
    # The reading half of `Corpus.table`, which would give the same reason for each empty table.
    columns = {name: corpus.parts.query.table(name, ids, ["transcript_id"]) for name in _TABLES}
    statuses = corpus.table("transcripts", ids, columns=["recording", "status"])
    failed = statuses[statuses["status"].notna() & (statuses["status"] != "completed")]
    if without := [f"{row.recording!r} ({row.status})" for row in failed.itertuples()]:
        note(f"voxframe tables: {in_command_terms(unfinished('words', without))}")
    return columns


def _from_payloads(files: list[str], table: str | None) -> dict[str, pd.DataFrame]:
    """Return the tables of the payloads of transcripts, or the table of payloads of exports."""
    for file in files:
        if Path(file, "raw").is_dir():
            raise OptionError(f"{file!r} is a corpus; give it as --corpus {file}")
        if not Path(file).exists() and not glob.has_magic(file) and not is_payload_file(file):
            raise PayloadError(
                f"there is no payload file {file!r}; check its path, or name a transcript or recording of the corpus "
                f"with --id {shlex.quote(file)}"
            )
    if table == "sentences":
        return {"sentences": voxframe.load_sentences(files)}
    if table == "paragraphs":
        return {"paragraphs": voxframe.load_paragraphs(files)}
    return voxframe.tables(files)


_SIDE = 40  # characters on each side of a match
_MATCH = 30


def search(
    query: list[str],
    *,
    selected: Selected,
    context: int = 8,
    slop: int | None = None,
    speaker: list[str] | None = None,
    count: bool = False,
    by: list[str] | None = None,
    output: Output,
) -> None:
    """Show every occurrence of words or phrases with the words around it.

    Args:
        query (QUERY): Word or phrase; quote it if it contains spaces.
        context (N): Number of words to show on each side.
        slop (N): Match the words of a query in any order, within N words.
        speaker (NAME): Only matches by this speaker.
        count: Count the occurrences instead of showing them.
        by (COLUMN): With --count: group by transcript_id, recording, speaker, person, speaker_name, channel, a metadata
            column, or nothing (default: recording and transcript_id).

    Examples:
      voxframe search 'climate change' --corpus calls
      voxframe search 'econom*' refund --speaker A --json
      voxframe search 'money back' --slop 6                both words in any order, within six words
      voxframe search refund 'money back' --count --by speaker

    Case, accents and punctuation are ignored: dont finds don't. Within a word, * matches any letters; alone, it matches
    any word.
    Exit status: 0 success, even without matches; 1 there is no such corpus; 2 invalid arguments
    """
    if by and not count:
        raise OptionError("--by requires --count")
    corpus = open_corpus(selected.corpus)
    ids = selected.ids(corpus)
    if count:
        names = [name for name in by or ["recording", "transcript_id"] if name != "nothing"]
        output.write(corpus.counts(query, by=names, slop=slop, speaker=speaker, ids=ids).round({"per_1000": 3}))
        return
    hits = corpus.search(query, context=context, slop=slop, speaker=speaker, ids=ids, limit=output.limit)
    if output.is_text:
        _print(hits.head(output.shown), more=len(hits) > output.shown)
    else:
        output.write(hits)


def _print(hits: pd.DataFrame, *, more: bool) -> None:
    """Print one line per match, with the matches aligned."""
    rows = []
    for row in hits.to_dict("records"):
        before = plain(row["left"])
        cut = before if len(before) <= _SIDE else "…" + before[-_SIDE + 1 :]
        time = "" if pd.isna(row["start_ms"]) else clock(row["start_ms"] / 1000)
        speaker = shorten(plain(row["speaker"]), 12) if isinstance(row["speaker"], str) else ""
        texts = (cut, shorten(plain(row["match"]), _MATCH), shorten(plain(row["right"]), _SIDE))
        rows.append((shorten(plain(row["recording"]), 36), time, speaker, *texts))
    widths = [max((len(row[n]) for row in rows), default=0) for n in range(5)]
    for transcript, time, speaker, before, match, right in rows:
        where = f"{transcript:{widths[0]}}  {time:>{widths[1]}}  {speaker:{widths[2]}}"
        padding, gap = " " * (widths[3] - len(before)), " " * (widths[4] - len(match))
        print(f"{where}  {padding}{isolated(before)}  {isolated(match)}{gap}  {isolated(right)}".rstrip())
    if more:
        print("... there are more matches; --rows N prints N rows, --csv or --json all")
    elif not rows:
        print("no matches")


def summarize(
    *,
    selected: Selected,
    question: list[str] | None = None,
    prompt: str | None = None,
    action_items: bool = False,
    format_: str | None = None,
    refresh: bool = False,
    lost: bool = False,
    json_: JsonOption = False,
) -> None:
    """Summarize transcripts, answer questions about them or run a prompt on them with a language model.

    Args:
        question (TEXT): Question to answer.
        prompt (TEXT): Prompt to run.
        action_items: List the action items.
        format_ (TEXT): Form of the result, such as 'one sentence'.
        refresh: Repeat earlier requests (charged again).
        lost: Repeat requests with a lost response (may be charged twice).
        json_: Print one JSON object with text, replies and ids.

    Examples:
      voxframe summarize --corpus calls --format 'bullet points'
      voxframe summarize --where customer=Acme --question 'What was promised?' --question 'By when?'
      voxframe summarize --prompt 'Write a letter to the caller' --id interview

    If a request would exceed 100 transcripts or 100 hours, it is split, and a final request combines the results.
    Responses are cached: the same request is not sent twice.
    Exit status: 0 success; 1 there is no such corpus, or the service failed; 2 invalid arguments
    """
    corpus = open_corpus(selected.corpus)
    ids = selected.ids(corpus)
    if sum(map(bool, (question, prompt, action_items))) > 1:
        raise OptionError(
            "--question, --prompt and --action-items exclude each other; give one of them, or none for a summary"
        )
    if format_ and (question or prompt):
        raise OptionError(
            "--format is for summaries and --action-items only; describe the format in the question or the prompt"
        )
    again: Refresh = refresh or ("lost" if lost else False)
    if question:
        answers: Answers = corpus.ask(question, ids, refresh=again)
    elif prompt:
        answers = corpus.task(prompt, ids, refresh=again)
    else:
        ask = corpus.action_items if action_items else corpus.summarize
        answers = ask(ids, answer_format=format_, refresh=again)
    if json_:
        fields = {
            "text": answers.text,
            "replies": [asdict(reply) for reply in answers.replies],
            "transcript_ids": answers.transcript_ids,
            "request_ids": [response.request_id for response in answers.responses],
            "usage": asdict(answers.usage),
            "models": sorted({response.model for response in answers.responses if response.model}),
        }
        print(json.dumps(fields))
    else:
        print("\n".join(map(plain, answers.text.splitlines())))
        if answers.quotes_key_sentences:
            note(
                "voxframe summarize: these are key sentences, quoted from the transcripts: the service has no language "
                "model; `pip install 'voxframe[writer]'` and `voxframe models get writer` give the local server one"
            )


def people(
    *,
    selected: Selected,
    name: list[str] | None = None,
    person: list[str] | None = None,
    by_name: bool = False,
    by_metadata: list[str] | None = None,
    detect: bool = False,
    audio: str | None = None,
    speakers: int | None = None,
    by_voice: bool = False,
    undo: bool = False,
    output: Output,
) -> None:
    """Show the speakers of recordings with their names, people, talk time and turns, after the changes given.

    Args:
        name (LABEL=NAME): Name a speaker of the recordings given by --id.
        person (LABEL=PERSON): Assign a person to a speaker of these recordings.
        by_name: Assign each name as the person.
        by_metadata (LABEL=COLUMN): Assign the person in a metadata column.
        detect: Tell the speakers of the recordings given by --id apart by their sound, and replace their labels.
        audio (FILE): With --detect: the media file of the recording (default: the file that the corpus knows).
        speakers (N): With --detect: number of speakers (default: estimated).
        by_voice: Assign one person to speakers of different recordings who have the same voice.
        undo: Revert the last assignment of people.
    """
    corpus = open_corpus(selected.corpus)
    ids = selected.ids(corpus)
    names, persons = _pairs("--name", name), _pairs("--person", person)
    if (names or persons) and not selected.id:
        raise OptionError("--name and --person need --id, because a label belongs to one recording")
    if detect and not selected.id:
        raise OptionError("--detect needs --id, because it replaces the labels of a recording")
    if not detect and (audio or speakers):
        raise OptionError("--audio and --speakers are for --detect")
    recordings = selected.id or []
    if detect:
        corpus.speakers.detect(recordings, audio=audio, speakers=speakers)
    if undo:
        corpus.speakers.undo()
    for recording in recordings if names else []:
        corpus.speakers.set(recording, names)
    if persons:
        rows = [(recording, label, who) for recording in recordings for label, who in persons.items()]
        corpus.speakers.assign(pd.DataFrame(rows, columns=["transcript_id", "speaker", "person"]))
    if by_name:
        corpus.speakers.assign(by="name", ids=ids)
    if by_metadata:
        corpus.speakers.assign(_pairs("--by-metadata", by_metadata), by="metadata", ids=ids)
    if by_voice:
        corpus.speakers.assign(by="voice", ids=ids)
    output.write(corpus.speakers.table(ids))


def _pairs(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """Return the labels and values of an option that is given as LABEL=VALUE."""
    pairs = {}
    for text in texts or ():
        label, equals, value = text.partition("=")
        if not (label and equals and value):
            raise OptionError(f"{option} must be LABEL=VALUE, such as A=Ada, got {text!r}")
        pairs[label] = value
    return pairs


def export(
    target: str,
    *,
    selected: Selected,
    format_: Annotated[str | None, tuple(FORMATS)] = None,
    table: list[Annotated[str, _TABLES]] | None = None,
    partition_by: list[str] | None = None,
    metadata: list[str] | None = None,
    pii: Literal["mask", "drop"] | None = None,
    pii_type: list[str] | None = None,
    escape_formulas: bool = False,
    license_: str | None = None,
    overwrite: bool = False,
    json_: JsonOption = False,
) -> None:
    """Write datasets, captions or annotations that other tools read.

    Args:
        target (TARGET): Directory, file, or URL such as s3://bucket/calls.
        format_ (FORMAT): One of the formats below (default: by the target's extension, else parquet).
        table (NAME): Export only this table.
        partition_by (COLUMN): One folder per value in each table that has the column.
        metadata (COLUMN): Add this metadata column to every table.
        pii: Personal data found by entity detection: mask it, as [PERSON_NAME], or drop it.
        pii_type (TYPE): Mask or drop only this type.
        escape_formulas: Put an apostrophe before texts that a spreadsheet would run as a formula; CSV only.
        license_ (NAME): Licence of the data, for the data card.
        overwrite: Replace an existing file, or an exported directory without edited files.
        json_: Print one JSON object with the files and the values not represented.

    Formats:
      {TABLE_FORMATS}
          a dataset: one file or folder per table
      {SPEECH_FORMATS}
          one file per transcript; a target such as calls.rttm: one file for all
    Without --format, the extension of the target is the format: words.csv is csv.
    A directory also gets a data card (README.md) and checksums (SHA256SUMS); in parquet, their names begin with "_".
    In CSV an empty field is a null and "" is an empty text. Values that the format cannot represent are counted.

    Examples:
      voxframe export calls-set --corpus calls --partition-by customer --metadata day
      voxframe export captions --format vtt --pii mask
      voxframe export words.csv --table words
      voxframe export s3://bucket/calls                    with voxframe[remote] and s3fs

    The target appears only after everything is written.
    Exit status: 0 success; 1 the target exists or cannot be written; 2 invalid arguments
    """
    form = format_of(target, format_)
    corpus = open_corpus(selected.corpus)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)  # printed below
        written = corpus.export(
            target,
            form,
            tables=table,
            ids=selected.ids(corpus),
            partition_by=partition_by or (),
            metadata=metadata or (),
            pii=pii,
            pii_types=pii_type,
            escape_formulas=escape_formulas,
            license=license_,
            overwrite=overwrite,
        )
    if json_:
        fields = {"files": sorted(written), "losses": written.losses, "omitted": written.omitted}
        print(json.dumps({"target": target, "format": form} | fields, ensure_ascii=False))
        return
    summary(f"{plain(target)}: {quantity(len(written), 'file')}")
    for reason, count in written.losses.items():
        sys.stderr.write(f"voxframe export: {count} {reason}\n")


export.__doc__ = (export.__doc__ or "").format(
    TABLE_FORMATS=" ".join(TABLE_FORMATS), SPEECH_FORMATS=" ".join(SPEECH_FORMATS)
)


def subtitles(
    id_: str,
    *,
    corpus: CorpusOption = None,
    format_: Literal["srt", "vtt"] = "srt",
    chars: int | None = None,
    no_speakers: bool = False,
    remote: bool = False,
) -> None:
    """Print the captions of a transcript, with speaker names and corrected text.

    Args:
        id_ (ID): Id of the transcript, or its recording.
        format_: SRT or WebVTT.
        chars (N): Maximum number of characters of a caption.
        no_speakers: Leave out the names of the speakers.
        remote: Print the captions of the service for the transcript with this id, also if it is in no corpus.

    Examples:
      voxframe subtitles interview --corpus calls > interview.srt
      voxframe subtitles interview --format vtt --chars 32 --no-speakers
      voxframe export captions --format srt                captions of every transcript of a corpus

    Exit status: 0 success; 1 there is no such transcript, or the service failed; 2 invalid arguments
    """
    if remote:
        with voxframe.connect() as client:
            text = client.subtitles(id_, format_, chars_per_caption=chars)
    else:
        words = open_corpus(corpus).table("words", id_)
        limits: dict[str, Any] = {} if chars is None else {"chars": chars}
        text = {"srt": srt, "vtt": vtt}[format_](words, speakers=not no_speakers, **limits)
    if sys.stdout.isatty():  # data must not control a terminal
        text = "\n".join(map(plain, text.splitlines())) + "\n"
    sys.stdout.write(text)


def snapshot(
    *, corpus: CorpusOption = None, list_: bool = False, verify: int | bool = False, json_: JsonOption = False
) -> None:
    """Write the current state of a corpus as a new read-only version: sorted and compact, with a manifest of hashes.

    Args:
        list_: List the versions instead of creating one.
        verify (N): Verify a version (default: the latest) instead of creating one.
        json_: Print the manifest as a JSON object; with --list, one per line.

    Examples:
      voxframe snapshot --corpus calls
      voxframe snapshot --corpus calls --list
      voxframe snapshot --corpus calls --verify

    Exit status: 0 success; 1 the snapshot cannot be written, or a version is damaged; 2 invalid arguments
    """
    snapshots = open_corpus(corpus).snapshots
    if list_:
        rows = [snapshots.open(version).manifest for version in snapshots.versions()]
        table = pd.DataFrame(rows, columns=["version", "created", "schema_version", "transcripts"])
        Output(rows=len(rows), json=json_).write(table)
        return
    is_new = verify is False
    version = snapshots.create() if is_new else snapshots.open(None if verify is True else verify)
    if not is_new:
        version.verify()
    size = sum(table["bytes"] for table in version.manifest["tables"].values()) / 1e6
    count = quantity(version.manifest["transcripts"], "transcript")
    done = "created" if is_new else "is unchanged"
    text = f"version {version.version} {done}: {count}, {size:.1f} MB\nin {plain(version.path)}"
    report(text, {"path": str(version.path), **version.manifest}, as_json=json_, always=not is_new)


def delete(id_: list[str], *, corpus: CorpusOption = None, remote: bool = False, yes: bool = False) -> int:
    """Delete transcripts from a corpus: payloads, tables, names, corrections, search index and job.

    This cannot be undone.

    Args:
        id_ (ID): Id of a transcript, or its recording.
        remote: Also delete them at the service, with their media.
        yes: Do not ask.

    Examples:
      voxframe delete interview --corpus calls
      voxframe delete interview --remote

    Exit status: 0 success; 1 there is no such transcript, or the service failed; 2 invalid arguments
    """
    store = open_corpus(corpus)
    # Before the question, and before anything is deleted. One transcript may be named twice.
    names = {store.parts.batch.known_id(name): name for name in id_}
    where = f"the corpus {store.path}" + (" and the service" if remote else "")
    if not yes:
        if not sys.stdin.isatty():
            raise OptionError("there is no terminal to ask on; give --yes to delete without a question")
        print(f"Delete {quantity(len(names), 'transcript')} from {plain(where)}? [y/N] ", end="", flush=True)
        if sys.stdin.readline().strip().lower() != "y":  # at the end of input, such as Ctrl-D, an empty line
            note("nothing was deleted")
            return 1
    for transcript_id, name in names.items():
        store.forget(transcript_id, remote=remote)
        summary(f"{plain(name)}  deleted from {plain(where)}")
    return 0
