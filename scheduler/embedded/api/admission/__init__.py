"""What the server does to an object before storing it: defaults, rules of its kind, validation."""
