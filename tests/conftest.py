"""What holds for all tests."""

from hypothesis import settings

from scheduler import progress

# The first example may load kernels, and a busy machine may take any time: no test asserts times.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
# Nor does a line on standard error come or not by how busy the machine is.
progress._PATIENCE_SECONDS = 1e6
