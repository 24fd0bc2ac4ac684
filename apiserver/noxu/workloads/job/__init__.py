"""The controller of Jobs (pkg/controller/job)."""
