"""The REST interface of the embedded server."""
