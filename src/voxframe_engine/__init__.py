"""The offline engine: sound and words in, fields of the transcription API out. It knows no HTTP, no jobs and no corpus.

    transcription   a media file and the options of a job -> result fields
    speech          audio, speech detection, recognition engines, speakers
    text            words, sentences, captions, formatting
    analyses        entities, sentiment, topics, chapters, ... computed from the text
    answers         summaries and answers: quoted from the text, or by a language model

It imports only the ground floor of `voxframe`. The server runs it in worker processes; other callers import it lazily.
"""
