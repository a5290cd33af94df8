"""Fixtures of tests that also start a server with the engine."""

from tests.server.conftest import silent_wav, start

__all__ = ["silent_wav", "start"]
