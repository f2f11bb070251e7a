"""HTTP for all resources: paths, bodies, conditional requests, problems, and the order of checks."""
