"""A small model, and a stand-in for the hub and the package index on loopback."""

import base64
import hashlib
import io
import random
import re
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from voxframe.models.catalog import Model, ModelFile

CONTENT = {"config.json": b'{"small": true}', "model.bin": random.Random(13).randbytes(400_000)}
#: Members of its two data packages: model.bin in two halves, config.json in an archive.
PARTS = ("small_model_1/data/model.bin.1", "small_model_2/data/model.bin.2")
ARCHIVED = "small_model_1/model.zip!config.json"


def _file(name: str, *members: str) -> ModelFile:
    return ModelFile(name, len(CONTENT[name]), hashlib.sha256(CONTENT[name]).hexdigest(), members)


SMALL = Model(
    name="small",
    purpose="tests",
    license="MIT",
    repository="voxframe-tests/small",
    packages=("small-model-1==1.0", "small-model-2==1.0"),
    package_bytes=400_000,
    files=(_file("model.bin", *PARTS), _file("config.json", ARCHIVED)),
    revision="0" * 40,
)

#: Runs a statement with the small model known, in a process of its own; prints the result, or the ModelError.
PROGRAM = f"""
import os, resource, sys
from voxframe import _progress, models
from voxframe.errors import ModelError
from voxframe.models import catalog, downloads
import encodings.idna, filelock, platform, tqdm.auto
models.MODELS["small"] = eval({SMALL!r}, vars(catalog))
try:
    exec(sys.argv[1])
except ModelError as error:
    print("ModelError:", error)
""".replace(repr(SMALL), repr(repr(SMALL)))


def write_model(folder: Path, **changed: bytes) -> Path:
    """Write the files of the small model; keyword "model" or "config" changes one."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in CONTENT.items():
        (folder / name).write_bytes(changed.get(name.partition(".")[0], content))
    return folder


def write_wheels(folder: Path, model: bytes = CONTENT["model.bin"]) -> Path:
    """Write the two data packages, whose code would leave a file "imported" beside them if it ran."""
    folder.mkdir()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as inner:
        inner.writestr("config.json", CONTENT["config.json"])
        inner.writestr("../../escaped.json", b"{}")
    half = len(model) // 2
    members = [
        {PARTS[0]: model[:half], "small_model_1/model.zip": archive.getvalue(), "../escaped.py": b""},
        {PARTS[1]: model[half:]},
    ]
    for number, content in enumerate(members, 1):
        name, info = f"small_model_{number}", f"small_model_{number}-1.0.dist-info"
        code = f"open({str(folder / 'imported')!r}, 'w')".encode()
        content |= {f"{name}/__init__.py": code, "sitecustomize.py": code}
        content[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode()
        content[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        record = [f"{path},sha256={_record_hash(data)},{len(data)}" for path, data in content.items()]
        content[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,"]).encode()
        with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
            for path, data in content.items():
                wheel.writestr(path, data)
    return folder


def _record_hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


class Hub(ThreadingHTTPServer):
    """Serves files as the hub does: model.bin by a redirect to another address, with ranges.

    Attributes:
        url: Its address.
        content: What it serves, by file name.
        requests: Method, path and range of each request.
        breaks: Numbers of bytes of model.bin after which the next connections break.
        ranges: Whether it honours ranges.
        stalls: Whether it stops in the middle of model.bin until `released`.
        silent: Whether it accepts connections and answers nothing until `released`.
        answering: Set when it begins to answer.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.content = dict(CONTENT)
        self.requests: list[tuple[str, str, str | None]] = []
        self.breaks: list[int] = []
        self.ranges = True
        self.stalls = self.silent = False
        self.answering, self.released = threading.Event(), threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that leave are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        hub = self.server
        wanted = self.headers["Range"]
        hub.requests.append((self.command, self.path, wanted))
        if hub.silent:
            hub.answering.set()
            hub.released.wait()
            return
        name = self.path.rpartition("/")[2]
        if (
            not re.fullmatch(rf"/({SMALL.repository}/resolve/{SMALL.revision}|cdn)/[\w.]+", self.path)
            or name not in hub.content
        ):
            self.send_error(404)
            return
        content = hub.content[name]
        redirected = name == "model.bin" and not self.path.startswith("/cdn/")
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and hub.ranges else 0
        self.send_response(302 if redirected else 206 if start else 200)
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("X-Linked-Size", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        if redirected:
            self.send_header("Location", f"{hub.url}/cdn/{name}")
        self.send_header("Content-Length", "0" if redirected else str(len(content) - start))
        self.end_headers()
        if redirected or self.command == "HEAD":
            return
        if name != "model.bin":
            self.wfile.write(content[start:])
            return
        end = start + (hub.breaks.pop(0) if hub.breaks else len(content))
        if hub.stalls:
            self.wfile.write(content[start : start + 150_000])
            hub.answering.set()
            hub.released.wait()
        self.wfile.write(content[start:end])

    do_HEAD = do_GET  # noqa: N815 - the name that http.server asks for

    def log_message(self, *_: object) -> None:
        """Keep test output quiet."""


@contextmanager
def serving() -> Iterator[Hub]:
    """Run a stand-in."""
    with Hub() as hub:
        threading.Thread(target=hub.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield hub
        finally:
            hub.released.set()
            hub.shutdown()
