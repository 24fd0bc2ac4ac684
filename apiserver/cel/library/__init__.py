"""The functions of CEL: the language's own, its extensions, and those that Kubernetes adds.

Each module is a table of `Overload`s: id, signature, what it does. An environment (`apiserver.cel.environment`) is
made of some of them.
"""
