"""The simulated kubelet: what happens to the pods of simulated nodes."""
