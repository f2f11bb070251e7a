"""The metrics of the service.

`metrics` counts events as they occur. `levels` reads the sizes of queues from the database at each scrape, and
`metric_families` converts them to metrics of Prometheus.
"""
