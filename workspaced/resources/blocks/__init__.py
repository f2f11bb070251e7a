"""Blocks, which form the tree of a workspace (contract B2, B4, B6)."""
