# Steward as one static program in an image that holds nothing else.
#
#   docker build -t steward .
#   docker run --rm -v steward:/data steward init --email you@example.org
#   docker run -d --name steward --stop-timeout 60 -v steward:/data -p 127.0.0.1:8000:8000 steward
#   docker exec steward /steward user list

FROM rust:1.95-alpine AS build
# jemalloc and ring are built with a C compiler and make.
RUN apk add --no-cache build-base ca-certificates
WORKDIR /src
COPY . .
# Alpine's own target links musl in, so the program needs no other file.
RUN cargo build --profile dist --locked --bin steward \
 && install -D -m 0755 target/dist/steward /image/steward \
 && install -D -m 0644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt \
 && install -d -m 0700 /empty

FROM scratch
COPY --from=build /image/ /
# A new volume takes its owner from this folder.
COPY --from=build --chown=65532:65532 /empty /data
# Mail servers are trusted by these authorities.
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
# What exports wait in before they are told: there is no other place to write.
ENV TMPDIR=/data
ENV STEWARD_DATA=/data/steward.redb
# A container has addresses of its own: who reaches them is decided by what is published.
ENV STEWARD_LISTEN=0.0.0.0:8000
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=7s --start-period=10m CMD ["/steward", "healthcheck"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/steward"]
CMD ["serve"]
