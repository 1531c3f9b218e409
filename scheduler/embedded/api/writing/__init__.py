"""Changing objects: create, update, apply, patch, bind, evict, delete."""
