# A small image of the server. Plain HTTP is for loopback only, so run it with the host's network (see docker-compose.yml).
FROM python:3.13-slim
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY noxu noxu
COPY apiserver apiserver
COPY storage storage
RUN pip install --no-cache-dir . && useradd --create-home noxu && install -d -o noxu /data
USER noxu
VOLUME /data
STOPSIGNAL SIGTERM
ENTRYPOINT ["noxu"]
CMD ["serve", "--data", "/data"]
