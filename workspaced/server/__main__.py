"""The process of a worker; started by `workspaced.server.supervisor` only."""

import sys

from workspaced.server.worker import main

sys.exit(main(sys.argv[1]))
