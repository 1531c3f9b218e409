"""What cannot run here, as far as a scheduler sees it: kubelet, device plugin, and controllers of workloads."""
