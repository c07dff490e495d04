# Runner, janitor, event listener and console. Build from the repository's root:
#   docker build -f infra/deploy/runner.Dockerfile -t ade-drop:local .
# By digest: --build-arg BASE=python:3.12-slim-bookworm@sha256:…
# For `ade --version`, which finds no git here: --build-arg ADE_COMMIT=$(git rev-parse HEAD)
ARG BASE=python:3.12-slim-bookworm
FROM ${BASE} AS build
WORKDIR /src
COPY requirements/runtime.txt requirements/runtime.txt
RUN python -m venv /opt/ade && /opt/ade/bin/pip install --no-cache-dir --require-hashes -r requirements/runtime.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY ade_drop ade_drop
COPY core core
COPY infra infra
COPY handlers handlers
COPY runner runner
COPY console console
ARG ADE_COMMIT=
RUN ADE_COMMIT=${ADE_COMMIT} /opt/ade/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM ${BASE}
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/ade ade
COPY --from=build /opt/ade /opt/ade
# All that is written to, so that the root may be read-only; an empty volume there gets this owner.
VOLUME ["/var/lib/ade", "/tmp"]
ENV PATH=/opt/ade/bin:$PATH PYTHONUNBUFFERED=1 ADE_STORAGE_DATA_DIR=/var/lib/ade/data
USER 10001
WORKDIR /var/lib/ade
ENTRYPOINT ["ade"]
CMD ["run"]
