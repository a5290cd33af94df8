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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voxframe import (
        analysis,
        compare,
        errors,
        export,
        importers,
        models,
        options,
        plots,
        scale,
        voices,
        webhooks,
        widgets,
    )
    from voxframe._files import sample
    from voxframe.client import Client, Transcript, connect
    from voxframe.client.async_bridge import allow_nested_loops
    from voxframe.client.stream.audio_sources import microphone
    from voxframe.corpus import Corpus
    from voxframe.dictionary import describe
    from voxframe.loaders import (
        analyze,
        load_chapters,
        load_content_safety,
        load_content_safety_summary,
        load_custom_topics,
        load_custom_topics_summary,
        load_entities,
        load_highlight_times,
        load_highlights,
        load_paragraphs,
        load_responses,
        load_sentences,
        load_sentiments,
        load_stream,
        load_stream_words,
        load_topics,
        load_topics_summary,
        load_transcripts,
        load_utterances,
        load_word_matches,
        load_words,
        tables,
    )
    from voxframe.widgets import (
        AskPanel,
        Dispersion,
        GroupComparison,
        LiveTranscript,
        PassageList,
        SubmitForm,
        Timeline,
        TranscriptPlayer,
        WordSearch,
    )

__all__ = [
    "AskPanel",
    "Client",
    "Corpus",
    "Dispersion",
    "GroupComparison",
    "LiveTranscript",
    "PassageList",
    "SubmitForm",
    "Timeline",
    "Transcript",
    "TranscriptPlayer",
    "WordSearch",
    "allow_nested_loops",
    "analysis",
    "analyze",
    "compare",
    "connect",
    "describe",
    "errors",
    "export",
    "importers",
    "load_chapters",
    "load_content_safety",
    "load_content_safety_summary",
    "load_custom_topics",
    "load_custom_topics_summary",
    "load_entities",
    "load_highlight_times",
    "load_highlights",
    "load_paragraphs",
    "load_responses",
    "load_sentences",
    "load_sentiments",
    "load_stream",
    "load_stream_words",
    "load_topics",
    "load_topics_summary",
    "load_transcripts",
    "load_utterances",
    "load_word_matches",
    "load_words",
    "microphone",
    "models",
    "options",
    "plots",
    "sample",
    "scale",
    "tables",
    "voices",
    "webhooks",
    "widgets",
]

#: Module of each public name that is not a module itself.
_HOME = {
    **dict.fromkeys((name for name in __all__ if name.startswith("load_")), "loaders"),
    **dict.fromkeys((name for name in __all__ if name[0].isupper()), "widgets"),
    "Client": "client",
    "Corpus": "corpus",
    "Transcript": "client",
    "allow_nested_loops": "client.async_bridge",
    "analyze": "loaders",
    "connect": "client",
    "describe": "dictionary",
    "microphone": "client.stream.audio_sources",
    "sample": "_files",
    "tables": "loaders",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("voxframe")
    if name not in __all__:
        raise AttributeError(f"module 'voxframe' has no attribute {name!r}")
    module = importlib.import_module(f"voxframe.{_HOME.get(name, name)}")
    value = getattr(module, name) if name in _HOME else module
    globals()[name] = value
    if "pandas" in sys.modules:
        importlib.import_module("voxframe.accessor")  # df.vox, if pandas was imported after voxframe
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


if "pandas" in sys.modules:
    importlib.import_module("voxframe.accessor")  # df.vox
