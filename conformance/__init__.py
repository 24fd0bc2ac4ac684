"""Conformance checks that run against any Kubernetes API server: documented examples, recordings and real CRDs."""
