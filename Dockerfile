# Builds an image that contains only the static binary.
#
#   docker build -t steward .
#   docker run --rm -v steward:/data steward init --email you@example.org
#   docker run -d --name steward --stop-timeout 60 -v steward:/data -p 127.0.0.1:8000:8000 steward
#   docker exec steward /steward user list

FROM rust:1.95-alpine AS build
# jemalloc and ring need a C compiler and make.
RUN apk add --no-cache build-base ca-certificates
WORKDIR /src
COPY . .
# Alpine's target links musl statically, so the binary needs no libraries.
RUN cargo build --profile dist --features jemalloc --locked --bin steward \
 && install -D -m 0755 target/dist/steward /image/steward \
 && install -D -m 0644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt \
 && install -d -m 0700 /empty

FROM scratch
COPY --from=build /image/ /
# A new volume gets the owner of this folder.
COPY --from=build --chown=65532:65532 /empty /data
# The certificate authorities for mail servers.
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
# Exports need temporary files, and only the volume is writable.
ENV TMPDIR=/data
ENV STEWARD_DATA=/data/steward.redb
# The container has its own network; published ports decide who can reach the service.
ENV STEWARD_LISTEN=0.0.0.0:8000
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=7s --start-period=10m CMD ["/steward", "healthcheck"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/steward"]
CMD ["serve"]
