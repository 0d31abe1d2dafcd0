"""The service address of the model servers: balancing, health checks, metrics and faults."""
