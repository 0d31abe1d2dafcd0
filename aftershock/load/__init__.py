"""Open-loop load on the inference service: arrivals, requests, grading, records, live metrics."""
