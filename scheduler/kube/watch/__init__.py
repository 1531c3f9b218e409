"""Reading the cluster: lists and watches, and which kinds are read how."""
