#!/bin/sh
# Checks the chart without a cluster: one line for each check, with what was real in it. Exits 1 when any failed, after all have run.
#
# Needs helm (from PATH, or as scripts/build-apiserver.sh puts it into target/apiserver), promtool (Debian's package prometheus) and
# python3. What is applied to a real API server is tested elsewhere, with the same files of tests/chart/values.
set -u
cd "$(dirname "$0")/.." || exit 1
chart=charts/fencepost
alerts=$chart/files/alerts.yaml
dashboard=$chart/dashboards/fencepost.json

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

helm=$(command -v helm || echo "${CARGO_TARGET_DIR:-target}/apiserver/helm")
[ -x "$helm" ] || {
  echo "check-chart: no helm; build it with: scripts/build-apiserver.sh" >&2
  exit 1
}
for program in promtool python3; do
  command -v "$program" >/dev/null || {
    echo "check-chart: no $program; install it with: apt-get install --no-install-recommends prometheus python3" >&2
    exit 1
  }
done
helm_version=$("$helm" version --template '{{.Version}}')
promtool_version=$(promtool --version 2>&1 | sed -n '1s/.*version \([^ ]*\).*/\1/p')

failed=0
# check NAME FUNCTION: the function's last line of output says what was real; on failure all of its output is shown.
check() {
  if "$2" >"$work/said" 2>&1; then
    printf 'ok      %-28s %s\n' "$1" "$(tail -n 1 "$work/said")"
  else
    failed=$((failed + 1))
    printf 'FAILED  %s\n' "$1"
    sed 's/^/        /' "$work/said"
  fi
}

count() {
  set -- "$@"
  echo $#
}

template() {
  "$helm" template fencepost "$chart" --namespace fencepost "$@"
}

crds() {
  diff -r crds/yaml "$chart/files/crds" || {
    echo "the chart's copies of the CRDs differ; mend them with: rm -f $chart/files/crds/* && cp crds/yaml/*.yaml $chart/files/crds/"
    return 1
  }
  echo "$(count crds/yaml/*.yaml) CRDs are byte for byte those of crds/yaml"
}

versions() {
  workspace=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
  app=$(sed -n 's/^appVersion: //p' "$chart/Chart.yaml")
  [ "$workspace" = "$app" ] || {
    echo "Cargo.toml has version $workspace and the chart appVersion $app; mend it with: sed -i 's/^appVersion: .*/appVersion: $workspace/' $chart/Chart.yaml"
    return 1
  }
  echo "appVersion is Cargo.toml's $workspace"
}

# What the Dockerfile says twice.
image() {
  channel=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
  wrong=$(sed -n 's/^FROM .*rust:\([0-9.]*\)-.*/\1/p; s/.*RUSTUP_TOOLCHAIN=\([^ ]*\).*/\1/p' Dockerfile | grep -vx "$channel")
  [ -z "$wrong" ] || {
    echo "the Dockerfile names Rust" "$wrong" "and rust-toolchain.toml $channel; mend it with: sed -i 's/rust:[0-9.]*-/rust:$channel-/; s/RUSTUP_TOOLCHAIN=.*/RUSTUP_TOOLCHAIN=$channel/' Dockerfile"
    return 1
  }
  grep -qx "ARG VERSION=$workspace" Dockerfile || {
    echo "the Dockerfile's VERSION is not Cargo.toml's; mend it with: sed -i 's/^ARG VERSION=.*/ARG VERSION=$workspace/' Dockerfile"
    return 1
  }
  user=$(sed -n 's/^USER \([0-9]*\):.*/\1/p' Dockerfile)
  grep -qx "  runAsUser: $user" $chart/values.yaml || {
    echo "the Dockerfile's user is $user, and pod.runAsUser in $chart/values.yaml another"
    return 1
  }
  echo "the Dockerfile has Rust $channel, version $workspace and user $user as elsewhere; it is not built here"
}

described() {
  python3 - "$chart/values.schema.json" <<'PYTHON'
import json, sys

schema = json.load(open(sys.argv[1]))
wrong, seen = [], 0

def walk(path, node):
    global seen
    seen += 1
    if not node.get("description"):
        wrong.append(f"{path} has no description")
    if "properties" in node and node.get("additionalProperties") is not False:
        wrong.append(f"{path} takes values that it does not name; add additionalProperties: false")
    for name, child in node.get("properties", {}).items():
        walk(f"{path}.{name}".lstrip("."), child)

walk("", schema)
print("\n".join(wrong) if wrong else f"{seen} values have a description, and no object with named values takes others")
sys.exit(bool(wrong))
PYTHON
}

