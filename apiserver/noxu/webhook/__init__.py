"""Webhooks of admission and conversion: endpoints, certificates and answers, without I/O."""
