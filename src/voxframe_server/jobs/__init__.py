"""Jobs of the embedded server: queue, worker processes, retention and webhooks."""
