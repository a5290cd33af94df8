"""Mutated payloads through every loader, in a child process: tables or a PayloadError, and the process lives on.

A case is a small payload with one to three mutations, made from a seed. The fast way and the tolerant way have to give
equal tables, and so have payloads that are added to a corpus together. A child that dies or hangs is a failure of the
case it was at; another child goes on behind it.
"""

import argparse
import copy
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.benchmarks.payloads import transcript

DEEP = 200_000
_HANGS_S = 120.0
_TOGETHER = 40  # cases that are added to one corpus; the fast way reads about eight of them
_WORDS = [{"text": "Hi", "start": 0, "end": 90, "confidence": 0.9, "speaker": "A"}]
_SPOKEN = {"text": "Hi", "start": 0, "end": 90, "confidence": 0.9, "words": _WORDS}
#: Answers of the service, of which each case mutates one; transcripts make most of the cases.
_ANSWERS: list[dict[str, Any]] = [
    {"id": "a", "confidence": 0.9, "audio_duration": 1, "sentences": [_SPOKEN]},
    {"id": "a", "confidence": 0.9, "audio_duration": 1, "paragraphs": [_SPOKEN]},
    {"id": "a", "total_count": 1, "matches": [{"text": "hi", "count": 1, "timestamps": [[0, 90]], "indexes": [0]}]},
    {"request_id": "r", "response": [{"question": "Why?", "answer": "Rain."}], "usage": {"input_tokens": 5}},
    {"message_type": "FinalTranscript", "text": "Hi", "audio_start": 0, "audio_end": 90, "words": _WORDS},
]
_JUNK: list[Any] = [
    None, True, 0, 7, -1, 2.5, "", "x", "1", "nan", [], {}, [[]], [None], [1, "x"], {"a": 1}, [{}], {"": {"": []}},
    "a" * 3000,
]  # fmt: skip
_HUGE = ["9" * 30, "9" * 5000, "-" + "9" * 400, "1e400", "1e99999999999", "2.5", "-0.0", "1e-400", "0." + "3" * 5000,
         str(2**53 + 1), str(2**63), str(-(2**63) - 1), f"{2**63}.0", "4" * 400 + ".5"]  # fmt: skip
_NULS = ["\0", "1\0", "\0\0x", "a\\\0", "true\0"]
_HALVES = ["\ud800", "x\udc00", "\udc00\ud800", "1\ud83d"]


@dataclass
class Case:
    """A payload while it is mutated.

    Attributes:
        chance: Source of every choice.
        document: The payload as an object.
        verbatim: JSON to put in the place of a text that stands for it.
    """

    chance: random.Random
    document: Any
    verbatim: dict[str, str] = field(default_factory=dict)

    def places(self) -> list[tuple[Any, Any]]:
        """Return every container of the document with each of its keys or positions."""
        found, left = [], [self.document]
        while left:
            node = left.pop()
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            found += [(node, key) for key in keys]
            left += [node[key] for key in keys if isinstance(node[key], dict | list)]
        return found

    def put(self, value: Any) -> None:
        """Put a value in the place of any other."""
        if places := self.places():
            node, key = self.chance.choice(places)
            node[key] = copy.deepcopy(value)

    def put_json(self, text: str) -> None:
        """Put JSON in the place of any value."""
        name = f"verbatim {len(self.verbatim)}"
        self.verbatim[json.dumps(name)] = text
        self.put(name)

    def encode(self) -> bytes:
        """Return the payload as JSON."""
        ascii_only = self.chance.random() < 0.5
        text = json.dumps(self.document, ensure_ascii=ascii_only, separators=(",", self.chance.choice([":", ": "])))
        for name, value in self.verbatim.items():
            text = text.replace(name, value)
        return text.encode("utf-8", "surrogatepass")


def _missing(case: Case) -> None:
    if places := case.places():
        node, key = case.chance.choice(places)
        del node[key]


def _extra(case: Case) -> None:
    nodes = [case.document, *(node[key] for node, key in case.places() if isinstance(node[key], dict))]
    name = case.chance.choice(["zz", "Text", "", "start ", "words", "utterances", "labels", "extra"])
    case.chance.choice(nodes).setdefault(name, copy.deepcopy(case.chance.choice(_JUNK)))


def _nul(case: Case) -> None:
    nodes = [(node, key) for node, key in case.places() if isinstance(node, dict)]
    if nodes and case.chance.random() < 0.3:
        node, key = case.chance.choice(nodes)
        node[f"{key}\0"] = node.pop(key) if case.chance.random() < 0.5 else {"\0": "\0"}
    else:
        case.put(case.chance.choice([*_NULS, *([text] for text in _NULS), *({text: text} for text in _NULS)]))


