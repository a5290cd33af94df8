"""Language-model operations: summaries, questions, tasks and action items over transcripts or a text.

Without a configured model, an extractive answerer selects the sentences that answer and quotes them; its responses say
`"model": "voxframe-extractive"`. With `--llm-url` and `--llm-model` (environment: VOXFRAME_LLM_URL, VOXFRAME_LLM_MODEL,
VOXFRAME_LLM_KEY, VOXFRAME_LLM_WINDOW), the configured model answers, and responses have its name.

| operation | extractive method |
|---|---|
| question-answer | the sentence that the reader's short answer comes from, and a close one that it judges to answer |
| ... without the reader | sentences closest in meaning; those after a question and of the expected kind rank higher |
| ... with answer_options | the option best supported by the sentences found; yes if they confirm, no if they deny |
| task | handled as a summary, as action items, or else as a question; texts to be written are refused |
| summary | the most representative sentences (`analyses.extract`), proportionally from each transcript |
| action-items | sentences with a commitment or a request |

Of `answer_format`, it follows bullets, a number of sentences, and "brief". `temperature` has no effect.

The reader is a small language model on this machine (`voxframe.reader`), used if `voxframe models get
Qwen2.5-Coder-1.5B-Instruct` has downloaded it; responses then say `"model": "voxframe-extractive with Qwen2.5-..."`. It
answers in a few words, and the sentence that they are from is quoted. Then it judges whether this sentence and the two
closest ones, each with its neighbours, answer the question: the better one of the two is quoted beside the first. The
question is refused if the reader doubts that the text and its sentence answer it.

Paraphrased questions with the right sentences, of those that the text answers, and refused ones, of the others:

| texts | without the reader | with it |
|---|---|---|
| a talk | 13 of 20; 8 of 10 | 18; 10 |
| 4 long conversations, with which methods were compared | 18 of 40; 5 of 20 | 34; 17 |
| an interview, also compared; most questions share no word with their answer | 6 of 20; 6 of 10 | 15; 6 |
| a meeting | 14 of 20; 2 of 10 | 16; 10 |
| 3 conversations; 3 of 60 questions share a word with their answer | 16 of 60; 2 of 30 | 42; 19 |
| 35 short texts; the reader's doubt was fitted on the others of them, in turn | | 325 of 375; 161 of 218 |

With the reader, a question takes 2 to 12 s of one core. On two other conversations (`test_llm_quality.py`), 11 of 12
options are right, 9 of 9 action items found and 1 wrong one. English only.

Responses are stored in `llm.sqlite` until they are purged. Context, prompt and input text are never written to disk.
Deleting a transcript does not delete the responses made from it: purge these too.
"""
