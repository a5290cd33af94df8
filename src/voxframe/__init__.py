"""voxframe: speech transcripts as tidy pandas DataFrames, cached as Parquet.

    import voxframe

    client = voxframe.connect()                                   # no key, no URL: the embedded server
    transcript = client.transcribe(voxframe.sample("interview"), speaker_labels=True)
    words = voxframe.load_words(transcript)                       # a DataFrame; later read from disk
    words.vox.talk_time()

Names are imported on first use, so `import voxframe` takes almost no time. `df.vox` exists if pandas was imported
before voxframe, or once a name of voxframe was used.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # the names are in `__init__.pyi`


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("voxframe")
    if name not in __all__:
        raise AttributeError(f"module 'voxframe' has no attribute {name!r}")
    value = _load(name)
    if "pandas" in sys.modules:
        importlib.import_module("voxframe.accessor")  # df.vox, if pandas was imported after voxframe
    return value


if "pandas" in sys.modules:
    importlib.import_module("voxframe.accessor")  # df.vox
