"""What is free on the devices of one node, and which of them a pod gets."""
