"""Agents that play what cannot run here, as a scheduler sees it: kubelet, device plugin, controllers of workloads."""
