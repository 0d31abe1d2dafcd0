"""Kubeflow Pipelines components: each reads inputs, calls one function of `aftershock.steps`, writes outputs."""
