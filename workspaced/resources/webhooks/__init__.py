"""Receivers that are told what happened: registration, secrets, deliveries and their log (contract H1, H3, H11, H13)."""
