"""The embedded server: the transcription API on the local machine, without an account or a network.

It runs as a separate process, started by `voxframe serve`, `python -m voxframe_server` or `voxframe.connect()`. It is
made for one user; for production, point `base_url` at a hosted service.

    server      start-up           jobs       queue, worker processes, webhooks
    http        REST endpoints     realtime   streaming

What it computes is the work of `voxframe_engine`, in worker processes.

The tables list the fields of the API and their implementation. Figures are for the default engine, measured by
`python -m tests.benchmarks` (`speech`, `analyses`, `boost`). The texts for the analyses were written independently of
the methods. The named module of this package or of the engine has the
details.

Fields of a request. An invalid value gives a 400 that names it, and unknown fields are ignored. All fields except the
secret are echoed.

| field | implementation | module |
|---|---|---|
| audio_url | fetched from public addresses and allowed origins; or an upload | jobs.worker_process, speech.audio |
| language_code | all of Whisper's languages | speech.engines |
| language_detection | by whisper; a 400 with an engine that cannot | speech.engines |
| language_confidence_threshold | below it, the job is an error | transcription |
| speech_model | nano is tiny.en for English; else base, 2 to 6 % of words wrong | speech.whisper |
| punctuate, format_text | as the model writes; by rules if it writes no mark | text.formatting |
| disfluencies | of English; whisper writes few filled pauses and says so in X-Ignored-Options | text.formatting |
| multichannel, dual_channel | each channel is transcribed separately | transcription, text |
| webhook_url, webhook_auth_header_name, webhook_auth_header_value | see below | jobs.webhook_delivery |
| auto_highlights | rare noun phrases; 53 % right | analyses.key_phrases |
| audio_start_from, audio_end_at | only that part is transcribed; times are those of the file | speech.audio |
| word_boost | in the prompt of whisper, up to 800 characters | speech.whisper |
| boost_param | whisper says in X-Ignored-Options that it has no effect | speech.engines |
| filter_profanity | letters of listed English words become asterisks | text.formatting |
| redact_pii, redact_pii_policies, redact_pii_sub | entities, in quotes too | analyses |
| redact_pii_audio, redact_pii_audio_quality | a tone; covers 79 to 91 % of personal time | speech.audio |
| speaker_labels, speakers_expected | by voice; error rates in README | transcription |
| content_safety, content_safety_confidence | labels 1 % of ordinary, 98 % of unsafe texts | analyses.labels |
| iab_categories | 160 labels; the first level is right for 97 % | analyses.labels |
| custom_topics, topics | the same for the given topics; F1 0.94 | analyses.labels |
| custom_spelling | words and phrases, in any case | text.formatting |
| sentiment_analysis | classifier for each sentence; 86 to 90 % right | analyses.lexicon |
| auto_chapters | changes of subject; Pk 0.05; named by noun phrases, or by the local writer | analyses.chapters |
| entity_detection | patterns, checks and lists; precision 0.96, recall 0.94 | analyses.entities |
| summarization, summary_model, summary_type | key sentences (53 % right), or by the local writer | analyses.chapters |
| speech_threshold | share of speech; below it, the job is an error | transcription |

Fields of a result that are not echoed:

| field | content |
|---|---|
| id, status, error | a UUID; queued, processing, completed, error; the reason |
| text, words, confidence | 7 % of words wrong on synthetic voices, 2 % on ten real recordings; mean of the words |
| utterances | turns, with speaker labels or separate channels |
| audio_duration, audio_channels | whole seconds; channels, with multichannel |
| language_confidence | confidence of a detected language |
| language_model, acoustic_model | name of the engine's model |
| webhook_status_code, webhook_auth | response of the notified server; true if a header is sent with it |
| auto_highlights_result, content_safety_labels, iab_categories_result, custom_topics_results | see the fields above |
| sentiment_analysis_results, chapters, entities, summary | see the fields above |
| summary_method, header X-Summary-Method | "key sentences, quoted", or by which model it is written |
| method, of a chapter | by which model its headline and summary are written; absent if they are quoted |
| throttled | true while the job waits for a core |
| speed_boost | false |

Endpoints: all of the API, with upload, deletion and list filters (`http`). The four language model tasks, stored
responses and purge, answered by quoting the transcript or by a configured model, at most 30 requests per minute
(`http.llm_routes`). Tokens that open one session within 60 to 360,000 s (`http`). Both notifications, with
up to eleven attempts (`jobs.webhook_delivery`).

Streaming (`realtime`): sample_rate 8,000 to 48,000, encoding pcm_s16le and pcm_mulaw, word_boost,
disable_partial_transcripts, enable_extra_session_information, token. All messages are supported, and all close codes
except 4004 and 4010, because a session cannot be resumed.

All sessions share one decoding process per core, with one thread each and a queue in which finals come first. Speech is
decoded from its start for each partial, with the model of `speech_model` nano. Partials are at least 0.3 s apart, and
further if decodes take long. A final is decoded after 0.32 s of silence and sent when the utterance ends. Measured on
two cores with four sessions that speak nearly without pauses (`python -m tests.benchmarks streaming`):

- First partial, after the start of speech: median 0.5 s, 95 % within 1.9 s.
- Final, after the end of speech: median 0.7 s, the duration of the silence that ends it; 95 % within 0.8 s.
- 2.6 % of the words in finals are wrong.

A session uses up to half a core during speech, so the server accepts two per core and rejects more with 4102. If
recognition is more than 15 s late, the session ends with 1013. If a decoding process crashes, another one takes over.

Errors are objects with `error`: 400, 401, 404, 405, 408, 413, 429, 500, 503, 504, 507; and 403 for pages of other
origins and for signed URLs that are invalid or expired. What is no HTTP gets a 400 in plain text. The server is made
for clients on this machine: slow headers, floods of pings, and clients that do not read a stream have no limit.

Limits: JSON of 5 MB, uploads of 2.2 GB, lists of 200, word-search phrases of 5 words, 1,000 boosted terms of 100
characters, ten hours of audio. For the language model: 100 transcripts or 100 hours, and 4,000 output tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voxframe_server.server import serve


__all__ = ["serve"]


def __getattr__(name: str) -> Any:
    # Lazily, because worker processes import this package but do not need the server.
    if name == "serve":
        from voxframe_server.server import serve

        return serve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
