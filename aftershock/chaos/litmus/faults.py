"""What has to be known of single faults, as Litmus' code has them: by what words they say that they act."""

from __future__ import annotations

KILLS = ("pod-delete", "container-kill")
"""They mark no target; what they do is seen on the pods themselves."""

UNANNOUNCED = ("pod-network-partition", "pod-autoscaler")
"""They send no ChaosInject: after PreChaosCheck they wait for RAMP_TIME and act."""

ONLY_TARGETED = ("node-cpu-hog", "node-memory-hog", "node-io-stress", "kubelet-service-kill", "node-restart")
"""`targeted` is their only word for a node, said once their helper runs on it. With others it says nothing: pod-delete
calls the workload so before the first kill."""

FROM_MEMORY = ("node-drain", "node-taint", "pod-network-partition", "pod-autoscaler")
"""They write no annotations: the result repeats what the experiment remembers, and on an abort it may be written before
their own revert. Their last `injected` does not say that the fault goes on."""
