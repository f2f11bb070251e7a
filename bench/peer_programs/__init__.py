"""Programs that use other products. The interpreter of a separate environment runs them; see `bench.peers`."""
