"""A stand-in for the programs that envtest starts: etcd, kube-apiserver and kubectl."""
