"""Streaming: a session that sends audio and receives messages."""
