"""The options of `voxframe serve`."""

from __future__ import annotations

import argparse
from pathlib import Path


def _count(text: str) -> int:
    count = int(text)
    if count < 0:
        raise ValueError
    return count


def _amount(text: str) -> float:
    amount = float(text)
    if not 0 <= amount < float("inf"):
        raise ValueError
    return amount


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError
    return seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `voxframe serve`; their names are those of the arguments of `serve`."""
    parser.add_argument("--host", default="127.0.0.1", help="address to bind (default: this machine only)")
    parser.add_argument("--port", type=int, default=8000, help="port to bind, 0 for a free one (default: 8000)")
    parser.add_argument("--data-dir", type=Path, help="where jobs, media, results and the key are kept")
    parser.add_argument(
        "--api-key", help="key that requests must carry; better in VOXFRAME_API_KEY, where no other process sees it"
    )
    parser.add_argument(
        "--engine", metavar="NAME", help="speech engine: sphinx, whisper, or an installed one (VOXFRAME_ENGINE, sphinx)"
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="its model for speech_model best and where none is asked for: a directory, or a name to download such as "
        "small or Systran/faster-whisper-small (VOXFRAME_MODEL)",
    )
    parser.add_argument(
        "--nano-model", metavar="MODEL", help="its model for speech_model nano (VOXFRAME_MODEL_NANO, the same)"
    )
    parser.add_argument("--llm-prefix", help="first path segment of the language-model endpoints (default: llm)")
    parser.add_argument(
        "--llm-url",
        metavar="URL",
        help="address of an OpenAI-compatible language model such as http://127.0.0.1:11434/v1; its key in "
        "VOXFRAME_LLM_KEY (default: VOXFRAME_LLM_URL, else requests are answered by quoting)",
    )
    parser.add_argument("--llm-model", metavar="NAME", help="its name there (default: VOXFRAME_LLM_MODEL)")
    parser.add_argument(
        "--llm-window",
        type=_count,
        metavar="TOKENS",
        help="tokens it takes (default: VOXFRAME_LLM_WINDOW, 16000)",
    )
    parser.add_argument(
        "--llm-requests",
        type=_count,
        metavar="N",
        help="language-model requests a minute, 0: any (default: 30)",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="fetch media from this origin and notify it, like http://127.0.0.1:9000, though it is not public; may be "
        "repeated",
    )
    parser.add_argument(
        "--keep-days",
        type=_amount,
        metavar="DAYS",
        help="media of jobs that are finished, and uploads, are removed after so many days (default: 30); transcripts "
        "stay",
    )
    parser.add_argument(
        "--keep-gb",
        type=_amount,
        metavar="GB",
        help="the oldest of them go while they are more than this (default: 20)",
    )
    parser.add_argument(
        "--webhook-interval", type=_seconds, metavar="SECONDS", help="between two tries of a notification (default: 10)"
    )
