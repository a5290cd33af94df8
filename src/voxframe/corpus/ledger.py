"""The ledger of a corpus, so that nothing is submitted or paid for twice.

It holds every job with its state, the names of recordings, the responses of services by request (exports of
transcripts and language-model responses), and what people made: names of speakers and edits of turns.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from voxframe import colors
from voxframe._files import file_name
from voxframe._text import masked, storable
from voxframe.client.embedded import is_embedded
from voxframe.corpus.catalog import Catalog, NameGiver, Writing
from voxframe.corpus.job import (
    JOB_COLUMNS,
    PENDING,
    Job,
    State,
    canonical,
    job_stem,
    merged,
    now,
    parse_row,
    parse_time,
    record_of,
)
from voxframe.corpus.store import Store, is_writable
from voxframe.errors import CorpusError, OptionError
from voxframe.frames.corrected import VERSION, with_original
from voxframe.frames.turn_edits import ARGUMENTS, Edit, Was
from voxframe.schema import CORPUS_TABLES, RECORDING_COLUMNS, SCHEMA_VERSION, TEXT_ORIGINAL
from voxframe.settings import resolve
from voxframe.validators import shown

if TYPE_CHECKING:
    import pandas as pd

    from voxframe.client import Client


_RECORDINGS = (
    "SELECT transcript_id, recording, source FROM recordings "
    "UNION ALL SELECT transcript_id, recording, source FROM jobs WHERE transcript_id IS NOT NULL"
)
_RECORD = ("transcript_id", "recording", "source", "audio")
_AMONG = "IN (SELECT value FROM json_each(?))"


#: Transcripts: an id or an object with an `id`, an iterable of these, or a DataFrame with a column `transcript_id`.
Ids: TypeAlias = "str | Iterable[str] | pd.DataFrame"


@dataclass(frozen=True)
class CachedAnswer:
    """A cached response, or a language-model request without a response yet."""

    request: Mapping[str, Any]
    content: bytes  # the response as received; empty if there is none
    created: datetime  # time when the response arrived, or when the pending request was sent, UTC


def cache_key(request: Mapping[str, Any]) -> str:
    """Return the key of a request. The order of its fields makes no difference."""
    return hashlib.sha256(json.dumps(request, sort_keys=True, default=str).encode()).hexdigest()


class Ledger:
    """The jobs of a corpus, the names of its recordings, responses, and the hashes of files that were read."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.path, self.lock, self.restore, self.rebuild = catalog.path, catalog.lock, catalog.restore, catalog.rebuild

    def find(self, key: str) -> Job | None:
        """Return the job with this key, or None."""
        return next(iter(_read(self.catalog, "WHERE key = ?", [key])), None)

    def jobs(self, service: str | None = None, states: Collection[State] = ()) -> list[Job]:
        """Return jobs, oldest first."""
        conditions = ["service = ?"] if service is not None else []
        values = [service] if service is not None else []
        if states:
            conditions.append(f"state {_AMONG}")
            values.append(json.dumps([*states]))
        where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
        return _read(self.catalog, f"{where}ORDER BY created, rowid", values)

    def of_transcript(self, transcript_id: str) -> list[Job]:
        """Return the jobs that produced a transcript."""
        return _read(self.catalog, "WHERE transcript_id = ?", [transcript_id])

    def save(self, job: Job, **changes: Any) -> Job:
        """Save a job. It is on disk when this returns."""
        return self.save_all([replace(job, **changes)])[0]

    def save_all(self, jobs: Iterable[Job]) -> list[Job]:
        """Save jobs in one transaction."""
        with self.catalog.writing() as tx:
            return _keep(tx, jobs)

    def claim(self, job: Job, transcript_id: str) -> Job | None:
        """Assign a transcript of the service's list to a job, unless another job owns it."""
        with self.catalog.writing() as tx:
            condition = "service = ? AND transcript_id = ? AND key != ?"
            if tx.rows(f"SELECT 1 FROM jobs WHERE {condition}", [job.service, transcript_id, job.key]):  # noqa: S608
                return None
            return _keep(tx, [replace(job, state="submitted", transcript_id=transcript_id, error=None)])[0]

    def plan(self, jobs: Iterable[Job]) -> None:
        """Add jobs. For known jobs, update only the source, the metadata, the name and a missing duration."""
        with self.catalog.writing() as tx:
            rows = []
            for job in _named(tx, _stamped(jobs)):
                if old := _read(tx, "WHERE key = ?", [job.key]):
                    known_s = old[0].audio_duration_s
                    duration_s = job.audio_duration_s if known_s is None else known_s
                    job = replace(
                        old[0],
                        audio_duration_s=duration_s,
                        source=job.source,
                        metadata=job.metadata,
                        recording=job.recording,
                    )
                rows.append(record_of(job))
            tx.put("jobs", rows)

    def drop_jobs(self, transcript_id: str) -> None:
        """Delete the jobs that produced a transcript, so that it is not fetched again. Name and metadata are kept."""
        if not (jobs := self.of_transcript(transcript_id)):
            return
        with self.catalog.writing() as tx:
            if not tx.rows("SELECT 1 FROM about WHERE transcript_id = ?", [transcript_id]):
                tx.put("about", [{"transcript_id": transcript_id, "metadata": jobs[0].metadata}])
            if not tx.find("recordings", transcript_id=transcript_id):
                row = (transcript_id, jobs[0].recording, jobs[0].source, jobs[0].media)
                tx.put("recordings", [dict(zip(_RECORD, row, strict=True))])
            self.catalog.forget(transcript_id, ["jobs"])

    def metadata(self) -> list[tuple[str, str]]:
        """Return transcript ids, each with metadata columns as JSON. Later rows take precedence."""
        of_jobs = "SELECT transcript_id, metadata FROM jobs WHERE transcript_id IS NOT NULL"
        rows = self.catalog.rows(f"SELECT transcript_id, metadata FROM about UNION ALL {of_jobs}")  # noqa: S608
        return [(transcript_id, text or "{}") for transcript_id, text in rows]

    def recordings(self, ids: Collection[str] | None = None) -> tuple[dict[str, str], dict[str, str | None]]:
        """Return the names and the sources of the recordings of transcripts, by transcript id."""
        where, values = "", list[str]()
        if ids is not None:
            where, values = f" WHERE transcript_id {_AMONG}", [json.dumps(list(ids))]
        names, sources = dict[str, str](), dict[str, str | None]()  # a tuple each would take time to collect
        for transcript_id, name, source in self.catalog.rows(f"SELECT * FROM ({_RECORDINGS}){where}", values):  # noqa: S608
            names[transcript_id], sources[transcript_id] = name, source
        return names, sources

    def with_recording(self, recording: str) -> list[str]:
        """Return the ids of the transcripts of the recordings with a name, oldest first."""
        query = f"SELECT transcript_id FROM ({_RECORDINGS}) WHERE recording = ?"  # noqa: S608  no value in it
        return list(dict.fromkeys(row[0] for row in self.catalog.rows(query, [recording])))

    def shared_recordings(self) -> set[str]:
        """Return the names of the recordings that have several transcripts."""
        several = "GROUP BY recording HAVING count(DISTINCT transcript_id) > 1"
        return {row[0] for row in self.catalog.rows(f"SELECT recording FROM ({_RECORDINGS}) {several}")}  # noqa: S608

    def name_recordings(
        self, recordings: Mapping[str, tuple[str, str | None, str]]
    ) -> dict[str, dict[str, str | None]]:
        """Name the recordings of transcripts that were not submitted from here. Known ones keep their names."""
        with self.catalog.writing() as tx:
            ids = [json.dumps(list(recordings))]
            submitted = {
                row[0]
                for row in tx.rows(f"SELECT transcript_id FROM jobs WHERE transcript_id {_AMONG}", ids)  # noqa: S608
            }
            rows = tx.rows(f"SELECT {', '.join(_RECORD)} FROM recordings WHERE transcript_id {_AMONG}", ids)  # noqa: S608
            named = {row[0]: dict(zip(_RECORD, row, strict=True)) for row in rows}
            giver, new = NameGiver(tx), []
            for transcript_id, (stem, source, audio) in recordings.items():
                if transcript_id not in submitted and transcript_id not in named:
                    values = (transcript_id, giver.name(stem, audio), source, audio)
                    new.append(dict(zip(_RECORD, values, strict=True)))
                    named[transcript_id] = new[-1]
            tx.put("recordings", new)
            return named

    def set_metadata(self, rows: Mapping[str, str], is_stored: Callable[[str], bool] = lambda _: True) -> list[str]:
        """Update metadata columns in one transaction, or return the ids that are unknown. Other columns stay."""
        with self.catalog.writing() as tx:  # `forget` waits, so that nothing is left of a transcript that is deleted
            jobs: dict[str, list[Job]] = {}
            for job in _read(tx, "WHERE transcript_id IS NOT NULL"):
                jobs.setdefault(str(job.transcript_id), []).append(job)
            if unknown := [i for i in rows if i not in jobs and not is_stored(i)]:
                return unknown
            stored = dict(tx.rows("SELECT transcript_id, metadata FROM about"))
            for transcript_id, text in rows.items():
                if of_it := jobs.get(transcript_id):
                    new = merged(of_it[-1].metadata, text)
                    tx.put("jobs", [record_of(replace(job, metadata=new)) for job in of_it])
                else:
                    new = merged(stored.get(transcript_id) or "{}", text)
                    tx.put("about", [{"transcript_id": transcript_id, "metadata": new}])
        return []

    def drop_unreadable(self, keys: Iterable[str]) -> None:
        """Delete jobs of recordings that could not be read before and can be read now."""
        with self.catalog.writing() as tx:
            for key in keys:
                tx.drop("jobs", key=key, attempts=0)

    def drop_pending(self, key: str) -> bool:
        """Delete a job that was not sent. Return True if there was one."""
        with self.catalog.writing() as tx:
            return any(tx.drop("jobs", key=key, state=state) for state in PENDING)

    def note_request(self, request_id: str, service: str, transcript_ids: Iterable[str]) -> None:
        """Record which transcripts a language-model response is about."""
        with self.catalog.writing() as tx:
            note = {"request_id": request_id, "service": service}
            tx.put("requests", [{**note, "transcript_id": transcript_id} for transcript_id in transcript_ids])

    def requests(self, service: str, transcript_id: str) -> list[str]:
        """Return the request ids of a service's language-model responses about a transcript."""
        query = "SELECT request_id FROM requests WHERE service = ? AND transcript_id = ? ORDER BY rowid"
        return [row[0] for row in self.catalog.rows(query, [service, transcript_id])]

    def drop_request(self, request_id: str, service: str) -> None:
        """Delete a language-model response."""
        with self.catalog.writing() as tx:
            tx.drop("requests", request_id=request_id, service=service)
            tx.drop("answers", request_id=request_id, service=service, pending_since=None)
            rows = tx.find("answers", request_id=request_id, service=service)
            tx.put("answers", [{**row, "request_id": None, "content": None} for row in rows])

    def answer(self, key: str) -> CachedAnswer | None:
        """Return the cached response to a request, or None."""
        return next(iter(self._answers("created", "key = ? AND content IS NOT NULL", key)), None)

    def llm_responses(self) -> list[CachedAnswer]:
        """Return every cached language-model response, oldest first."""
        return self._answers("created", "request_id IS NOT NULL ORDER BY rowid")

    def pending_requests(self, key: str | None = None) -> list[CachedAnswer]:
        """Return the language-model requests without a response, oldest first."""
        condition = "pending_since IS NOT NULL AND coalesce(key = ?, true) ORDER BY pending_since, rowid"
        return self._answers("pending_since", condition, key)

    def keep_answer(self, key: str, request: Mapping[str, Any], content: bytes, **columns: str) -> None:
        """Cache a response. The request is no longer pending."""
        row = {"key": key, "request": json.dumps(request, default=str), "content": content, **columns}
        with self.catalog.writing() as tx:
            tx.put("answers", [{**row, "created": now().isoformat()}])

    def mark_pending(self, key: str, service: str, request: Mapping[str, Any]) -> None:
        """Record that a request is about to be sent. An earlier response to it is kept."""
        with self.catalog.writing() as tx:
            new = {"key": key, "service": service, "request": json.dumps(request, default=str)}
            rows = tx.find("answers", key=key) or [new]
            tx.put("answers", [{**row, "pending_since": now().isoformat()} for row in rows])

    def clear_pending(self, key: str) -> None:
        """Record that a request did not reach the service."""
        with self.catalog.writing() as tx:
            tx.drop("answers", key=key, content=None)
            tx.put("answers", [{**row, "pending_since": None} for row in tx.find("answers", key=key)])

    def files(self) -> dict[str, tuple[str, str, float | None]]:
        """Return signature, hash and duration of every file read before, by path or URL."""
        query = "SELECT place, signature, media, audio_duration_s FROM files"
        return {row[0]: row[1:] for row in self.catalog.rows(query)}

    def file(self, place: str) -> tuple[str, str, float | None] | None:
        """Return signature, hash and duration of one file. None if it was not read before."""
        query = "SELECT signature, media, audio_duration_s FROM files WHERE place = ?"
        return next(iter(self.catalog.rows(query, [place])), None)

    def keep_files(self, files: Mapping[str, tuple[str, str, float | None]]) -> None:
        """Remember files in the form that `files` returns. Does nothing in a missing or read-only corpus."""
        if not files or not self.path.parent.is_dir() or not is_writable(self.path.parent):
            return
        with self.catalog.writing() as tx:
            names = ("signature", "media", "audio_duration_s")
            tx.put("files", [{"place": place, **dict(zip(names, row, strict=True))} for place, row in files.items()])

    def _answers(self, time_column: str, condition: str, *values: str | None) -> list[CachedAnswer]:
        query = f"SELECT request, content, {time_column} FROM answers WHERE {condition}"  # noqa: S608  no value in it
        rows = self.catalog.rows(query, values)
        return [CachedAnswer(json.loads(request), content or b"", parse_time(time)) for request, content, time in rows]


