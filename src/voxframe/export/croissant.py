"""Croissant metadata of an exported data set: its files with their hashes, and the columns of its tables.

Data set hubs and search engines read it, and `mlcroissant` loads the tables through it. Source: the Croissant format
1.0, https://docs.mlcommons.org/croissant/docs/croissant-spec.html.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from voxframe.export.targets import Folder
from voxframe.schema import CORPUS_TABLES, SCHEMA_VERSION

_TYPES = {"csv": "text/csv", "jsonl": "application/jsonlines", "parquet": "application/x-parquet"}
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
} | {
    name: f"cr:{name}"
    for name in (
        "citeAs column equivalentProperty extract field fileObject fileProperty fileSet format includes isLiveDataset "
        "jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate separator source "
        "subField transform"
    ).split()
}


def croissant(
    name: str,
    description: str,
    license: str | None,  # noqa: A002  the key of the format
    form: str,
    tables: Mapping[str, tuple[pa.Schema, int, Mapping[str, str]]],
    into: Folder,
) -> str:
    """Return the metadata of a data set as JSON-LD.

    Args:
        tables: Schema, number of rows and patterns of the files of each table by split, by name.
    """
    distribution, records = [], []
    for table, (schema, rows, patterns) in tables.items():
        suffix = form if form in _TYPES else "parquet"  # huggingface
        paths = [path for path in into.checksums if path == f"{table}.{suffix}" or path.startswith(f"{table}/")]
        if not rows or not paths:
            continue
        about: dict[str, Any] = {"@id": table, "name": table, "encodingFormat": _TYPES[suffix]}
        kind = "fileObject" if len(paths) == 1 else "fileSet"
        if kind == "fileObject":
            about |= {"@type": "cr:FileObject", "contentUrl": paths[0], "sha256": into.checksums[paths[0]]}
        else:
            about |= {"@type": "cr:FileSet", "includes": list(patterns.values())}
        distribution.append(about)
        in_folders = {part.partition("=")[0] for part in paths[0].split("/")[1:-1]}
        fields = [
            {
                "@type": "cr:Field",
                "@id": f"{table}/{column.name}",
                "name": column.name,
                "description": _about(table, column.name),
                "dataType": _data_type(column.type),
                "source": {kind: {"@id": table}, "extract": {"column": column.name}},
            }
            for column in schema
            if column.name not in in_folders
        ]
        records.append({"@type": "cr:RecordSet", "@id": f"{table}-rows", "name": f"{table}-rows", "field": fields})
    document = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": description,
        **({"license": license} if license else {}),
        "datePublished": datetime.now(UTC).date().isoformat(),
        "version": f"1.0.0+{SCHEMA_VERSION}",
        "distribution": distribution,
        "recordSet": records,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _about(table: str, name: str) -> str:
    """Return what a column holds, with its unit; empty for a column that is not in the data dictionary."""
    for column in CORPUS_TABLES[table].columns if table in CORPUS_TABLES else ():
        if column.name == name:
            return f"{column.description} Unit: {column.unit}." if column.unit else column.description
    return ""


def _data_type(of: pa.DataType) -> str:
    if pa.types.is_boolean(of):
        return "sc:Boolean"
    if pa.types.is_integer(of):
        return "sc:Integer"
    if pa.types.is_floating(of):
        return "sc:Float"
    return "sc:Date" if pa.types.is_date(of) else "sc:DateTime" if pa.types.is_timestamp(of) else "sc:Text"
