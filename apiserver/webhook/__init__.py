"""Webhooks of admission and conversion: how they are reached and what they may answer, without any I/O."""
