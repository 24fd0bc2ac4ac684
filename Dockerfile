# A small image of the server. Plain HTTP is for loopback only, so run it with the host's network (see docker-compose.yml).
#
# Everything that pip installs is pinned with hashes in requirements/. The base image is a tag: a digest is an argument,
#   docker build --build-arg BASE=python:3.13-slim@sha256:… .
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
WORKDIR /src
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN python -m venv /build \
    && /build/bin/pip install --no-cache-dir --only-binary :all: --require-hashes -r requirements/build.txt \
    && python -m venv --without-pip /opt/noxu \
    && /build/bin/pip --python /opt/noxu/bin/python install --no-cache-dir --only-binary :all: --require-hashes -r requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY noxu noxu
COPY apiserver apiserver
COPY storage storage
RUN /build/bin/python -m hatchling build -t wheel -d /wheel \
    && /build/bin/pip --python /opt/noxu/bin/python install --no-cache-dir --no-index --no-deps /wheel/*.whl

FROM ${BASE}
COPY --from=build /opt/noxu /opt/noxu
COPY LICENSE requirements/noxu.cdx.json docs/licences.md /usr/share/doc/noxu/
RUN useradd --create-home noxu && install -d -o noxu /data
ENV PATH=/opt/noxu/bin:$PATH
USER noxu
VOLUME /data
STOPSIGNAL SIGTERM
ENTRYPOINT ["noxu"]
CMD ["serve", "--data", "/data"]
