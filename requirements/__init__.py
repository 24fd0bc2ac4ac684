"""What is installed: the pins with their hashes, and the documents that are generated from them.

`python -m requirements` is the command; README.md describes the files.
"""
