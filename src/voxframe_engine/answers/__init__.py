"""Language-model operations: summaries, questions, tasks and action items over transcripts or a text.

With a model on this machine (`voxframe models get writer`, or `--writer`, environment: VOXFRAME_WRITER), summaries,
answers and action items are written by it (`writer`). Each sentence is checked against the text (`evidence`): the
response has the passages behind it as `citations`, and a sentence without one is left out. Long recordings are read in
parts, of which the model takes notes. It is a small model: who did what to whom may be wrong. It also writes the
headlines and summaries of jobs (`job_texts`).

Without any model, an extractive answerer selects the sentences that answer and quotes them; its responses say
`"model": "voxframe-extractive"`, and in the header X-Answer-Method "key sentences, quoted". With `--llm-url` and
`--llm-model` (environment: VOXFRAME_LLM_URL, VOXFRAME_LLM_MODEL, VOXFRAME_LLM_KEY, VOXFRAME_LLM_WINDOW), the configured
model answers, and responses have its name.

| operation | extractive method |
|---|---|
| question-answer | the sentence that the answer model finds, and up to two others if they are almost as good |
| ... without the model of the sentence encoder | sentences with most words of the question, and those beside them |
| ... with answer_options | the option best supported by the sentences found; yes if they confirm, no if they deny |
| task | a summary, action items, or sentences that answer; what needs writing is refused (78 of 90 prompts) |
| summary | the most representative sentences (`analyses.extract`), proportionally from each transcript |
| action-items | sentences with a commitment or a request |

Of `answer_format`, it follows bullets, a number of sentences, and "brief". `temperature` has no effect.

The answer model (`answer_model`) compares a question with every sentence. If no sentence fits, the question is refused.
The table shows questions with the right sentence, of those that the text answers, and refused ones, of the others. Most
are paraphrased. The texts were not used for training, but were looked at when the threshold was chosen.

| texts | right | refused |
|---|---|---|
| a family talk, a job interview, a lecture and a call, with questions as users would ask them | 70 of 80 | 32 of 40 |
| a talk | 19 of 20 | 9 of 10 |
| 5 short conversations | 40 of 47 | 15 of 16 |
| 8 short conversations; most questions share few words with their answer | 74 of 89 | 28 of 28 |
| 4 long conversations | 35 of 40 | 16 of 20 |
| an interview; most questions share no word with their answer | 13 of 20 | 9 of 10 |
| a meeting | 17 of 20 | 5 of 10 |
| 3 conversations; 3 of 60 questions share a word with their answer | 46 of 60 | 20 of 30 |

An hour of speech takes 4 s of one core, and each further question of a request 30 ms. On two other conversations
(`test_llm_quality.py`), 11 of 12 options are right, 9 of 9 action items found and 1 wrong one. English only.

Responses are stored in `llm.sqlite` until they are purged. Context, prompt and input text are never written to disk.
Deleting a transcript does not delete the responses made from it: purge these too.
"""
