"""Repeatable benchmarks: each figure beside a limit of the same machine or a peer in the same run."""
