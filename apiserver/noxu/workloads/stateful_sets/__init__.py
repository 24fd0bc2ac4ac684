"""statefulset-controller: pods that have an identity and claims of their own, which come and go in order."""
