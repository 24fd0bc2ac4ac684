"""What `./release` builds and checks beside the wheel: the single file, and the smoke test of every artefact."""
