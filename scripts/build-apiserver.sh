#!/bin/sh
# Puts a Kubernetes control plane and its clients into target/apiserver, for the tests: etcd, kube-apiserver, kube-controller-manager
# and kubectl (one binary, fencepost-apiserver, under four names), and helm. They are built from their published Go modules, at the
# versions of tests/apiserver/go.mod. Minutes the first time; nothing is done when they are up to date.
#
#   KUBECONFIG=file            a disposable cluster is used: no server is built
#   KUBEBUILDER_ASSETS=folder  its etcd, kube-apiserver and kubectl are used
#   GO=program                 the Go to build with
# helm from PATH is used where it is 3.14 or newer, kubectl from PATH for a cluster that it is at most one minor version away from.
set -eu
cd "$(dirname "$0")/.."
source=tests/apiserver
mkdir -p "${CARGO_TARGET_DIR:-target}/apiserver"
out=$(cd "${CARGO_TARGET_DIR:-target}/apiserver" && pwd)

say() { printf '== apiserver: %s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }
die() {
  say "$*"
  exit 1
}
# at_least WANTED VERSION
at_least() {
  [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}
# The version of a module that go.mod requires, without the v.
required() {
  sed -n "s|^\t$1 v\([^ ]*\).*|\1|p" "$source/go.mod" | head -n 1
}

kubernetes=$(required k8s.io/kubernetes)
helm=$(required helm.sh/helm/v4)
wanted_go=$(sed -n 's/^go //p' "$source/go.mod")
stamp=$(sha256sum "$source"/*.go "$source/go.mod" "$source/go.sum" scripts/build-apiserver.sh | sha256sum | cut -d' ' -f1)

# up_to_date PROGRAM
up_to_date() {
  [ -x "$out/$1" ] && [ "$(cat "$out/.$1.stamp" 2>/dev/null)" = "$stamp" ]
}

# Sets `go` to a Go that is new enough, installing what is missing.
find_go() {
  go=${GO:-$(command -v go || true)}
  if [ -z "$go" ] && [ -x /usr/local/go/bin/go ]; then go=/usr/local/go/bin/go; fi
  if [ -z "$go" ]; then
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
      has sudo || die "Go $wanted_go is needed, and neither root nor sudo is at hand to install it: install it and run this again"
      as_root=sudo
    fi
    has apt-get || die "Go $wanted_go is needed, and this script knows only apt: install it and run this again"
    say "Go, by the package golang-go"
    $as_root apt-get update -qq >&2
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends golang-go >&2
    go=$(command -v go)
  fi
  # From /: inside the module an old Go refuses to answer.
  version=$(cd / && GOTOOLCHAIN=local "$go" env GOVERSION | sed 's/^go//')
  if at_least "$wanted_go" "$version"; then
    GOTOOLCHAIN=local
  elif at_least 1.21 "$version"; then
    say "Go $version is too old and fetches Go $wanted_go"
    GOTOOLCHAIN=go$wanted_go
  else
    say "Go $version is too old for that: Go $wanted_go is fetched as the module it is published as"
    toolchain=golang.org/toolchain@v0.0.1-go$wanted_go.$(cd / && "$go" env GOOS)-$(cd / && "$go" env GOARCH)
    folder=$(cd / && "$go" mod download -json "$toolchain" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
    [ -d "$folder" ] || die "$toolchain could not be fetched: install Go $wanted_go and run this again"
    # Modules have no executable files; a newer Go does the same to the toolchains that it fetches.
    chmod -R u+x "$folder/bin" "$folder/pkg/tool"
    go=$folder/bin/go
    GOTOOLCHAIN=local
  fi
  export GOTOOLCHAIN
}

# Go is silent for minutes: every 150th package says that something happens. All else that it writes is passed on.
progress() {
  awk '
    /^exit [0-9]+$/ { code = $2; next }
    /^go: downloading / { if (!fetching++) say("fetching modules"); next }
    /^[A-Za-z0-9._~+-]+(\/[A-Za-z0-9._~+-]+)*$/ { if (++compiled % 150 == 0) say(compiled " packages compiled"); next }
    { print > "/dev/stderr" }
    function say(text) { print "== apiserver: " text > "/dev/stderr"; fflush("/dev/stderr") }
    END { exit code }'
}

# go_build PROGRAM PACKAGE
go_build() {
  version=k8s.io/component-base/version
  set -- "$1" "$2" "-s -w -X $version.gitVersion=v$kubernetes -X $version.gitMajor=${kubernetes%%.*} \
    -X $version.gitMinor=$(echo "$kubernetes" | cut -d. -f2) -X helm.sh/helm/v4/internal/version.version=v$helm"
  {
    (cd "$source" && CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off \
      "$go" build -v -trimpath -buildvcs=false -ldflags "$3" -o "$out/.$1.new" "$2") 2>&1 || echo "exit $?"
  } | progress
  mv -f "$out/.$1.new" "$out/$1"
  printf '%s\n' "$stamp" >"$out/.$1.stamp"
}

# scripts/step runs this script again with the function's name.
case ${1:-} in
  --servers)
    find_go
    go_build fencepost-apiserver .
    exit
    ;;
  --helm)
    find_go
    go_build helm helm.sh/helm/v4/cmd/helm
    exit
    ;;
esac

build_servers() {
  up_to_date fencepost-apiserver ||
    scripts/step "etcd, kube-apiserver, kube-controller-manager and kubectl $kubernetes (about 12 minutes on 2 cores the first time)" \
      scripts/build-apiserver.sh --servers
  for program in etcd kube-apiserver kube-controller-manager kubectl; do
    ln -sfn fencepost-apiserver "$out/$program"
  done
}

# The minor version of one side, of `kubectl version -o json`.
minor() {
  sed -n "/\"$1\"/,/}/s/.*\"minor\": \"\([0-9]*\).*/\1/p"
}
# Whether the kubectl of PATH is within a minor version of the cluster in KUBECONFIG.
kubectl_of_path_fits() {
  has kubectl || return 1
  versions=$(kubectl version -o json 2>/dev/null) || return 1
  difference=$(($(echo "$versions" | minor clientVersion) - $(echo "$versions" | minor serverVersion)))
  [ "$difference" -ge -1 ] && [ "$difference" -le 1 ]
}

if [ -n "${KUBECONFIG:-}" ]; then
  if kubectl_of_path_fits; then
    ln -sfn "$(command -v kubectl)" "$out/kubectl"
  else
    build_servers
  fi
elif [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  for program in etcd kube-apiserver kubectl; do
    [ -x "$KUBEBUILDER_ASSETS/$program" ] || die "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS has no $program"
  done
  if [ ! -x "$KUBEBUILDER_ASSETS/kube-controller-manager" ]; then
    up_to_date fencepost-apiserver || say "$KUBEBUILDER_ASSETS has no kube-controller-manager, without which no namespace ends: it is built"
    build_servers
  fi
else
  build_servers
fi

if has helm && at_least 3.14 "$(helm version --template '{{.Version}}' 2>/dev/null | sed 's/^v//')"; then
  ln -sfn "$(command -v helm)" "$out/helm"
elif ! up_to_date helm || [ -L "$out/helm" ]; then
  rm -f "$out/helm"
  scripts/step "helm $helm" scripts/build-apiserver.sh --helm
fi
