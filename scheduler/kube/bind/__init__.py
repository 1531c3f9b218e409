"""Writing decisions: binds, node locks, and the fence around binds whose fate nobody knows."""
