#!/bin/sh
# Builds the browser's half of the dashboard into dashboard/pkg, from where the binary takes it in.
# Nothing is done when its sources are as they were at the last build.
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
pkg=dashboard/pkg
PATH="$target/tools/bin:$HOME/.cargo/bin:$PATH"
export PATH

# All that goes into the bundle: two crates, the locked versions, the profile, the toolchain, this script.
inputs() {
  find dashboard operator/views -type f -not -path 'dashboard/pkg/*' -not -path 'dashboard/tests/*' -print0 | sort -z | xargs -0 sha256sum
  sha256sum Cargo.toml Cargo.lock rust-toolchain.toml scripts/build-dashboard.sh
  wasm-bindgen --version
}
stamp=$(inputs | sha256sum | cut -d' ' -f1)
if [ "$(cat "$pkg/.stamp" 2>/dev/null)" = "$stamp" ] && [ -s "$pkg/fencepost_bg.wasm" ] && [ -s "$pkg/fencepost.js" ]; then
  exit 0
fi

# A folder of its own: the features differ from those of the server's build, and the two would undo each other.
scripts/step "the dashboard (wasm)" cargo build -p fencepost-dashboard --lib --target wasm32-unknown-unknown \
  --profile wasm-release --no-default-features --features hydrate --target-dir "$target/wasm"
rm -f "$pkg/.stamp"
wasm-bindgen --target web --no-typescript --remove-name-section --remove-producers-section \
  --out-dir "$pkg" --out-name fencepost "$target/wasm/wasm32-unknown-unknown/wasm-release/fencepost_dashboard.wasm"
# Before version 116 wasm-opt breaks the table that wasm-bindgen keeps its objects in: the page would not start (seen with 108).
version=$(wasm-opt --version 2>/dev/null | sed -n 's/^wasm-opt version \([0-9]*\).*/\1/p')
if [ "${version:-0}" -ge 116 ]; then
  wasm-opt -Oz --all-features -o "$pkg/fencepost_bg.wasm.small" "$pkg/fencepost_bg.wasm"
  mv "$pkg/fencepost_bg.wasm.small" "$pkg/fencepost_bg.wasm"
else
  printf '== dashboard: wasm-opt %s is not used (116 or newer is); the bundle is larger and works the same\n' "${version:-missing}" >&2
fi
printf '%s\n' "$stamp" >"$pkg/.stamp"
printf '== dashboard: %s bytes of wasm\n' "$(wc -c <"$pkg/fencepost_bg.wasm")" >&2
