"""Language-model operations: summaries, questions, tasks and action items over transcripts or a text.

Without a model, the extractive answerer works: it computes which sentences answer and quotes them, and its answers say
`"model": "voxframe-extractive"`. With `--llm-url` and `--llm-model` (environment: VOXFRAME_LLM_URL, VOXFRAME_LLM_MODEL,
VOXFRAME_LLM_KEY, VOXFRAME_LLM_WINDOW), the model there answers from the same material, and its name is said.

| operation | extractive: how |
|---|---|
| question-answer | BM25 over stems; a question passes its score on to what follows it; the kind of answer counts |
| ... with answer_options | the option that the sentences found speak for; for yes and no, whether they say so |
| task | told apart: a summary, action items, else like a question |
| summary | the sentences that tell most (`analyses.extract`), of each transcript its share |
| action-items | sentences in which somebody takes on something, or is asked to |

`answer_format` is followed as far as bullets, "three sentences" and "brief" go. `temperature` changes nothing.

Measured on two conversations and questions that were written before the code (`tests/local/test_llm_quality.py`): 16
of 21 questions answered by the right sentences, 11 of 12 options right, 9 of 9 action items found and 1 that is none.
English only.

Answers are kept in `llm.sqlite` until they are purged; context, prompt and input text are never written to disk.
Deleting a transcript does not delete the answers that were made from it: purge these too.

    routes            the endpoints            extractive        answers without a model
    asked, material   what is wanted           ranking, choosing, actions, form
                      and of what              chat, prompts, model, configured
    store, answerer   what was answered                          answers with one
    tokens            how they are counted
"""
