"""Simulated nodes and the controllers of workloads: pods become ready, and nothing runs."""
