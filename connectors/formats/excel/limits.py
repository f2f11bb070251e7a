"""Limits of workbooks, which are read into memory."""

FILE_BYTES = 256 * 2**20
UNPACKED_BYTES = 2 * 2**30
