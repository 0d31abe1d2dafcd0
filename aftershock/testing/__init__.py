"""Fakes that users may want too: a model server that does as it is told."""