def _deep(case: Case) -> None:
    # Near the limit of the stack one step may have enough of it and the next not.
    levels = case.chance.choice([DEEP, DEEP, *range(900, 1030)])
    opened, closed = case.chance.choice([("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
    case.put_json(opened * levels + case.chance.choice(["", "1"] if opened == "[" else ["1"]) + closed * levels)


#: Mutations of the object, by name.
OBJECTS: dict[str, Callable[[Case], None]] = {
    "missing field": _missing,
    "null": lambda case: case.put(None),
    "extra field": _extra,
    "wrong type": lambda case: case.put(case.chance.choice(_JUNK)),
    "NUL as an escape": _nul,
    "lone surrogate": lambda case: case.put(case.chance.choice(_HALVES)),
    "deep nesting": _deep,
    "huge or fractional number": lambda case: case.put_json(case.chance.choice(_HUGE)),
    "NaN": lambda case: case.put_json(case.chance.choice(["NaN", "Infinity", "-Infinity", '"NaN"', '"inf"'])),
}


def _duplicate(raw: bytes, chance: random.Random) -> bytes:
    keys = list(re.finditer(rb'"\w+": ?(?=[^,}\]])', raw))
    if not keys:
        return raw
    key = chance.choice(keys)
    return raw[: key.start()] + key[0] + json.dumps(chance.choice(_JUNK)).encode() + b"," + raw[key.start() :]


def _inserted(raw: bytes, piece: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(raw) + 1)
    return raw[:at] + piece + raw[at:]


def _utf16(raw: bytes, chance: random.Random) -> bytes:
    encoding = chance.choice(["utf-16", "utf-16-le", "utf-16-be"])
    return raw.decode("utf-8", "replace").encode(encoding)


#: Mutations of the bytes, by name.
BYTES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "duplicate key": _duplicate,
    "raw NUL": lambda raw, chance: _inserted(raw, b"\0", chance),
    "raw byte": lambda raw, chance: _inserted(raw, bytes([chance.randrange(256)]), chance),
    "BOM": lambda raw, _: b"\xef\xbb\xbf" + raw,
    "UTF-16": _utf16,
    "trailing garbage": lambda raw, chance: raw + chance.choice([b"x", b"{}", b"\0", b"\n" + raw, b"]", b"\n<html>"]),
    "truncation": lambda raw, chance: raw[: chance.randrange(len(raw) + 1)],
}
MUTATIONS = (*OBJECTS, *BYTES)


@lru_cache
def _transcript(words: int) -> dict[str, Any]:
    return transcript(words, seed=words)


def case(seed: int, number: int) -> tuple[list[str], bytes]:
    """Return the names of the mutations and the bytes of one case; the mutations take turns as the first one."""
    chance = random.Random(f"{seed} {number}")
    names = [MUTATIONS[number % len(MUTATIONS)], *chance.choices(MUTATIONS, k=chance.choice([0, 0, 1, 2]))]
    document = chance.choice(_ANSWERS) if chance.random() < 0.2 else _transcript(chance.randrange(1, 25))
    document = json.loads(json.dumps(document))
    if "status" in document:  # a transcript, that can be added to a corpus with those of other cases
        document["id"] = f"case{number}"
    made = Case(chance, document)
    for name in names:
        if name in OBJECTS:
            OBJECTS[name](made)
    raw = made.encode()
    for name in names:
        if name in BYTES:
            raw = BYTES[name](raw, chance)
    return names, raw


def examine(raw: bytes, folder: Path, *, corpus_too: bool) -> str:
    """Give one payload to everything that reads payloads.

    Args:
        raw: The payload.
        folder: A place for files.
        corpus_too: Whether to add it to a corpus, beside another transcript that has to stay readable.

    Returns:
        "tables", or "PayloadError" if the payload cannot be read.
    """
    import voxframe
    from tests.frames.two_ways import check
    from voxframe.errors import PayloadError

    outcomes = []
    loaders = [voxframe.tables, voxframe.load_words, voxframe.load_sentences, voxframe.load_paragraphs]
    loaders += [voxframe.load_word_matches, voxframe.load_responses, lambda raw: voxframe.load_stream([raw])]
    for load in loaders:
        try:
            load(raw)
        except PayloadError:
            outcomes.append("PayloadError")
        else:
            outcomes.append("tables")
    check(raw)
    if corpus_too:
        path = folder / "case.json"
        path.write_bytes(raw)
        corpus = voxframe.Corpus(folder / "corpus")
        if "other" not in corpus:
            corpus.add({"id": "other", "status": "completed", "words": _WORDS})
        corpus.add(path)
        if corpus.table("words")["transcript_id"].to_list().count("other") != len(_WORDS):
            raise AssertionError("another transcript of the corpus is not read")
        for transcript_id in {*corpus.ids()} - {"other"}:
            corpus._archive.remove(transcript_id)
    return outcomes[0]


def examine_together(raws: Sequence[bytes]) -> None:
    """Make the tables of several payloads together, in a corpus and alone, and compare them.

    Args:
        raws: The payloads.
    """
    import voxframe
    from voxframe.frames import decode_transcript, tables_together, transcript_tables

    documents = {raw: document for raw in raws if (document := decode_transcript(raw)) is not None}
    swift = [raw for raw, document in documents.items() if tables_together([document], ["a"]) is not None]
    ids = [f"t{place}" for place in range(len(swift))]
    together = tables_together([documents[raw] for raw in swift], ids) if swift else []
    for raw, transcript_id, made in zip(swift, ids, together or [], strict=False):
        _compare(made, _read(transcript_tables, raw, transcript_id=transcript_id), raw)
    with tempfile.TemporaryDirectory() as folder:
        corpus = voxframe.Corpus(folder)
        # Those of which the tables can be made together come first, in one group; then all.
        found = [corpus.add(some, progress=False) for some in (swift, raws) if some]
        unreadable = [why for one in found for _, why in one.left_out if why.startswith("it was stored")]
        kept, files = sum(one.added for one in found) + len(unreadable), [*Path(folder, "raw").rglob("*.json.zst")]
        if kept != len(files):
            raise AssertionError(f"{kept} payloads were reported as stored, but {len(files)} are")
        for transcript_id in corpus.ids():
            raw = corpus.raw.get(transcript_id)
            alone = _read(transcript_tables, raw, transcript_id=transcript_id)
            _compare(_read(corpus._archive.tables, transcript_id), alone, raw)


def _read(read: Callable[..., Mapping[str, Any]], *source: Any, **options: Any) -> Mapping[str, Any] | str:
    """Return tables, or the error if the payload cannot be read."""
    from voxframe.errors import PayloadError

    try:
        return read(*source, **options)
    except PayloadError as error:
        return str(error)


def _compare(made: Mapping[str, Any] | str, expected: Mapping[str, Any] | str, raw: bytes) -> None:
    if any("nested too deeply" in found for found in (made, expected) if isinstance(found, str)):
        return  # near the limit of the stack, one way may have enough of it and another not
    if isinstance(made, str) or isinstance(expected, str):
        if isinstance(made, str) != isinstance(expected, str):
            raise AssertionError(f"only one way reads {raw!r}")
        return
    for name, table in expected.items():
        same = made[name].cast(table.schema)
        same.validate(full=True)
        if not same.equals(table):
            raise AssertionError(f"{name} of {raw!r} differs")


def child(seed: int, first: int, last: int) -> None:
    """Examine cases and write a line for each: its number, and the outcome or the failure."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, last):
            print(number, "begins", flush=True)
            try:
                outcome = examine(case(seed, number)[1], Path(folder), corpus_too=number % 19 == 0)
                if number % _TOGETHER == _TOGETHER - 1:
                    examine_together([case(seed, one)[1] for one in range(number - _TOGETHER + 1, number + 1)])
            except BaseException as error:  # noqa: BLE001 - whatever it is, the case has failed
                outcome = f"failed: {type(error).__name__}: {str(error)[:200]!r}"
            print(number, outcome, flush=True)


def outcomes(seed: int, first: int, last: int) -> Iterator[tuple[int, str]]:
    """Yield number and outcome of each case, examined by a child process; by another one if the first dies."""
    while first < last:
        command = [sys.executable, "-m", "tests.benchmarks", "fuzz", "--seed", str(seed), "--child", f"{first}:{last}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
            assert running.stdout is not None
            begun = first - 1
            watch = threading.Timer(_HANGS_S, running.kill)
            watch.start()
            for line in running.stdout:
                number, _, outcome = line.rstrip("\n").partition(" ")
                watch.cancel()
                if outcome == "begins":
                    begun = int(number)
                    watch = threading.Timer(_HANGS_S, running.kill)
                    watch.start()
                else:
                    first = int(number) + 1
                    yield int(number), outcome
            watch.cancel()
        if first < last:
            yield max(begun, first), f"failed: the process ended with code {running.returncode}"
            first = max(begun, first) + 1


def main(arguments: list[str] | None = None) -> int:
    """Run the cases and print their outcomes by mutation.

    Returns:
        1 if a case failed, else 0.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=20_000, help="cases to run (default 20000)")
    parser.add_argument("--seed", type=int, default=1, help="of every case (default 1)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.child:
        first, _, last = given.child.partition(":")
        child(given.seed, int(first), int(last))
        return 0
    counts: dict[str, Counter[str]] = {name: Counter() for name in MUTATIONS}
    failed = 0
    for number, outcome in outcomes(given.seed, 0, given.cases):
        names = case(given.seed, number)[0]
        if outcome.startswith("failed"):
            failed += 1
            print(f"case {number} ({', '.join(names)}): {outcome}", flush=True)
            outcome = "failed"
        for name in set(names):
            counts[name][outcome] += 1
    print(f"{given.cases} cases of seed {given.seed}, {failed} failed\n")
    print(f"{'mutation':28}{'tables':>8}{'PayloadError':>14}{'failed':>8}")
    for name, found in counts.items():
        print(f"{name:28}{found['tables']:>8}{found['PayloadError']:>14}{found['failed']:>8}")
    return 1 if failed else 0
