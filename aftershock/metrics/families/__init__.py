"""Inference servers by what their `/metrics` shows: which signals each of them has, and how each is asked for.

One file a family. A name that no real page and no public source shows has no place in here.
"""
