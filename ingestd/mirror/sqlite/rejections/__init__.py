"""Rejections: stored, selected, retried and dropped."""
