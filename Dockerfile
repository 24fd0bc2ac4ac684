# A small image of the server. It listens on all addresses of its container, so it serves HTTPS, and RBAC grants rights:
#   docker run --name noxu -p 127.0.0.1:6440:6440 IMAGE
#   docker cp noxu:/data/kubeconfig . && kubectl --kubeconfig kubeconfig get namespaces
# docker-compose.yml gives it a name that other containers reach.
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
COPY apiserver apiserver
COPY storage storage
RUN /build/bin/python -m hatchling build -t wheel -d /wheel \
    && /build/bin/pip --python /opt/noxu/bin/python install --no-cache-dir --no-index --no-deps /wheel/*.whl

FROM ${BASE}
COPY --from=build /opt/noxu /opt/noxu
COPY LICENSE requirements/noxu.cdx.json docs/licences.md /usr/share/doc/noxu/
RUN useradd --create-home noxu && install -d -o noxu /data && install -d -o noxu -m 700 /data/pki
ENV PATH=/opt/noxu/bin:$PATH
USER noxu
VOLUME /data
EXPOSE 6440
STOPSIGNAL SIGTERM
ENTRYPOINT ["noxu"]
CMD ["serve", "--data", "/data", "--host", "0.0.0.0"]
