# syntax=docker/dockerfile:1
FROM python:3.13-slim AS build
WORKDIR /src
COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN python -m venv /opt/evenkeel \
 && /opt/evenkeel/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY scheduler scheduler
COPY crds crds
RUN /opt/evenkeel/bin/pip install --no-cache-dir --no-deps .

FROM python:3.13-slim
COPY --from=build /opt/evenkeel /opt/evenkeel
USER 65532:65532
ENV PATH=/opt/evenkeel/bin:$PATH PYTHONUNBUFFERED=1 HOME=/tmp
ENTRYPOINT ["evenkeel"]
CMD ["run"]
