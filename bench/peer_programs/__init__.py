"""Programs of other products, run by an interpreter of their own environment; see `bench.peers`."""
