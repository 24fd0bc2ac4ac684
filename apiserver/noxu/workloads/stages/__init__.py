"""Stages: what happens to pods, nodes and custom resources, as files say it. Read when a server has `--stages` only."""
