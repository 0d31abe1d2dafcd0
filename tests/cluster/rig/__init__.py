"""A real Kubernetes cluster of one node on this machine, for the tests: see ../README.md."""
