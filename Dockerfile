# syntax=docker/dockerfile:1
# The operator's image: one binary, the dashboard inside it, as a user that is not root, on a file system that may be read-only.
#
#   docker build --tag fencepost:0.1.0 .
#
# Everything is built from the lock files: an outdated Cargo.lock ends the build. The images of Rust below are of the version that
# rust-toolchain.toml names; RUSTUP_TOOLCHAIN keeps rustup from fetching what only development needs.

# The browser's half. Wasm is the same for every platform, so it is built once. Debian 13, whose wasm-opt is new enough.
FROM --platform=$BUILDPLATFORM rust:1.95.0-trixie AS dashboard
ENV RUSTUP_TOOLCHAIN=1.95.0
RUN apt-get update \
 && apt-get install --yes --no-install-recommends binaryen \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY Cargo.lock ./
# wasm-bindgen must be of the very version that the code is linked with.
RUN rustup target add wasm32-unknown-unknown \
 && cargo install wasm-bindgen-cli --locked --root /usr/local \
      --version "$(sed -n '/^name = "wasm-bindgen"$/{n;s/^version = "\(.*\)"/\1/p;}' Cargo.lock)"
COPY . .
# The script builds without --locked; fetching with it first makes sure that the lock file is complete, and offline it stays as it is.
RUN cargo fetch --locked \
 && CARGO_NET_OFFLINE=true CARGO_TARGET_DIR=/target scripts/build-dashboard.sh \
 && rm -rf /target

# The binary. Debian 12, as the image that it runs in: the C library of a newer one would not be found there.
FROM rust:1.95.0-bookworm AS binary
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /src
COPY . .
COPY --from=dashboard /src/dashboard/pkg dashboard/pkg
RUN cargo build --locked --release --package fencepost --target-dir /target \
 && cp /target/release/fencepost /usr/local/bin/fencepost \
 && rm -rf /target

# No shell, no package manager: the C library, certificates, time zones, and the binary.
FROM gcr.io/distroless/cc-debian12:nonroot
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="fencepost" \
      org.opencontainers.image.description="Keeps the MCP resources that agents and indexes depend on provably fresh" \
      org.opencontainers.image.source="https://github.com/fencepost/fencepost" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=binary /usr/local/bin/fencepost /usr/local/bin/fencepost
# By number, so that runAsNonRoot can be checked before the container starts.
USER 65532:65532
EXPOSE 7780
ENTRYPOINT ["/usr/local/bin/fencepost"]
CMD ["operator"]
