#!/bin/sh
# Installs what is missing to build and run Fencepost on Debian or Ubuntu. Quick when nothing is missing; safe to run again.
#
#   scripts/install.sh         what `make dev` and `make build` need
#   scripts/install.sh test    and what the tests need: Node, Python, Chromium, Prometheus
set -eu
cd "$(dirname "$0")/.."
want=${1:-build}

say() { printf '== install: %s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

# Packages to ask apt for: only those whose program is missing.
packages=
need() {
  has "$1" || packages="$packages $2"
}
need cc build-essential
need make build-essential
need pkg-config pkg-config
need git git
need curl curl
[ -e /etc/ssl/certs/ca-certificates.crt ] || packages="$packages ca-certificates"
if ! has initdb && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
  packages="$packages postgresql"
fi
if [ "$want" = test ]; then
  need node nodejs
  need npm npm
  if ! has python3 || ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then
    packages="$packages python3 python3-venv"
  fi
  has chromium || has chromium-browser || has google-chrome || packages="$packages chromium"
  need chromedriver chromium-driver
  need promtool prometheus
  need unshare util-linux
fi

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif has sudo; then
    sudo "$@"
  else
    say "these packages are missing and neither root nor sudo is at hand; install them and run this again:$packages"
    exit 1
  fi
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

if [ -n "$packages" ]; then
  if ! has apt-get; then
    say "this script knows only apt. Install the equivalents of these Debian packages and run it again:$packages"
    say "without PostgreSQL on this machine, 'fencepost dev --database-url' takes any PostgreSQL 15 or newer"
    exit 1
  fi
  say "packages:$packages"
  as_root apt-get update -qq >&2
  case " $packages " in
    *" postgresql "*)
      # Only the binaries are wanted: the package's own cluster is neither created nor started, if it can be helped.
      if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
        apt_install postgresql-common
        as_root sh -c "sed -i 's/^#*create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf" || true
      fi
      ;;
  esac
  # Prometheus is wanted as a program, not as a service of this machine: while this file is there, a package starts nothing.
  policy=
  case " $packages " in
    *" prometheus "*)
      if [ ! -e /usr/sbin/policy-rc.d ]; then
        policy=/usr/sbin/policy-rc.d
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
        as_root chmod +x "$policy"
        trap 'as_root rm -f "$policy"' EXIT
      fi
      ;;
  esac
  # The list is words on purpose.
  # shellcheck disable=SC2086
  apt_install $packages
  if [ -n "$policy" ]; then
    as_root rm -f "$policy"
    trap - EXIT
    # As it would at the next start of the machine.
    if has systemctl; then as_root systemctl disable --quiet prometheus 2>/dev/null || true; fi
  fi
fi

# Rust. A toolchain that rustup manages follows rust-toolchain.toml by itself.
PATH="$HOME/.cargo/bin:$PATH"
export PATH
if ! has cargo; then
  if has apt-get && apt-cache show rustup >/dev/null 2>&1; then
    say "Rust, by Debian's rustup package"
    apt_install rustup
  else
    say "Rust, by rustup's own installer (https://rustup.rs), into $HOME/.cargo"
    installer=$(mktemp)
    curl --proto '=https' --tlsv1.2 -sSf -o "$installer" https://sh.rustup.rs
    sh "$installer" -y --no-modify-path --profile minimal --default-toolchain none >&2
    rm -f "$installer"
  fi
fi
channel=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
if has rustup; then
  if ! rustup run "$channel" rustc --version >/dev/null 2>&1; then
    say "the Rust toolchain $channel"
    rustup toolchain install "$channel" --profile minimal --component rustfmt --component clippy >&2
  fi
  if ! rustup target list --installed --toolchain "$channel" | grep -qx wasm32-unknown-unknown; then
    say "the wasm target of Rust"
    rustup target add --toolchain "$channel" wasm32-unknown-unknown >&2
  fi
elif [ ! -d "$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown" ]; then
  say "this Rust has no wasm32-unknown-unknown target and no rustup to add it; install Rust by rustup"
  exit 1
fi

# wasm-bindgen must be of the very version that the code was linked with.
version=$(sed -n '/^name = "wasm-bindgen"$/{n;s/^version = "\(.*\)"/\1/p;}' Cargo.lock)
tools=${CARGO_TARGET_DIR:-target}/tools
if [ "$("$tools/bin/wasm-bindgen" --version 2>/dev/null)" != "wasm-bindgen $version" ]; then
  say "wasm-bindgen $version (two minutes)"
  cargo install wasm-bindgen-cli --version "$version" --root "$tools" --target-dir "$tools/build" --quiet
  rm -rf "$tools/build"
fi
