"""The embedded stack: model servers, gateway, Prometheus and object store as real local processes."""
