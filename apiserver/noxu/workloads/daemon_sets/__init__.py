"""daemonset-controller: one pod on every node that fits."""
