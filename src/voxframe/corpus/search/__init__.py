"""Full-text search over the words of a corpus."""
