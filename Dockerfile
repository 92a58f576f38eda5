# Another base, such as python:3.12-slim-bookworm: docker build --build-arg BASE=...
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
# The package index, if it is not PyPI. Build stage only: the final image does not contain it.
ARG PIP_INDEX_URL
ARG PIP_TRUSTED_HOST
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/streamduel
ENV PATH=/opt/streamduel/bin:$PATH
WORKDIR /src
# Dependencies change less often than code, so they have their own layer. `make lock` pins them.
# Wheels only: no compiler is needed.
COPY requirements.lock ./
RUN pip install --require-hashes --only-binary :all: --requirement requirements.lock
COPY . ./
RUN pip install --no-deps . \
    && pip check \
    && pip uninstall --yes setuptools pip

FROM ${BASE}
ARG VERSION=unknown
LABEL org.opencontainers.image.title="streamduel" \
      org.opencontainers.image.description="Finds the best of K rankers from the clicks of real users" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"

# A numeric user, because Kubernetes' runAsNonRoot cannot resolve a name.
RUN groupadd --gid 10001 streamduel \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir / --shell /usr/sbin/nologin streamduel
COPY --from=build /opt/streamduel /opt/streamduel
USER 10001:10001

# Monitoring listens on all addresses: 127.0.0.1 is reachable only from inside the container. The
# container's network decides who can reach the port.
#
# The application log is JSON, and text on a terminal (docker run -t).
#
# Nothing is written outside the paths of the configuration, not even bytecode, so the root file
# system can be read-only.
ENV PATH=/opt/streamduel/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    STREAMDUEL_LOG_FORMAT=auto \
    STREAMDUEL_MONITORING__HOST=0.0.0.0

EXPOSE 9400
# Without the proxy that Docker may set in every container.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:' + os.environ.get('STREAMDUEL_MONITORING__PORT', '9400') + '/healthz', timeout=4)"]

# Exec form, without a shell: SIGTERM reaches streamduel, which commits and exits.
ENTRYPOINT ["streamduel"]
CMD ["run", "/etc/streamduel/config.yaml"]
