"""Repeatable benchmarks: each figure beside what the same machine or a peer does in the same run."""
