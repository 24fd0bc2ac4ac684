"""Volumes and their claims: binding (pkg/controller/volume/persistentvolume), and storage that is simulated."""
