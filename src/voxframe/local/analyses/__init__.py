"""Analyses of a job, one a file."""
