"""Measurements that the README quotes: `python -m tests.benchmarks NAME` runs one of the modules here."""
