"""Receivers that are told what happened: registration, secrets, deliveries and their log (contract, H)."""
