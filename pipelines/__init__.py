"""Pipelines: each folder holds pipeline.py and the package compiled from it, which is what runs everywhere."""
