"""The metrics of the service.

`metrics` counts events as they occur. `levels` reads the sizes of queues from the database at each scrape. `exposition` writes
both in the formats of Prometheus.
"""
