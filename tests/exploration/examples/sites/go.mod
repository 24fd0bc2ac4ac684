module site

go 1.26

require sigs.k8s.io/controller-runtime v0.24.0
