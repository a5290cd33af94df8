"""`voxframe summarize`: what a language model says about a corpus."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from voxframe.cli.search import chosen_ids, open_corpus
from voxframe.cli.terminal import plain
from voxframe.corpus.asking import Answers, Refresh
from voxframe.errors import OptionError


def summarize(given: argparse.Namespace) -> int:
    """Print a summary of transcripts, or what else was asked about them.

    Args:
        given: Arguments of the command.

    Returns:
        Exit status.

    Raises:
        CorpusError: There is no corpus at that place, or a transcript is not in it.
        OptionError: An argument is wrong.
        ServiceError: The service, or the way to it, failed.
    """
    found = _asked(given)
    if given.json:
        print(
            json.dumps(
                {
                    "text": found.text,
                    "replies": [asdict(reply) for reply in found.replies],
                    "transcript_ids": found.transcript_ids,
                    "request_ids": [response.request_id for response in found.responses],
                    "usage": asdict(found.usage),
                }
            )
        )
    else:
        for line in found.text.splitlines():
            print(plain(line))
    return 0


def _asked(given: argparse.Namespace) -> Answers:
    corpus = open_corpus(given)
    ids = chosen_ids(corpus, given)
    if sum(map(bool, (given.question, given.prompt, given.action_items))) > 1:
        raise OptionError("give --question, --prompt or --action-items: one of them, or none for a summary")
    if given.answer_format and (given.question or given.prompt):
        raise OptionError("--format is for a summary and --action-items; say it in the question or the prompt")
    refresh: Refresh = given.refresh or ("uncertain" if given.uncertain else False)
    if given.question:
        return corpus.ask(given.question, ids, refresh=refresh)
    if given.prompt:
        return corpus.task(given.prompt, ids, refresh=refresh)
    ask = corpus.action_items if given.action_items else corpus.summarize
    return ask(ids, answer_format=given.answer_format, refresh=refresh)
