# Another base, such as python:3.12-slim-bookworm: docker build --build-arg BASE=...
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
# Where packages come from, if not from PyPI; of this stage alone, so the image does not know it.
ARG PIP_INDEX_URL
ARG PIP_TRUSTED_HOST
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/streamduel
ENV PATH=/opt/streamduel/bin:$PATH
WORKDIR /src
# The dependencies change more rarely than the code: a layer of their own, as `make lock` pinned
# them, from wheels only, so that no compiler is needed.
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

# A number, because Kubernetes' runAsNonRoot cannot look a name up.
RUN groupadd --gid 10001 streamduel \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir / --shell /usr/sbin/nologin streamduel
COPY --from=build /opt/streamduel /opt/streamduel
USER 10001:10001

# Inside a container 127.0.0.1 is the container's own: listening there, nobody could ask for
# metrics or health. What the outside may reach is for the container's network to say.
#
# The log is JSON for whoever collects it, and text where somebody looks on: docker run -t.
#
# Nothing is written outside what the configuration names, bytecode included: the root file
# system may be read-only.
ENV PATH=/opt/streamduel/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    STREAMDUEL_LOG_FORMAT=auto \
    STREAMDUEL_MONITORING__HOST=0.0.0.0

EXPOSE 9400
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ.get('STREAMDUEL_MONITORING__PORT', '9400') + '/healthz', timeout=4)"]

# No shell in between: SIGTERM reaches streamduel, which commits and leaves.
ENTRYPOINT ["streamduel"]
CMD ["run", "/etc/streamduel/config.yaml"]