lint() {
  for values in tests/chart/values/*.yaml; do
    "$helm" lint --strict --quiet "$chart" --values "$values" || {
      echo "with $values"
      return 1
    }
  done
  echo "helm $helm_version lint --strict with $(count tests/chart/values/*.yaml) values files"
}

templates() {
  objects=0
  for values in tests/chart/values/*.yaml; do
    template --values "$values" >"$work/rendered" || {
      echo "with $values"
      return 1
    }
    these=$(grep -c '^kind: ' "$work/rendered")
    [ "$these" -gt 0 ] || {
      echo "$values renders nothing"
      return 1
    }
    objects=$((objects + these))
  done
  echo "helm $helm_version renders $objects objects of $(count tests/chart/values/*.yaml) values files"
}

# What must be refused, with the words of the file's first line.
refused() {
  for values in tests/chart/refused/*.yaml; do
    says=$(sed -n '1s/^# says: //p' "$values")
    [ -n "$says" ] || {
      echo "$values does not begin with '# says: '"
      return 1
    }
    if template --values "$values" >/dev/null 2>"$work/refusal"; then
      echo "$values was rendered"
      return 1
    fi
    grep -qF -- "$says" "$work/refusal" || {
      echo "$values was refused with other words than: $says"
      cat "$work/refusal"
      return 1
    }
  done
  echo "helm $helm_version refuses $(count tests/chart/refused/*.yaml) contradictions, each in its own words"
}

# The rules as a file, and as a release of another name renders them.
rules() {
  promtool check rules "$alerts" || return 1
  template --values tests/chart/values/everything-on.yaml --show-only templates/prometheusrule.yaml >"$work/object" || return 1
  sed '1,/^spec:/d; s/^  //' "$work/object" >"$work/rendered-rules.yaml"
  promtool check rules "$work/rendered-rules.yaml" || return 1
  if grep -n 'job="fencepost"\|blob/main' "$work/rendered-rules.yaml"; then
    echo "these lines of the PrometheusRule are not about the release that was rendered"
    return 1
  fi
  echo "promtool $promtool_version parses $(grep -c 'alert:' "$alerts") rules, and the PrometheusRule of a release named otherwise"
}

rule_tests() {
  promtool test rules tests/chart/alerts/*.yaml || return 1
  echo "promtool $promtool_version evaluates $(cat tests/chart/alerts/*.yaml | grep -c eval_time:) moments of $(count tests/chart/alerts/*.yaml) alerts on made-up series"
}

# Each alert has a page, a test that sees it fire and one that sees it silent; and no page or test is about nothing.
pages() {
  sed -n 's/^ *- alert: //p' "$alerts" | sort -u >"$work/alerts"
  wrong=0
  while read -r alert; do
    page=docs/runbooks/$alert.md
    test=tests/chart/alerts/$alert.yaml
    grep -q "/docs/runbooks/$alert.md\$" "$alerts" || { echo "$alert has no runbook_url to $page" && wrong=1; }
    [ -s "$page" ] || { echo "$page is missing" && wrong=1; }
    grep -q 'exp_labels:' "$test" 2>/dev/null || { echo "$test does not show that it fires" && wrong=1; }
    grep -q 'exp_alerts: \[\]' "$test" 2>/dev/null || { echo "$test does not show that it is silent" && wrong=1; }
  done <"$work/alerts"
  for file in docs/runbooks/*.md tests/chart/alerts/*.yaml; do
    name=$(basename "$file")
    [ "$name" = README.md ] || grep -qx "${name%.*}" "$work/alerts" || { echo "$file is about no alert" && wrong=1; }
  done
  echo "$(wc -l <"$work/alerts") alerts have a page, and a test both ways"
  return "$wrong"
}

# Each metric that a rule, a panel, a page or a test speaks of is one that the operator exports.
metrics() {
  sed -n 's/.*"\(fencepost_[a-z_]*\)".*/\1/p' operator/src/metrics/families.rs | sort -u >"$work/exported"
  [ -s "$work/exported" ] || {
    echo "no metric was found in operator/src/metrics/families.rs"
    return 1
  }
  grep -oh 'fencepost_[a-z_]*' "$alerts" "$dashboard" docs/runbooks/*.md tests/chart/alerts/*.yaml docs/installing.md |
    sed 's/^\(fencepost_convergence_seconds\)_\(bucket\|count\|sum\)$/\1/' | sort -u >"$work/used"
  unknown=$(comm -13 "$work/exported" "$work/used")
  [ -z "$unknown" ] || {
    echo "not exported by operator/src/metrics/families.rs:" "$unknown"
    return 1
  }
  echo "$(wc -l <"$work/used") metrics in rules, panels and pages, of $(wc -l <"$work/exported") that the operator exports"
}

# Prometheus' own parser reads each query of the dashboard, as a rule, with Grafana's variables filled in.
panels() {
  python3 - "$dashboard" >"$work/panels.yaml" <<'PYTHON' || return 1
import json, sys

panels = json.load(open(sys.argv[1]))["panels"]
queries = [t["expr"] for p in panels for t in p.get("targets", [])]
rules = []
for number, query in enumerate(queries):
    for variable, value in (("$__rate_interval", "5m"), ("$__range", "6h"), ("$job", "fencepost"), ("$namespace", ".*"), ("$name", ".*")):
        query = query.replace(variable, value)
    rules.append({"record": f"panel:query:{number}", "expr": query})
print(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
PYTHON
  promtool check rules "$work/panels.yaml" || return 1
  echo "promtool $promtool_version parses $(grep -o '"record"' "$work/panels.yaml" | wc -l) queries of the dashboard"
}

# The scrape configuration of docs/installing.md. Debian's Prometheus is built without service discovery in Kubernetes.
scrape() {
  sed -n '/^scrape_configs:/,/^```/p' docs/installing.md | sed '$d; /kubernetes_sd_configs:/,/names:/d' >"$work/scrape.yaml"
  promtool check config --syntax-only "$work/scrape.yaml" || return 1
  echo "promtool $promtool_version parses the one of docs/installing.md, but for its service discovery"
}

check "CRD copies" crds
check "versions" versions
check "image" image
check "values schema" described
check "lint" lint
check "templates" templates
check "contradictions" refused
check "alert rules" rules
check "alert tests" rule_tests
check "runbooks" pages
check "metric names" metrics
check "dashboard queries" panels
check "scrape configuration" scrape
[ "$failed" -eq 0 ] || {
  echo "$failed checks of the chart failed"
  exit 1
}
