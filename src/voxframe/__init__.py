"""voxframe: speech transcripts as tidy pandas DataFrames, cached as Parquet.

    import voxframe

    client = voxframe.connect()                                   # no key, no address: the embedded service
    transcript = client.transcribe(voxframe.sample("interview"), speaker_labels=True)
    words = voxframe.load_words(transcript)                       # a DataFrame; read from disk the next time
    words.vox.talk_time()

Names are imported when they are first used, so that `import voxframe` costs next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voxframe import analysis, errors, export, options, plots, webhooks, widgets
    from voxframe.answers import load_responses, load_stream, load_stream_words, load_word_matches
    from voxframe.corpus import Corpus
    from voxframe.dictionary import describe
    from voxframe.loaders import (
        load_chapters,
        load_content_safety,
        load_content_safety_summary,
        load_entities,
        load_highlight_times,
        load_highlights,
        load_paragraphs,
        load_sentences,
        load_sentiments,
        load_topics,
        load_topics_summary,
        load_transcripts,
        load_utterances,
        load_words,
        tables,
    )
    from voxframe.samples import sample
    from voxframe.service import Client, Transcript, connect
    from voxframe.service.microphone import microphone
    from voxframe.service.portal import allow_nested_loops
    from voxframe.widgets import AskPanel, LiveTranscript, SubmitForm, Timeline, TranscriptPlayer, WordSearch

__all__ = [
    "AskPanel",
    "Client",
    "Corpus",
    "LiveTranscript",
    "SubmitForm",
    "Timeline",
    "Transcript",
    "TranscriptPlayer",
    "WordSearch",
    "allow_nested_loops",
    "analysis",
    "connect",
    "describe",
    "errors",
    "export",
    "load_chapters",
    "load_content_safety",
    "load_content_safety_summary",
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
    "options",
    "plots",
    "sample",
    "tables",
    "webhooks",
    "widgets",
]

#: Module of each public name that is no module itself.
_HOME = dict.fromkeys((name for name in __all__ if name.startswith("load_")), "loaders") | {
    "load_responses": "answers",
    "load_stream": "answers",
    "load_stream_words": "answers",
    "load_word_matches": "answers",
    "AskPanel": "widgets",
    "Client": "service",
    "Corpus": "corpus",
    "LiveTranscript": "widgets",
    "SubmitForm": "widgets",
    "Timeline": "widgets",
    "Transcript": "service",
    "TranscriptPlayer": "widgets",
    "WordSearch": "widgets",
    "allow_nested_loops": "service.portal",
    "connect": "service",
    "describe": "dictionary",
    "microphone": "service.microphone",
    "sample": "samples",
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
    globals()[name] = value  # found at once the next time
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


if "pandas" in sys.modules:  # a notebook that imported pandas first gets df.vox at once, without waiting for a loader
    importlib.import_module("voxframe.accessor")
