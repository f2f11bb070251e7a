"""What the service tells about itself in numbers.

Some are counted as things happen (`metrics`), some asked when somebody wants to know (`levels`); `exposition` writes them
as Prometheus reads them.
"""
