"""A recognizable API key, and a search for it in files."""

import base64
import gzip
import sqlite3
import zipfile
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import zstandard

CANARY = "canary+7f3c9e51/b2d84a06"


def traces(folder: Path) -> list[str]:
    """Return the files below a folder that contain the canary, plain, encoded or compressed."""
    plain = CANARY.encode()
    forms = {plain, plain[::-1], quote(CANARY, safe="").encode(), CANARY.encode("utf-16-le"), plain.hex().encode()}
    forms |= {base64.b64encode(b"x" * n + plain)[4:-4] for n in range(3)}
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(form in content for content in contents(path) for form in forms)
    ]


def contents(path: Path) -> list[bytes]:
    """Yield the bytes of a file, and their decoded and decompressed forms."""
    data = path.read_bytes()
    if data[:4] == b"PAR1":
        table = pq.read_table(path, partitioning=None)
        return [data, repr(table.to_pydict()).encode(), repr(table.schema.metadata).encode()]
    if data[:4] == zstandard.FRAME_HEADER or path.suffix == ".zst":
        return [data, zstandard.ZstdDecompressor().decompress(data, max_output_size=1 << 26)]
    if data[:2] == b"\x1f\x8b":
        return [data, gzip.decompress(data)]
    if data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(path) as archive:
            return [data, *(archive.read(name) for name in archive.namelist())]
    if data[:15] == b"SQLite format 3":
        with sqlite3.connect(path) as db:
            return [data, "\n".join(db.iterdump()).encode()]
    return [data]
