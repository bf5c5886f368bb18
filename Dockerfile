# unionhall in a container: docs/container.md. compose.yaml runs it with PostgreSQL, Redis and Caddy.

# The oldest compiler that Cargo.toml promises.
FROM rust:1.89-bookworm AS build
WORKDIR /src
COPY . .
# The caches are the builder's: the binary is copied out of them.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --locked --profile dist \
    && install -m 0755 target/dist/unionhall /usr/local/bin/unionhall \
    && .ci/dependencies notices >/third-party.txt

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="unionhall" \
      org.opencontainers.image.description="The public and partner API of a consumer union: REST and MCP from one definition, in one binary." \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
# Its number is part of the contract: files that are mounted must be this user's.
RUN useradd --system --uid 10001 --user-group --home-dir /var/lib/unionhall --shell /usr/sbin/nologin unionhall \
    && install -d -o unionhall -g unionhall -m 0700 /var/lib/unionhall
# Mail servers, databases and webhooks are checked against these.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /usr/local/bin/unionhall /usr/local/bin/unionhall
COPY --from=build /third-party.txt /src/LICENSE-MIT /src/LICENSE-APACHE /src/templates/font/OFL.txt /usr/share/doc/unionhall/
USER 10001:10001
ENV UNIONHALL_DATA=/var/lib/unionhall \
    UNIONHALL_LISTEN=0.0.0.0:8080
VOLUME /var/lib/unionhall
EXPOSE 8080
# Alive, not ready: restarting a node does not bring a database back. It reads UNIONHALL_LISTEN as `serve` does, TLS included.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["unionhall", "health"]
ENTRYPOINT ["unionhall"]
CMD ["serve"]
