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
 && cargo install wasm-bindgen-cli --root /usr/local \
      --version "$(sed -n '/^name = "wasm-bindgen"$/{n;s/^version = "\(.*\)"/\1/p;}' Cargo.lock)"
COPY . .
# The script builds without --locked; fetching with it first makes sure that the lock file is complete, and offline it stays as it is.
RUN cargo fetch --locked \
 && CARGO_NET_OFFLINE=true CARGO_TARGET_DIR=/target scripts/build-dashboard.sh \
 && rm -rf /target

# The binary, and a root file system of what it needs: the C library that it was linked with, certificates, a user. The test of the
# image makes its root the same way (tests/tests/kubernetes/image.rs).
FROM rust:1.95.0-bookworm AS binary
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /src
COPY . .
COPY --from=dashboard /src/dashboard/pkg dashboard/pkg
RUN cargo build --locked --release --package fencepost --target-dir /target \
 && mkdir -p /root-of-image/usr/local/bin /root-of-image/etc/ssl/certs \
 && cp /target/release/fencepost /root-of-image/usr/local/bin/ \
 && ldd /target/release/fencepost | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }' | while read -r library; do \
      mkdir -p "/root-of-image$(dirname "$library")" && cp -L "$library" "/root-of-image$library" || exit 1; \
    done \
 && cp /etc/ssl/certs/ca-certificates.crt /root-of-image/etc/ssl/certs/ \
 && echo 'hosts: files dns' > /root-of-image/etc/nsswitch.conf \
 && echo 'nonroot:x:65532:65532:nonroot:/:/none' > /root-of-image/etc/passwd \
 && rm -rf /target

# No shell, no package manager, no other program.
FROM scratch
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="fencepost" \
      org.opencontainers.image.description="Keeps the MCP resources that agents and indexes depend on provably fresh" \
      org.opencontainers.image.source="https://github.com/fencepost/fencepost" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=binary /root-of-image/ /
# By number, so that runAsNonRoot can be checked before the container starts.
USER 65532:65532
EXPOSE 7780
ENTRYPOINT ["/usr/local/bin/fencepost"]
CMD ["operator"]