def _read(source: Catalog | Writing, condition: str, values: Sequence[object] = ()) -> list[Job]:
    query = f"SELECT {', '.join(JOB_COLUMNS)} FROM jobs {condition}"  # noqa: S608  no value in it
    return [parse_row(row) for row in source.rows(query, values)]


def _keep(tx: Writing, jobs: Iterable[Job]) -> list[Job]:
    ordered = _ordered(tx, _named(tx, _stamped(jobs)))
    tx.put("jobs", map(record_of, ordered))
    return ordered


def _stamped(jobs: Iterable[Job]) -> list[Job]:
    moment = now()
    return [replace(job, created=job.created or moment, updated=moment) for job in jobs]


def _named(tx: Writing, jobs: Iterable[Job]) -> list[Job]:
    """Return jobs with the names of their recordings. A known job keeps its name, unless it is given another one."""
    giver, named = NameGiver(tx), []
    for job in jobs:
        name = job.recording
        if name is None:
            name = next((name for (name,) in tx.rows("SELECT recording FROM jobs WHERE key = ?", [job.key])), None)
        if name is None:
            name = giver.name(job_stem(job.source, job.transcript_id, job.key), job.media)
        named.append(replace(job, recording=giver.keep(name, job.media)))
    return named


def _ordered(tx: Writing, jobs: Iterable[Job]) -> list[Job]:
    """Return jobs with their position among requests and responses, if they are being sent or have a new response."""
    (last,) = tx.rows("SELECT (SELECT max(sent_order) FROM jobs), (SELECT max(answered_order) FROM jobs)")
    place = max((order for order in last if order is not None), default=0)
    ordered = []
    for job in jobs:
        place += 1
        if job.state == "submitting":
            ordered.append(replace(job, sent_order=place, sent_clock_s=time.monotonic(), answered_order=None))
        elif job.transcript_id is not None and job.answered_order is None:
            ordered.append(replace(job, answered_order=place))
        else:
            ordered.append(job)
    return ordered


