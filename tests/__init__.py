"""The tests of voxframe; tests.benchmarks runs as a module."""
