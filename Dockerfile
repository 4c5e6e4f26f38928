# The image is the binary, the roots of trust, the zone data and one folder to
# write to. It holds no shell: the health check is a command of the binary.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -tags nethttpomithttp2 -ldflags="-s -w" -o /out/creel . \
 && mkdir -p /out/data /out/tmp \
 && cp /usr/local/go/lib/time/zoneinfo.zip /out/zoneinfo.zip

FROM scratch
ARG VERSION=dev
LABEL org.opencontainers.image.title="creel" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="MIT"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/zoneinfo.zip /usr/share/zoneinfo.zip
COPY --from=build /out/creel /creel
# A fresh named volume takes the owner of this folder, so that it can be
# written by the user below.
COPY --from=build --chown=65532:65532 --chmod=0700 /out/data /data

# A container is reached from outside itself, so both listeners bind every
# address; publish only the ports that you mean to.
ENV ZONEINFO=/usr/share/zoneinfo.zip \
    CREEL_LISTEN=0.0.0.0:8080 \
    CREEL_ADMIN_LISTEN=0.0.0.0:8081 \
    CREEL_DATABASE=/data/creel.db
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=6s --start-period=10s --retries=3 CMD ["/creel", "health"]
ENTRYPOINT ["/creel"]
CMD ["serve"]
