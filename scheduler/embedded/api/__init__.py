"""The front of the API server: turns requests into answers, and changes into the lines of watches."""
