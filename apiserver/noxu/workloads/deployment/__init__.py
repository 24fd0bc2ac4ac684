"""deployment-controller: a Deployment keeps ReplicaSets, one for each of its templates (pkg/controller/deployment)."""
