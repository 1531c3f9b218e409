"""What runs on nodes and cannot run here: kubelet and device plugin, as far as a scheduler sees them."""
