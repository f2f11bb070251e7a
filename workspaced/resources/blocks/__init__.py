"""Blocks: the tree inside a workspace (contract, B)."""
