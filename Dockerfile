# syntax=docker/dockerfile:1
# The multi-arch index that others' builds have recorded for this tag, on amd64 and arm64; where
# Evenkeel is developed no registry can be reached, so compare before a release:
# docker buildx imagetools inspect python:3.13.15-slim-trixie
ARG PYTHON=python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b

FROM ${PYTHON} AS base
# Kernels are compiled when the image is built, for any CPU of the architecture: for the default modes
# as fast as for this machine's own, at most half as fast (lambda-g). Nothing is written at run time.
ENV PATH=/opt/evenkeel/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/opt/evenkeel/kernels \
    NUMBA_CPU_NAME=generic

FROM base AS build
WORKDIR /src
COPY requirements.lock requirements-build.lock ./
RUN python -m venv /opt/build \
 && /opt/build/bin/python -m pip install --require-hashes -r requirements-build.lock
RUN python -m venv /opt/evenkeel \
 && /opt/evenkeel/bin/python -m pip install --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE evenkeel_scheduler.py ./
COPY scheduler scheduler
COPY crds crds
RUN /opt/build/bin/python -m pip wheel --no-deps --no-build-isolation --wheel-dir /opt/build/wheels . \
 && /opt/evenkeel/bin/python -m pip install --no-deps --no-index --find-links /opt/build/wheels evenkeel-scheduler \
 && /opt/evenkeel/bin/python -m pip uninstall --yes pip
RUN /opt/evenkeel/bin/evenkeel warm

FROM base
LABEL org.opencontainers.image.title="Evenkeel" \
      org.opencontainers.image.description="A GPU-aware scheduler for Kubernetes that picks the node and the GPUs on it, and binds." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0"
COPY --from=build /opt/evenkeel /opt/evenkeel
USER 65532:65532
ENV HOME=/tmp
ENTRYPOINT ["evenkeel"]
CMD ["run"]
