"""The embedded service: the interface on one's own machine, with no key to sign up for and no network.

It runs as a process of its own: `voxframe serve`, `python -m voxframe.local`, or started by `voxframe.connect()`. It is
made for one person's machine; for production point `base_url` at a hosted service.

    start                starts it                 jobs, instances     queue and state
    app, routes          endpoints                 runner, child       work on jobs, a process each
    gate, addresses      who may come in,          worker, engines     speech
                         and where it may go

What it does of the interface, how, and how well. Figures are of the default engine, on the sets that
`python -m tests.benchmarks` measures (`speech`, `analyses`, `boost`); those of analyses on text that another hand wrote
than the method's. The module named says more.

Fields of a request (a value that is not allowed is a 400 that names it; unknown fields are ignored; all are echoed but
for the secret):

| field | what is done | module, measured |
|---|---|---|
| audio_url | fetched by http and https from public addresses and allowed origins; or an upload | fetch, audio |
| language_code | the four English codes; others are a 400 that names an engine that knows them | engines |
| language_detection | a 400 with sphinx, which takes all for English; whisper tells, by its model | engines |
| language_confidence_threshold | under it the job is an error | worker |
| speech_model | echoed by sphinx, which has one model; `best` and `nano` are two of whisper's | engines.configured |
| punctuate | full stops and question marks by pauses and word order | punctuation |
| format_text | capitals of sentences, names and titles; numbers stay words | capitals, names |
| disfluencies | filled pauses stay in | disfluencies |
| multichannel, dual_channel | each channel is transcribed by itself | worker, turns |
| webhook_url, webhook_auth_header_name, webhook_auth_header_value | see below; the value is never returned | webhooks |
| auto_highlights | runs of nouns, by rarity; 47 % of the first ten are labelled ones | analyses.key_phrases |
| audio_start_from, audio_end_at | only that part is transcribed; times are those of the file | audio |
| word_boost, boost_param | words of the recogniser; of terms, 49 % heard without, 73 to 81 % with | engines.boosting |
| filter_profanity | letters of listed words become asterisks | profanity |
| redact_pii, redact_pii_policies, redact_pii_sub | what entities finds, in quotes too; never all | analyses.redaction |
| redact_pii_audio, redact_pii_audio_quality | a tone over it; over 79 to 91 % of personal time | redact_audio |
| speaker_labels, speakers_expected | voices told apart; confusion 0.00 on synthetic ones | analyses.speakers |
| content_safety, content_safety_confidence | lists of words; precision 0.93, recall 0.68 | analyses.content_safety |
| iab_categories | lists of words, 160 labels; the first is right for 25 of 30 | analyses.topics |
| custom_topics, topics | the same for one's own; F1 0.82 | analyses.topics |
| custom_spelling | words and phrases, in any case, as they are given | custom_spelling |
| sentiment_analysis | VADER a sentence; 78 % right | analyses.sentiment |
| auto_chapters | changes of subject; Pk 0.19, where equal lengths have 0.25 | analyses.chapters |
| entity_detection | patterns, checks and lists; precision 0.96, recall 0.94 | analyses.entities |
| summarization, summary_model, summary_type | quotes; 59 % labelled ones, as many of the first | analyses.summary |
| speech_threshold | share of speech by a voice detector; under it the job is an error | listening |

Fields of a result that are not one of these, echoed:

| field | what it holds |
|---|---|
| id, status, error | a UUID; queued, processing, completed, error; why |
| text, words, confidence | word error rate 0.13 on synthetic voices, 0.20 on six real recordings; mean of the words |
| utterances | turns, with speaker labels or separate channels |
| audio_duration, audio_channels | whole seconds; channels, with multichannel |
| language_confidence | of a detected language |
| language_model, acoustic_model | name of the engine's model |
| webhook_status_code, webhook_auth | what the client's server answered; whether a header goes with it |
| auto_highlights_result, content_safety_labels, iab_categories_result, custom_topics_results | of the fields above |
| sentiment_analysis_results, chapters, entities, summary | of the fields above |
| throttled | whether it waits for a core |
| speed_boost | false |

Endpoints: all of the interface, with upload, delete and the filters of lists (`routes`, `captions`, `views`,
`word_search`, `redacted`); the language model's four tasks, responses and purge, by quoting, or by a model that is
configured (`llm`), at most 30 requests a minute (`ratelimit`); tokens that open one session within 60 to 360,000 s
(`tokens`); both notifications, tried up to eleven times (`webhooks`).

Streaming (`realtime`, `live`): sample_rate 8,000 to 48,000, encoding pcm_s16le and pcm_mulaw, word_boost,
disable_partial_transcripts, enable_extra_session_information, token; all messages and close codes but 4004 and 4010: no
session can be come back to. Measured on two idle cores (`python -m tests.benchmarks streaming`): the first partial of
an utterance comes 0.24 to 0.36 s into its speech; its final, by a second pass in its own process, 1.1 to 1.5 s after
it, of which 0.7 s are the silence that ends it; partials of the next utterance do not wait for it; the session ends
0.8 s behind its audio. Four sessions that speak at the same moments: 0.27 s (median) and 0.7 s (most), 2.5 and 5.5 s,
1.3 s. A session takes a third of a core while somebody speaks, so two a core are taken and more refused with 4102. A
final whose second pass is not done 5 s after the utterance, 1.2 s after the session is to end, is of the first pass,
which gets 31 % of 200 words wrong where the second gets 18 %; what is not even heard by the first after 15 s ends the
session with 1013.

Errors are objects with `error`: 400, 401, 404, 405, 413, 429, 500; and 403 for pages of other origins. Limits: JSON of
5 MB, uploads of 2.2 GB, lists of 200, phrases of 5 words to search for, 1,000 boosted terms of 100
characters, ten hours of audio, 100 transcripts or 100 hours and 4,000 tokens
for the language model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voxframe.local.start import serve

__all__ = ["serve"]


def __getattr__(name: str) -> Any:
    # A worker process imports this package for one job; it has no use for the server.
    if name == "serve":
        from voxframe.local.start import serve

        return serve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
