"""The API server's face: from a request to an answer, and from a change to a watch's line."""
