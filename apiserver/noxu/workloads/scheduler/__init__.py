"""The scheduler: binds pods to simulated nodes by upstream's rules (pkg/scheduler)."""
