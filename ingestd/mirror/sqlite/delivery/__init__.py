"""The store of the delivery lanes: claims and acknowledgements."""
