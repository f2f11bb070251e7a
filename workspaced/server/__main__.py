"""Entry point of a worker process, which only `workspaced.server.supervisor` starts."""

import sys

from workspaced.server.worker import main

sys.exit(main(sys.argv[1]))
