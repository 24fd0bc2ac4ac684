"""Conformance: the examples of the documents, and conversations recorded from the reference, for any server."""
