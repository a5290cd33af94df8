"""`voxframe summarize`: summaries, answers and other language-model results about a corpus."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from voxframe.cli.arguments import add_selection, open_corpus, selected_ids
from voxframe.cli.output import plain
from voxframe.corpus.llm import Answers, Refresh
from voxframe.errors import OptionError

_EPILOG = """\
examples:
  voxframe summarize --corpus calls --format 'bullet points'
  voxframe summarize --where customer=Acme --question 'What was promised?' --question 'By when?'
  voxframe summarize --prompt 'Write a letter to the caller' --id 7c5b4bc6-5b0e-4ed2-9ba4-d3e0e0a6f1b0

If a request would exceed 100 transcripts or 100 hours, it is split, and a final request combines the results.
Responses are cached: the same request is not sent twice.
exit status: 0 success; 1 there is no such corpus, or the service failed; 2 invalid arguments
"""


def add_summarize(commands: argparse._SubParsersAction[Any], help_line: str) -> None:
    """Add `voxframe summarize`."""
    parser = commands.add_parser(
        "summarize",
        help=help_line,
        description="Summarize transcripts, answer questions about them or run a prompt on them with a language model.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_selection(parser)
    parser.add_argument("--question", action="append", metavar="TEXT", help="question to answer; may be repeated")
    parser.add_argument("--prompt", metavar="TEXT", help="prompt to run")
    parser.add_argument("--action-items", action="store_true", help="list the action items")
    parser.add_argument(
        "--format", dest="answer_format", metavar="TEXT", help="form of the result, such as 'one sentence'"
    )
    parser.add_argument("--refresh", action="store_true", help="repeat earlier requests (charged again)")
    parser.add_argument(
        "--lost", action="store_true", help="repeat requests with a lost response (may be charged twice)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object with text, replies and ids")
    parser.set_defaults(run=summarize)


def summarize(given: argparse.Namespace) -> int:
    """Print a summary of transcripts, answers to questions, or the result of a prompt.

    Raises:
        CorpusError: There is no corpus in the directory, or a transcript is not in it.
        OptionError: An argument is invalid.
        ServiceError: The service is unavailable or refused the request.
    """
    found = _ask(given)
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


def _ask(given: argparse.Namespace) -> Answers:
    corpus = open_corpus(given.corpus)
    ids = selected_ids(corpus, given)
    if sum(map(bool, (given.question, given.prompt, given.action_items))) > 1:
        raise OptionError(
            "--question, --prompt and --action-items exclude each other; give one of them, or none for a summary"
        )
    if given.answer_format and (given.question or given.prompt):
        raise OptionError(
            "--format is for summaries and --action-items only; describe the format in the question or the prompt"
        )
    refresh: Refresh = given.refresh or ("lost" if given.lost else False)
    if given.question:
        return corpus.ask(given.question, ids, refresh=refresh)
    if given.prompt:
        return corpus.task(given.prompt, ids, refresh=refresh)
    ask = corpus.action_items if given.action_items else corpus.summarize
    return ask(ids, answer_format=given.answer_format, refresh=refresh)
