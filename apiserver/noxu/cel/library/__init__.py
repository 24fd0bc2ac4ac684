"""The functions of CEL: the language's own, its extensions, and those that Kubernetes adds.

Each module ends with a table of `Overload`s: id, signature, implementation. An environment
(`noxu.cel.checking.environment`) consists of some of them.
"""
