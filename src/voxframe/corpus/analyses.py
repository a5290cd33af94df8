"""Analyses of stored transcripts by the engine of the local service: `corpus.analyze` and `corpus.analyses`."""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from itertools import islice
from typing import Any, NamedTuple, Protocol, Unpack, cast

import orjson
import pandas as pd
import pyarrow as pa
from tqdm.auto import tqdm

from voxframe import errors, frames, options
from voxframe._arrow import TEXT
from voxframe._text import FUNCTION_WORDS, quantity
from voxframe.corpus.archive import Archive, MissingTranscriptError
from voxframe.corpus.catalog import clear_errors
from voxframe.corpus.ledger import Ids
from voxframe.errors import CorpusError, CorpusWarning, MissingExtraError, OptionError, PayloadError, caller
from voxframe.frames.corrected import TURN_TABLES, correct_tables
from voxframe.frames.payloads import with_fields
from voxframe.options import TranscriptOptions
from voxframe.settings import cores, plugin

#: Analyses that are made if none is requested.
USUAL = (
    "sentiment_analysis",
    "entity_detection",
    "auto_chapters",
    "iab_categories",
    "auto_highlights",
    "content_safety",
)
#: Further options of `corpus.analyze`.
OTHERS = (
    "redact_pii",
    "redact_pii_policies",
    "redact_pii_sub",
    "summarization",
    "summary_model",
    "summary_type",
    "custom_topics",
    "topics",
    "content_safety_confidence",
)
_REQUESTS = (*USUAL, "redact_pii", "summarization", "custom_topics")
#: Result of each analysis in a payload. Redaction removes those that are not made again.
_RESULTS = (
    "auto_highlights_result",
    "sentiment_analysis_results",
    "content_safety_labels",
    "iab_categories_result",
    "custom_topics_results",
    "chapters",
    "entities",
    "summary",
)
_FIELD = "voxframe_analyses"  # of the payload: column `local_analyses`
_WARNINGS, _NO_TIME = "voxframe_warnings", "voxframe_no_time"
_PACE_MS = 300  # of a word in a text without any times, so that passages have a length
_FOREIGN = 0.25  # share of English function words below which a text of unknown language is not English
_FEW = 10  # words that are too few to tell, unless their letters are not Latin
_NOT_ENGLISH = "and is not English"
_IN_PROCESS = 4  # transcripts; for more, other processes are started
_PROGRAM = "from voxframe.corpus.analyses import main; main()"


