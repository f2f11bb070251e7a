"""Webhooks: receivers of events, their secrets, and the log of deliveries (contract H1, H3, H11, H13)."""
