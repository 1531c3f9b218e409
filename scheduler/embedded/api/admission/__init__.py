"""What happens to an object on its way in: defaults, rules of its kind, validation."""
