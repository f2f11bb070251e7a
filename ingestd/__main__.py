"""``python -m ingestd`` is ``ingestd``."""

from ingestd.cli import main

main()
