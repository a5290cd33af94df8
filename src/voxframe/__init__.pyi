# The public names; `__init__.py` imports each when it is first used.
from . import (
    analysis as analysis,
    compare as compare,
    errors as errors,
    export as export,
    formats as formats,
    importers as importers,
    models as models,
    options as options,
    plots as plots,
    scale as scale,
    voices as voices,
    webhooks as webhooks,
    widgets as widgets,
)
from ._files import sample as sample
from .client import (
    Client as Client,
    Transcript as Transcript,
    connect as connect,
)
from .client.async_bridge import allow_nested_loops as allow_nested_loops
from .client.stream.audio import microphone as microphone
from .corpus import Corpus as Corpus
from .dictionary import describe as describe
from .loaders import (
    analyze as analyze,
    load_chapters as load_chapters,
    load_content_safety as load_content_safety,
    load_content_safety_summary as load_content_safety_summary,
    load_custom_topics as load_custom_topics,
    load_custom_topics_summary as load_custom_topics_summary,
    load_entities as load_entities,
    load_highlight_times as load_highlight_times,
    load_highlights as load_highlights,
    load_paragraphs as load_paragraphs,
    load_responses as load_responses,
    load_sentences as load_sentences,
    load_sentiments as load_sentiments,
    load_stream as load_stream,
    load_stream_words as load_stream_words,
    load_topics as load_topics,
    load_topics_summary as load_topics_summary,
    load_transcripts as load_transcripts,
    load_utterances as load_utterances,
    load_word_matches as load_word_matches,
    load_words as load_words,
    tables as tables,
)
from .widgets import (
    AskPanel as AskPanel,
    Dispersion as Dispersion,
    GroupComparison as GroupComparison,
    LiveTranscript as LiveTranscript,
    PassageList as PassageList,
    SubmitForm as SubmitForm,
    Timeline as Timeline,
    TranscriptPlayer as TranscriptPlayer,
    WordSearch as WordSearch,
)

__version__: str
