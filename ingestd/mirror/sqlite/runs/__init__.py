"""Runs: readings of partitions, from the first batch to the acknowledgement."""
