"""Fakes that users may want too: a model server and a Prometheus that do as they are told."""
