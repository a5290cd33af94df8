"""Other ways from a payload to DataFrames, each written as its documentation suggests. No derived columns."""

import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl

Frames = dict[str, pd.DataFrame]

_PLAIN = {"words": "words", "entities": "entities", "chapters": "chapters", "sentiments": "sentiment_analysis_results"}
#: Wire names of columns where the data dictionary has others.
_RENAMED = {
    "start": "start_ms", "end": "end_ms", "entity_type": "entity_type", "sentences_idx_start": "first_sentence_idx",
    "sentences_idx_end": "last_sentence_idx", "timestamp.start": "start_ms", "timestamp.end": "end_ms",
    "count": "occurrences", "rank": "relevance",
}  # fmt: skip


def with_json(raw: bytes) -> Frames:
    """`json.loads` and a `pd.DataFrame` of dicts for each table."""
    payload = json.loads(raw)
    frames = {name: pd.DataFrame(payload[key]) for name, key in _PLAIN.items()}
    frames["utterances"] = pd.DataFrame([{k: v for k, v in u.items() if k != "words"} for u in payload["utterances"]])
    highlights = payload["auto_highlights_result"]["results"]
    frames["highlights"] = pd.DataFrame([{k: v for k, v in h.items() if k != "timestamps"} for h in highlights])
    frames["highlight_times"] = pd.DataFrame([time for h in highlights for time in h["timestamps"]])
    frames["content_safety"] = pd.DataFrame(_labels(payload["content_safety_labels"]))
    frames["topics"] = pd.DataFrame(_labels(payload["iab_categories_result"]))
    frames["transcripts"] = pd.DataFrame([{k: payload[k] for k in ("id", "status", "text", "confidence")}])
    return _named(frames)


def _labels(analysis: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {**label, "text": s["text"], **s["timestamp"], **{k: v for k, v in s.items() if k.startswith("sentences")}}
        for s in analysis["results"]
        for label in s["labels"]
    ]


def with_json_normalize(raw: bytes) -> Frames:
    """`pd.json_normalize` with record paths."""
    payload = json.loads(raw)
    segment = ["text", ["timestamp", "start"], ["timestamp", "end"]]
    frames = {name: pd.json_normalize(payload, key) for name, key in _PLAIN.items()}
    frames["utterances"] = pd.json_normalize(payload, "utterances").drop(columns="words")
    frames["highlights"] = pd.json_normalize(payload["auto_highlights_result"], "results").drop(columns="timestamps")
    frames["highlight_times"] = pd.json_normalize(payload["auto_highlights_result"], ["results", "timestamps"])
    frames["content_safety"] = pd.json_normalize(
        payload["content_safety_labels"]["results"],
        "labels",
        [*segment, "sentences_idx_start", "sentences_idx_end"],
    )
    frames["topics"] = pd.json_normalize(payload["iab_categories_result"]["results"], "labels", segment)
    frames["transcripts"] = pd.json_normalize(payload, max_level=0)[["id", "status", "text", "confidence"]]
    return _named(frames)


def with_polars(raw: bytes) -> Frames:
    """`pl.read_json`, explode and unnest."""
    payload = pl.read_json(io.BytesIO(raw), infer_schema_length=None)

    def rows(*steps: str) -> pl.DataFrame:
        first, *rest = steps
        values = pl.col(first)
        for step in rest:
            values = values.struct.field(step)
        return payload.select(values.explode().alias("_")).unnest("_")

    frames = {name: rows(key) for name, key in _PLAIN.items()}
    frames["utterances"] = rows("utterances").drop("words")
    highlights = rows("auto_highlights_result", "results")
    frames["highlights"] = highlights.drop("timestamps")
    frames["highlight_times"] = highlights.select(pl.col("timestamps").explode().alias("_")).unnest("_")
    for name, key in (("content_safety", "content_safety_labels"), ("topics", "iab_categories_result")):
        frames[name] = rows(key, "results").explode("labels").unnest("labels").unnest("timestamp")
    frames["transcripts"] = payload.select("id", "status", "text", "confidence")
    return _named({name: frame.to_pandas() for name, frame in frames.items()})


class WithDuckDB:
    """`read_json` of a file, `unnest` in SQL. The file is written beforehand; reading it is not what takes the time."""

    def __init__(self, raw: bytes) -> None:
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name, "payload.json")
        path.write_bytes(raw)
        self._source = f"read_json('{path}', maximum_object_size={len(raw) + 1000})"
        self._connection = duckdb.connect(config={"threads": 1})

    def __call__(self, raw: bytes) -> Frames:
        run = self._connection.execute
        run(f"create or replace temp table payload as from {self._source}")
        frames = {name: run(f"select unnest({key}, max_depth := 2) from payload").df() for name, key in _PLAIN.items()}
        frames["utterances"] = run("select unnest(utterances, max_depth := 2) from payload").df().drop(columns="words")
        highlights = "select unnest(auto_highlights_result.results, max_depth := 2) from payload"
        frames["highlights"] = run(f"select * exclude (timestamps) from ({highlights})").df()
        frames["highlight_times"] = run(f"select unnest(timestamps, max_depth := 2) from ({highlights})").df()
        for name, key in (("content_safety", "content_safety_labels"), ("topics", "iab_categories_result")):
            segments = f"select unnest({key}.results, max_depth := 2) from payload"
            frames[name] = run(
                "select unnest(labels, max_depth := 2), unnest(timestamp), * exclude (labels, timestamp) "
                f"from ({segments})"
            ).df()
        frames["transcripts"] = run("select id, status, text, confidence from payload").df()
        return _named(frames)


def _named(frames: Frames) -> Frames:
    frames = {name: frame.rename(columns=_RENAMED) for name, frame in frames.items()}
    frames["transcripts"] = frames["transcripts"].rename(columns={"id": "transcript_id"})
    return frames


def peers(raw: bytes) -> dict[str, Callable[[bytes], Frames]]:
    """Each way by its name."""
    return {
        "json + pd.DataFrame": with_json,
        "json + pd.json_normalize": with_json_normalize,
        f"Polars {pl.__version__}": with_polars,
        f"DuckDB {duckdb.__version__}": WithDuckDB(raw),
    }