class Analyzer(Protocol):
    """A function that adds analyses to a transcript. Packages offer one as an entry point in `voxframe.analyzers`."""

    def __call__(self, result: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the transcript with the requested analyses, in the fields of the interface.

        Args:
            result: A transcript: `words`, and `utterances` and `language_code` if they are known. Every word has
                `text`, `start` and `end` (ms).
            options: The options of a job, such as `{"entity_detection": True}`.
        """
        ...


class _Input(NamedTuple):
    """A transcript to analyse."""

    document: dict[str, Any]  # its words, turns and language, in the form of the interface
    is_timed: bool  # false if no word has a time; those in `document` are made up
    digest: str  # hash of `document`
    status: str | None  # of the transcript


class _Outcome(NamedTuple):
    """The status of one transcript, and the reason if it has no analysis."""

    status: str
    reason: str


def find(name: str | None = None) -> Analyzer:
    """Return an analyzer by name. None (default): the one that `VOXFRAME_ANALYZER` names, else the one built in."""
    if (analyzer := plugin("analyzer", name, "local")) is not None:
        return cast("Analyzer", analyzer)
    try:
        import snowballstemmer  # noqa: F401  the first of its packages
    except ModuleNotFoundError:
        raise MissingExtraError("local", "corpus.analyze") from None
    from voxframe_engine.analyses import apply

    return apply


def checked_options(requested: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the analyses to make."""
    for name in requested:
        if name not in (*USUAL, *OTHERS):
            raise OptionError(f"analyze has no option {name!r}; it has {', '.join((*USUAL, *OTHERS))}")
    checked = options.check(**{name: value for name, value in requested.items() if value is not None})
    if not any(name in checked for name in _REQUESTS):
        checked |= dict.fromkeys(USUAL, True)
    if not any(checked.get(name) for name in _REQUESTS):
        raise OptionError(f"no analysis is requested; set one of {', '.join(_REQUESTS)} to True")
    return checked


def analyzed(raw: bytes, options: Mapping[str, Any]) -> bytes:
    """Return a payload with the requested analyses."""
    tables = frames.transcript_tables(raw, ("transcripts", *TURN_TABLES))
    source = _input(tables)
    if reason := _unfit(source):
        raise PayloadError(f"it cannot be analysed: {reason}")
    return with_fields(raw, orjson.dumps(_fields(_made(find(), source.document, options), source, options)))


def _input(tables: Mapping[str, pa.Table]) -> _Input:
    """Return a transcript in the form that an analyzer takes."""
    words, turns = tables["words"], tables["utterances"]
    rows = words.to_pylist() if words.num_rows else [*_split(turns)]
    has_times = any(row["start_ms"] is not None for row in rows)
    spoken, last = dict[int, dict[str, Any]](), 0
    for n, row in enumerate(rows):
        if not row["text"]:
            continue
        start = last if row["start_ms"] is None else row["start_ms"]
        end = row["end_ms"] if row["end_ms"] is not None else start if has_times else start + _PACE_MS
        last = max(start, end)
        word = {"text": row["text"], "start": start, "end": last, "confidence": row["confidence"]}
        word |= {name: row[name] for name in ("speaker", "channel") if row[name] is not None}
        spoken[n] = word | ({} if row["timing"] == "word" else {_NO_TIME: True})
    document: dict[str, Any] = {"words": [*spoken.values()]}
    document["utterances"] = [*_lines(turns, spoken, tables["utterance_words"])]
    document["language_code"] = tables["transcripts"]["language_code"][0].as_py()
    digest = hashlib.sha256(orjson.dumps(document)).hexdigest()
    return _Input(document, has_times, digest, tables["transcripts"]["status"][0].as_py())


def _split(turns: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the words of turns that have a text only. They share the time of the turn."""
    for turn in turns.to_pylist():
        texts, start, end = (turn["text"] or "").split(), turn["start_ms"], turn["end_ms"]
        for n, text in enumerate(texts):
            row = {"text": text, "start_ms": start, "end_ms": end, "confidence": None, "timing": None}
            if start is not None and end is not None:
                row["start_ms"], row["end_ms"] = (start + (end - start) * k // len(texts) for k in (n, n + 1))
            yield row | {name: turn[name] for name in ("speaker", "channel")}


def _lines(turns: pa.Table, words: Mapping[int, dict[str, Any]], others: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the turns with their words."""
    apart: dict[int, list[dict[str, Any]]] = {}
    for row in others.to_pylist():
        word = {"text": row["text"] or "", "start": row["start_ms"] or 0, "end": row["end_ms"] or row["start_ms"] or 0}
        word |= {name: row[name] for name in ("confidence", "speaker", "channel") if row[name] is not None}
        apart.setdefault(row["utterance_idx"], []).append(word)
    for turn in turns.to_pylist():
        first, count = turn["first_word_idx"], turn["word_count"] or 0
        spoken = [words[n] for n in range(first, first + count) if n in words] if first is not None else ()
        line = {"text": turn["text"], "start": turn["start_ms"], "end": turn["end_ms"]}
        line |= {name: turn[name] for name in ("confidence", "speaker", "channel")}
        yield line | {"words": [*spoken] or apart.get(turn["utterance_idx"], [])}


def _unfit(source: _Input) -> str | None:
    """Return the reason why a transcript cannot be analysed: it is not completed, or is not English."""
    words, language = source.document["words"], source.document["language_code"]
    if not words and source.status not in (None, "completed"):
        return f"its status is {source.status!r}"
    if language is not None or not words:
        is_english = re.split("[_-]", (language or "en").lower())[0] in ("en", "english")
        return None if is_english else f"its language is {language!r}, {_NOT_ENGLISH}"
    bare = [word["text"].strip(".,;:?!\"'()").lower() for word in words]
    letters = [letter for word in bare for letter in word if letter.isalpha()]
    share = sum(word in FUNCTION_WORDS for word in bare) / len(bare)
    is_english = share >= _FOREIGN if len(bare) >= _FEW else sum(map(str.isascii, letters)) * 2 >= len(letters)
    return None if is_english else f"its language is not stated, {_NOT_ENGLISH}"


def _made(analyze: Analyzer, document: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Run an analyzer. Return the fields that it added."""
    language = document["language_code"]
    code = language.lower().replace("-", "_") if language else "en"
    fields = analyze({**document, "language_code": code if code in ("en_us", "en_uk", "en_au") else "en"}, options)
    changed = ("words", "text", "utterances") if options.get("redact_pii") else ()
    return {name: fields[name] for name in (*changed, *_RESULTS, "summary_method") if name in fields}


def _fields(results: Mapping[str, Any], source: _Input, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a payload: the results, the options, and the version of voxframe."""
    fields = dict(results)
    if options.get("redact_pii"):
        fields = dict.fromkeys(_RESULTS) | fields
        fields["words"] = [_plain(word) for word in fields["words"]]
        lines = fields["utterances"]
        fields["utterances"] = [line | {"words": [_plain(word) for word in line["words"]]} for line in lines] or None
    if not source.is_timed:
        fields = {name: _untimed(value) for name, value in fields.items()}
    names = sorted(name for name in _REQUESTS if options.get(name))
    return fields | dict(options) | {_FIELD: f"voxframe {version('voxframe')}: {', '.join(names)}"}


def _plain(word: Mapping[str, Any]) -> dict[str, Any]:
    """Return a redacted word without the share of the time of its turn, which is not its own time."""
    shared = {"start": None, "end": None} if _NO_TIME in word else {}
    return {name: value for name, value in word.items() if name != _NO_TIME} | shared


def _untimed(value: Any) -> Any:
    """Return results without times."""
    if isinstance(value, dict):
        return {name: None if name in ("start", "end") else _untimed(inner) for name, inner in value.items()}
    return [_untimed(inner) for inner in value] if isinstance(value, list) else value


class Analyses:
    """Analyses made on this machine of transcripts that a corpus has, as `corpus.analyses`."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    def __repr__(self) -> str:
        return f"Analyses({str(self._archive.path)!r})"

    def analyze(
        self,
        ids: Ids | None = None,
        *,
        workers: int | None = None,
        progress: bool | None = None,
        **analyses: Unpack[TranscriptOptions],
    ) -> pd.DataFrame:
        """Analyse stored transcripts on this machine, with the analyses of the local service, on all cores.

        Transcripts of any service, engine or file will do, with or without times. The results appear in the tables
        `sentiments`, `entities`, `chapters`, `topics`, `highlights`, `content_safety` and so on, and replace those of
        the service. The column `local_analyses` of `transcripts` says so. The payloads stay as they are, and
        `corpus.analyses.undo` takes the results back. Afterwards, `export(..., pii="mask")` works on any transcript.

        Analyses are for English only. Transcripts in another language are skipped, with one warning that counts them;
        if the language is not stated, English is told by its function words. Each result is stored when it is ready,
        so that a call that was interrupted can be repeated. Transcripts with up-to-date results are not analysed again.
        Later calls add to the analyses. After corrections, or if the payload is replaced, call it again.

        Args:
            ids: Transcripts or recordings. None (default): all.
            workers: Number of processes. None (default): one per core.
            progress: Show a progress bar. None (default): after one second.
            **analyses: `sentiment_analysis`, `entity_detection`, `auto_chapters`, `iab_categories`, `auto_highlights`,
                `content_safety`: True for those to make. None given (default): these six. Further options are
                `redact_pii`, which replaces personal data in the words and turns (with `redact_pii_policies` and
                `redact_pii_sub`), `summarization` (with `summary_model` and `summary_type`), `custom_topics` (with
                `topics`) and `content_safety_confidence`, as for a job.

        Returns:
            One row per transcript: `transcript_id` str; `status` str: "analyzed", "unchanged" (it has these results),
            "skipped" or "failed"; `reason` str, null for the first two.

        Raises:
            OptionError: An option is invalid, or is not one of an analysis.
            CorpusError: A transcript is not in the corpus, or the corpus cannot be written.
            MissingExtraError: The extra `local` is not installed.

        Warns:
            CorpusWarning: Some transcripts could not be analysed.

        Example:
            >>> import tempfile, voxframe
            >>> corpus = voxframe.Corpus(tempfile.mkdtemp())
            >>> words = b'[{"text": "Wonderful!", "start": 0, "end": 90}]'
            >>> corpus.raw.put("a1", b'{"id": "a1", "status": "completed", "words": %s}' % words)
            >>> corpus.analyze(entity_detection=True)["status"].to_list()
            ['analyzed']
            >>> corpus.table("transcripts")["local_analyses"].to_list()
            ['voxframe 0.1.0: entity_detection']
        """
        requested = checked_options(analyses)
        self._archive.report_missing()
        transcript_ids = self._archive.ids() if ids is None else self._archive.recordings.ids(ids)
        results = self._analyze(transcript_ids, requested, workers, progress=progress)
        return _table(transcript_ids, results)

    def undo(self, ids: Ids | None = None) -> list[str]:
        """Remove the analyses that `corpus.analyze` made. Those of the service come back.

        Args:
            ids: Ids of transcripts, or names of recordings. None (default): all.

        Returns:
            The ids of the transcripts that had such analyses.

        Raises:
            CorpusError: A transcript is not in the corpus, or the corpus cannot be written.

        Example:
            >>> corpus.analyses.undo("call")  # doctest: +SKIP
        """
        table = self._archive.read(
            "transcripts",
            self._archive.ids() if ids is None else self._archive.recordings.ids(ids),
            ["transcript_id", "local_analyses"],
        )[0]
        analyzed: list[str] = table.filter(table["local_analyses"].is_valid())["transcript_id"].to_pylist()
        for transcript_id in analyzed:
            self._store(transcript_id, None)
        return analyzed

    def _store(self, transcript_id: str, analysis: Mapping[str, Any] | None) -> None:
        with clear_errors(self._archive.path):
            with self._archive.kept(transcript_id):
                self._archive.store.put_analysis(transcript_id, None if analysis is None else orjson.dumps(analysis))
            self._archive.write_table("transcript", self._archive.make(transcript_id, "transcript"))

    def _analyze(
        self, ids: Sequence[str], requested: Mapping[str, Any], workers: int | None, *, progress: bool | None
    ) -> dict[str, _Outcome]:
        """Store the analyses of transcripts as they are made. Return what became of each."""
        results: dict[str, _Outcome] = {}

        def sources() -> Iterator[tuple[str, _Input, dict[str, Any]]]:
            for transcript_id in ids:
                task = self._task(transcript_id, requested)
                if isinstance(task, _Outcome):
                    results[transcript_id] = task
                    bar.update()
                else:
                    yield (transcript_id, *task)

        hidden = None if progress is None else not progress
        with tqdm(total=len(ids), desc="analyses", unit="transcript", delay=1, disable=hidden) as bar:
            for transcript_id, source, options, fields in _each(sources(), len(ids), workers):
                if isinstance(fields, str):
                    results[transcript_id] = _Outcome("failed", fields)
                else:
                    self._store(transcript_id, {"source": source.digest, "fields": _fields(fields, source, options)})
                    results[transcript_id] = _Outcome("analyzed", "")
                bar.update()
        if skipped := [i for i, result in results.items() if result.status in ("skipped", "failed")]:
            foreign = sum(results[i].reason.endswith(_NOT_ENGLISH) for i in skipped)
            warnings.warn(
                f"{quantity(len(skipped), 'transcript')} of {len(ids)} could not be analysed ({foreign} not English), "
                f"such as {skipped[0]!r}: {results[skipped[0]].reason}; the result lists the reasons",
                CorpusWarning,
                stacklevel=caller(),
            )
        return results

    def _task(self, transcript_id: str, new: Mapping[str, Any]) -> tuple[_Input, dict[str, Any]] | _Outcome:
        """Return what to analyse, and the options: the new ones, and those of an earlier analysis."""
        archive = self._archive
        try:
            stored = archive.stored(transcript_id, "transcript")
            edits = archive.edits.active(transcript_id)
            tables = frames.transcript_tables(stored.raw, ("transcripts", *TURN_TABLES), transcript_id)
            source = _input(correct_tables(tables, edits).tables if edits else tables)
        except MissingTranscriptError:
            raise
        except (PayloadError, CorpusError) as error:
            return _Outcome("failed", str(error))
        analysis = {} if stored.analysis is None else orjson.loads(stored.analysis)
        old = analysis.get("fields", {})
        requested = {name: old[name] for name in (*USUAL, *OTHERS) if name in old} | dict(new)
        if analysis.get("source") == source.digest and all(old.get(name) == value for name, value in requested.items()):
            return _Outcome("unchanged", "")
        if reason := _unfit(source):
            return _Outcome("skipped", reason)
        if requested.get("redact_pii") and edits:
            return _Outcome("skipped", 'it has corrections, which redaction cannot follow; export it with pii="mask"')
        return source, requested


def _table(ids: Sequence[str], results: Mapping[str, _Outcome]) -> pd.DataFrame:
    rows = [(i, results[i].status, results[i].reason or None) for i in ids if i in results]
    return pd.DataFrame(rows, columns=["transcript_id", "status", "reason"]).astype(TEXT)


_Made = tuple[str, _Input, dict[str, Any], "dict[str, Any] | str"]


def _each(tasks: Iterator[tuple[str, _Input, dict[str, Any]]], count: int, workers: int | None) -> Iterator[_Made]:
    """Yield the transcripts with their analyses, made on all cores; the reason as text if it failed."""
    processes = min(workers or cores(), count)
    if processes == 1 or count <= _IN_PROCESS:
        analyze = find()
        for transcript_id, source, options in tasks:
            yield transcript_id, source, options, _tried(analyze, source.document, options)
        return
    free: queue.SimpleQueue[_Child] = queue.SimpleQueue()
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(processes, "voxframe-analyses"))
        for _ in range(processes):
            child = _Child()
            stack.callback(child.end)
            free.put(child)
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)

        def ask(task: tuple[str, _Input, dict[str, Any]]) -> _Made:
            child = free.get()
            try:
                return (*task, child.ask(task[1].document, task[2]))
            finally:
                free.put(child)

        running = [pool.submit(ask, task) for task in islice(tasks, 2 * processes)]
        while running:
            done = running.pop(0).result()
            running += [pool.submit(ask, task) for task in islice(tasks, 1)]
            for name, text in done[3].pop(_WARNINGS, ()) if isinstance(done[3], dict) else ():
                warnings.warn(text, getattr(errors, name, UserWarning), stacklevel=caller())
            yield done


def _tried(analyze: Analyzer, document: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any] | str:
    """Return the fields that an analyzer adds, or the reason if it fails."""
    try:
        return _made(analyze, document, options)
    except Exception as error:  # noqa: BLE001  one transcript must not end the analysis of the others
        return f"{type(error).__name__}: {error}"


class _Child:
    """Another process that analyses transcripts. multiprocessing would run the caller's script again."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603  ourselves, in a session that Ctrl-C does not reach
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={"OMP_NUM_THREADS": "1", **os.environ},
        )

    def ask(self, document: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any] | str:
        """Analyse a transcript."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(orjson.dumps([document, options]) + b"\n")
            self._process.stdin.flush()
            answer: dict[str, Any] | str = orjson.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            raise CorpusError("a process that analysed transcripts ended early; repeat the call to continue") from None
        return answer

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def main() -> None:
    """Analyse the transcripts in the lines of standard input, in another process."""
    analyze, out = find(), sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing else is written between the answers
    for line in sys.stdin.buffer:
        document, options = orjson.loads(line)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            result = _tried(analyze, document, options)
        if isinstance(result, dict) and caught:
            result[_WARNINGS] = [(warning.category.__name__, str(warning.message)) for warning in caught]
        out.write(orjson.dumps(result) + b"\n")
        out.flush()
