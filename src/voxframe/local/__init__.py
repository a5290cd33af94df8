"""The embedded service: the interface of the hosted one, offline, with engines of its own."""
