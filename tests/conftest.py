"""What holds for all tests."""

from hypothesis import settings

# The first example may load kernels, and a busy machine may take any time: no test asserts times.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
