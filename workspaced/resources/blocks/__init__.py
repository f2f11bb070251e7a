"""Blocks: the tree inside a workspace (contract B2, B4, B6)."""