_ID = "transcript_id"
_FEW = 500  # transcripts that are looked up one by one


class RecordingNames:
    """Names and sources of recordings. Those of the same corpus are equal, and a copy reads the files itself.

    A transcript without a name, such as one from `corpus.raw.put`, has its id as the name of its recording.
    """

    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store, self._ledger = store, ledger

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordingNames) and self._store.root == other._store.root

    def __hash__(self) -> int:
        return hash(self._store.root)

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_corpus, (self._store.root,)

    def table(self, ids: Sequence[str]) -> pa.Table:
        """Return `transcript_id`, `recording` and `source` of transcripts. Passwords in URLs are masked."""
        names, sources = self._ledger.recordings(ids if len(ids) < _FEW else None)
        masked_sources = [source and masked(source) for source in map(sources.get, ids)]
        columns = [ids, [names.get(transcript_id, transcript_id) for transcript_id in ids], masked_sources]
        return pa.table([pa.array(values, pa.string()) for values in columns], names=[_ID, *RECORDING_COLUMNS])

    def names(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the names of the recordings of transcripts, by id."""
        return dict(zip(ids, self.table(ids)["recording"].to_pylist(), strict=True))

    def add_to(self, table: pa.Table, name: str) -> pa.Table:
        """Return a table with those of the columns `recording` and `source` that it has in a corpus."""
        missing = [n for n in RECORDING_COLUMNS if n in CORPUS_TABLES[name].names and n not in table.column_names]
        if not missing or _ID not in table.column_names:
            return table
        ids = table[_ID].unique().to_pylist()
        about = self.table(ids)
        rows = pc.index_in(table[_ID], about[_ID].combine_chunks())
        place = table.column_names.index(_ID) + 1
        for column in reversed(missing):
            unnamed = column == RECORDING_COLUMNS[0] and about[column].equals(about[_ID])
            table = table.add_column(place, column, table[_ID] if unnamed else about[column].take(rows))
        return table

    def ids(self, items: Ids) -> list[str]:
        """Return transcript ids, in their order and without duplicates, of ids or names of recordings."""
        texts = identifiers(items)
        here = set(self._store.ids()) if len(texts) > _FEW else ()  # one listing instead of a look for each file
        return list(dict.fromkeys(text if text in here else self.id(text) for text in texts))

    def id(self, text: str) -> str:
        """Return the id of a transcript, given the id or the name of its recording; an unknown text as it is."""
        return one_id(text, lambda text: self._store.has(text, "transcript"), self.with_name)

    def with_name(self, name: str) -> list[str]:
        """Return the ids of the transcripts of the recordings with a name, of jobs that are not finished, too."""
        return self._ledger.with_recording(storable(name))


def _of_corpus(root: Path) -> RecordingNames:
    store = Store(root)
    return RecordingNames(store, Ledger(Catalog(root, store)))


def identifiers(ids: Ids) -> list[str]:
    """Return transcript ids as a list without duplicates, in their order."""
    import pandas as pd  # another process that stores payloads needs none

    from voxframe._arrow import as_pandas

    ids = as_pandas(ids)
    if isinstance(ids, pd.DataFrame):
        if "transcript_id" not in ids.columns:
            raise CorpusError("the DataFrame has no column transcript_id; pass one that has it, or a list of ids")
        ids = ids["transcript_id"]
    several = ids if isinstance(ids, Iterable) and not isinstance(ids, str | bytes) else [ids]
    texts = [getattr(item, "id", item) for item in several]
    if odd := [item for item in texts if not isinstance(item, str)]:
        raise CorpusError(
            f"{shown(odd[0])} is not the id of a transcript; leave it out (a job that was not sent has none: "
            "jobs()['transcript_id'].dropna())"
        )
    return list(dict.fromkeys(texts))


def one_id(text: str, is_id: Callable[[str], bool], with_name: Callable[[str], list[str]]) -> str:
    """Return the id of a transcript, given the id or the name of its recording. An unknown text is returned as is."""
    if not isinstance(text, str):
        raise CorpusError(
            "a transcript is named by one text, its id or the name of its recording, not by "
            f"{shown(text)}; Corpus.ids() lists the ids, and Corpus.table reads several transcripts"
        )
    text = storable(text)  # SQLite and Arrow cannot hold a lone surrogate, and no id or name has one
    if not text or is_id(text):
        return text
    ids = with_name(text)
    if len(ids) > 1 and text not in ids:
        raise CorpusError(
            f"the recording {text!r} has {len(ids)} transcripts: {', '.join(ids)}. Pass one of these ids; "
            "Corpus.jobs() shows the options of each"
        )
    return ids[0] if len(ids) == 1 else text


#: Name of the embedded server in the ledger, whatever its port.
EMBEDDED = "embedded"


def check_client(client: object, needed: str = "base_url") -> None:
    """Check that a client, or None, was given."""
    if client is not None and not hasattr(client, needed):
        raise OptionError(f"client must be the result of voxframe.connect(), not of type {type(client).__name__}")


def service_name(client: Client | None) -> str:
    """Return the name of a client's service in the ledger. None: the service that `voxframe.connect()` would use."""
    check_client(client)
    address = resolve().base_url if client is None else client.base_url
    return EMBEDDED if address is None or (client is not None and is_embedded(address)) else canonical(address)


@runtime_checkable
class ReadsElsewhere(Protocol):
    """A client that reads recordings in other processes, for example on other machines."""

    def hash_recordings(self, sources: Sequence[str], ledger: Ledger) -> None:
        """Add the hashes of files to a ledger."""

    def upload_recording(self, source: str) -> str:
        """Upload a file or an object of a store. Return its URL at the service."""


class DefaultClient:
    """The client that was used last with a corpus."""

    def __init__(self) -> None:
        self._client: Client | None = None

    def use(self, client: Client | None) -> Client:
        """Return `client` and remember it. None: the one used last, otherwise that of `voxframe.connect()`."""
        from voxframe.client import connect

        check_client(client)
        self._client = client or self._client or connect()
        return self._client

    def service_name(self, client: Client | None) -> str:
        """Return the name of the service that `use(client)` would talk to, without connecting to it."""
        return service_name(client or self._client)


#: Fingerprint of a turn: its start in milliseconds, and its text as received.
Fingerprint: TypeAlias = tuple[int | None, str | None]


def fingerprints(turns: pa.Table) -> dict[int, Fingerprint]:
    """Return the fingerprint of each turn of a transcript, by `utterance_idx`."""
    turns = with_original(turns, "utterances")
    columns = (turns[name].to_pylist() for name in ("utterance_idx", "start_ms", "text", TEXT_ORIGINAL.name))
    return {n: (start, text if before is None else before) for n, start, text, before in zip(*columns, strict=True)}


def unchanged(positions: Iterable[int], made_for: Mapping[int, Fingerprint], turns: pa.Table) -> set[int]:
    """Return the positions of the turns that are unchanged."""
    now = fingerprints(turns)
    return {n for n in positions if n in now and made_for.get(n, now[n]) == now[n]}


@dataclass(frozen=True)
class SpeakerNames:
    """Names of the speakers of one transcript."""

    # Name of each speaker by label ("A"; "channel 1" if only channels are known).
    speakers: Mapping[str, str] = field(default_factory=dict)
    # Speaker of single turns by `utterance_idx`: a label or a name.
    turns: Mapping[int, str] = field(default_factory=dict)
    made: str = ""  # time of the change, UTC
    made_for: Mapping[int, Fingerprint] = field(default_factory=dict)  # fingerprints that these turns had at that time

    def still_valid(self, turns: pa.Table) -> SpeakerNames:
        """Return the names without those of turns that have changed since."""
        same = unchanged(self.turns, self.made_for, turns) if self.turns else set()
        return replace(self, turns={n: who for n, who in self.turns.items() if n in same})

    def __bool__(self) -> bool:
        return bool(self.speakers or self.turns)

    def of_turn(self, position: int) -> str:
        """Return the name of the speaker of a corrected turn."""
        return self.speakers.get(self.turns[position], self.turns[position])


class NameLog:
    """The names of speakers in the catalog, with every earlier state."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        #: The names that still apply, and what they depend on, by transcript id; see `people.py`.
        self.valid: dict[str, tuple[tuple[object, ...], SpeakerNames]] = {}

    def get(self, transcript_id: str) -> SpeakerNames:
        """Return the current names of a transcript."""
        return (self.history(transcript_id) or [SpeakerNames()])[-1]

    def history(self, transcript_id: str) -> list[SpeakerNames]:
        """Return every state of the names, the current one last."""
        rows = self._catalog.rows("SELECT state FROM names WHERE transcript_id = ? ORDER BY n", [transcript_id])
        return [state for (text,) in rows if (state := _parse(text)) is not None]

    def all(self) -> dict[str, SpeakerNames]:
        """Return the names of every transcript that has any, by transcript id."""
        rows = self._catalog.rows("SELECT transcript_id, state FROM names ORDER BY transcript_id, n")
        return {i: state for i, text in rows if (state := _parse(text)) is not None}

    def every_state(self) -> list[tuple[str, SpeakerNames]]:
        """Return every state of the names of all transcripts, with the id of the transcript, the oldest first."""
        rows = self._catalog.rows("SELECT transcript_id, state FROM names ORDER BY rowid")
        return [(i, state) for i, text in rows if (state := _parse(text)) is not None]

    def add(self, transcript_id: str, names: SpeakerNames) -> None:
        """Add a state, which is the current one."""
        state = asdict(names) | {"made_for": {str(n): list(of) for n, of in names.made_for.items()}}
        with self._catalog.writing() as tx:
            (n,) = tx.rows("SELECT coalesce(max(n), -1) + 1 FROM names WHERE transcript_id = ?", [transcript_id])[0]
            text = json.dumps(state, ensure_ascii=False)
            tx.put("names", [{"transcript_id": transcript_id, "n": n, "state": text}])
        colors.recordings.pop(transcript_id, None)

    def undo(self, transcript_id: str) -> bool:
        """Remove the current state. Return False if there is none."""
        with self._catalog.writing() as tx:
            (n,) = tx.rows("SELECT max(n) FROM names WHERE transcript_id = ?", [transcript_id])[0]
            found = n is not None and bool(tx.drop("names", transcript_id=transcript_id, n=n))
        colors.recordings.pop(transcript_id, None)
        return found


def _parse(text: str) -> SpeakerNames | None:
    """Return a stored state; None if it is of a later version, so that it does not fit."""
    try:
        state = json.loads(text)
        made_for = {int(n): (start_ms, of) for n, (start_ms, of) in state.get("made_for", {}).items()}
        turns = {int(n): who for n, who in state["turns"].items()}
        return SpeakerNames(dict(state["speakers"]), turns, state["made"], made_for)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


class EditLog:
    """The edits of the transcripts of a corpus."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def all(self, transcript_id: str | None = None) -> dict[str, list[Edit]]:
        """Return every edit of each transcript that has any, in order."""
        edits: dict[str, list[Edit]] = {}
        for i, text in self._rows(None if transcript_id is None else [transcript_id]):
            if (edit := _parsed_edit(text)) is not None:
                edits.setdefault(i, []).append(edit)
        return edits

    def active(self, transcript_id: str) -> list[Edit]:
        """Return the edits of a transcript that were not undone."""
        return [edit for edit in self.all(transcript_id).get(transcript_id, []) if edit.undone is None]

    def hashes(self, ids: Iterable[str] | None = None) -> dict[str, str]:
        """Return a text that changes with the edits that apply, of each transcript that has any."""
        ids = None if ids is None else list(ids)
        texts: dict[str, list[str]] = {}
        for i, text in self._rows(ids if ids is not None and len(ids) < 64 else None):
            if '"undone": null' in text:
                texts.setdefault(i, []).append(text)
        edited = texts.keys() if ids is None else texts.keys() & set(ids)
        return {i: hashlib.sha256(repr((VERSION, SCHEMA_VERSION, texts[i])).encode()).hexdigest()[:32] for i in edited}

    def stamps(self) -> dict[str, str]:
        """Return the texts of `hashes` by the stem of the files of the transcript."""
        return {file_name(i): key for i, key in self.hashes().items()}

    def keep(self, transcript_id: str, edits: Sequence[Edit]) -> None:
        """Store the edits of a transcript, of which none is ever removed."""
        texts = [text for _, text in self._rows([transcript_id])]
        rows = []
        for n, edit in enumerate(edits):
            text = json.dumps(asdict(edit), ensure_ascii=False)
            if n >= len(texts) or texts[n] != text:
                rows.append({"transcript_id": transcript_id, "n": n, "edit": text})
        with self._catalog.writing() as tx:
            tx.put("edits", rows)

    def _rows(self, ids: Sequence[str] | None) -> list[tuple[str, str]]:
        if ids is None:
            return self._catalog.rows("SELECT transcript_id, edit FROM edits ORDER BY transcript_id, n")
        among = "transcript_id IN (SELECT value FROM json_each(?))"
        query = f"SELECT transcript_id, edit FROM edits WHERE {among} ORDER BY transcript_id, n"  # noqa: S608
        return self._catalog.rows(query, [json.dumps([*ids])])


def _parsed_edit(text: str) -> Edit | None:
    """Return a stored edit; None if it is of a later version, so that it does not fit."""
    try:
        row: dict[str, Any] = json.loads(text)
        edit = Edit(**{**row, "was": _was(row["was"]), "other_was": _was(row["other_was"])})
        return edit if ARGUMENTS.get(edit.action, frozenset()) <= edit.value.keys() else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _was(fields: dict[str, Any] | None) -> Was | None:
    return None if fields is None else Was(**fields)
