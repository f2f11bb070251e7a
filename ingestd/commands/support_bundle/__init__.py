"""A bundle of facts for a report of a problem, without secrets and without values of sources and sinks."""
