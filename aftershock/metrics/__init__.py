"""Prometheus -> pandas."""
