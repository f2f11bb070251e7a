"""HTTP as this service speaks it, whatever the resource: paths, bodies, conditions, problems, the order of checks."""
