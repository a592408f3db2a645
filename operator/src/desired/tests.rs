#![allow(clippy::unwrap_used, clippy::panic)]

use std::{fs, time::Duration};

use fencepost_crds::RefreshMode;

use super::{
    load::{LoadCause, server_loads},
    *,
};
use crate::manifest::{ClusterObjects, Publisher, UidRegistry, load};

/// Objects of `manifests`, which must be right by themselves.
fn objects(manifests: &str) -> ObjectSet {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("all.yaml"), manifests).unwrap();
    let outcome = load(&[folder.path().to_owned()], &mut UidRegistry::default());
    assert!(outcome.errors.is_empty(), "{:#?}", outcome.errors);
    outcome.objects
}

fn object(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: fencepost.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}, uid: uid-{name}}}\nspec: {spec}\n"
    )
}

fn secret(name: &str, key: &str, value: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{{key}: {value:?}}}\n"
    )
}

fn docs() -> String {
    object("MCPServer", "docs", "{url: 'http://docs.example/mcp'}")
}

fn reasons(desired: &Desired) -> Vec<(String, &'static str)> {
    desired
        .problems
        .iter()
        .map(|problem| {
            (
                format!("{} {}", problem.object.name, problem.field),
                problem.reason.as_str(),
            )
        })
        .collect()
}

#[test]
fn several_watches_of_one_uri_are_read_as_the_strictest_asks() {
    let manifests = docs()
        + &object(
            "WatchedResource",
            "a",
            "{serverRef: {name: docs}, uris: ['docs:///x', 'docs:///y'], refresh: {mode: Poll, maxStaleness: 40s, jitterPercent: 20}, content: {store: false, keepVersions: 3}, digest: {ignoreJsonPointers: [/a, /b]}}",
        )
        + &object(
            "WatchedResource",
            "b",
            "{serverRef: {name: docs}, uris: ['docs:///x'], refresh: {maxStaleness: 60s, pollInterval: 10s, jitterPercent: 5}, content: {keepVersions: 7}, digest: {ignoreJsonPointers: [/b]}}",
        );
    let desired = desired(&objects(&manifests));
    assert_eq!(
        reasons(&desired),
        [("b spec.uris[0]".to_owned(), "ModesDiffer")]
    );
    let [session] = desired.sessions.as_slice() else {
        panic!("{:?}", desired.sessions)
    };
    assert_eq!(session.subject.name, "anonymous");
    let x = &session.resources[0];
    assert_eq!(
        (x.uri.as_str(), x.mode, x.cohort),
        ("docs:///x", RefreshMode::Auto, true)
    );
    assert_eq!(
        (x.max_staleness, x.poll_interval),
        (Duration::from_secs(40), Duration::from_secs(10))
    );
    assert_eq!((x.jitter_percent, x.store, x.keep_versions), (5, true, 7));
    assert_eq!(x.ignore_json_pointers, ["/b"]);
    assert_eq!(
        x.watches
            .iter()
            .map(|watch| watch.name.as_str())
            .collect::<Vec<_>>(),
        ["a", "b"]
    );
    let y = &session.resources[1];
    assert_eq!(
        (y.mode, y.poll_interval),
        (RefreshMode::Poll, Duration::from_secs(20)),
        "half of maxStaleness"
    );
}

#[test]
fn the_anonymous_subject_keeps_its_uid_and_can_be_declared() {
    let watch = object(
        "WatchedResource",
        "a",
        "{serverRef: {name: docs}, uris: ['docs:///x']}",
    );
    let undeclared = desired(&objects(&(docs() + &watch)));
    assert_eq!(undeclared.subjects[0].key.uid, anonymous_uid("default"));
    assert_eq!(anonymous_uid("default"), anonymous_uid("default"));
    assert_ne!(anonymous_uid("default"), anonymous_uid("agents"));

    let revoked = desired(&objects(
        &(docs() + &watch + &object("MCPSubject", "anonymous", "{revoked: true}")),
    ));
    assert_eq!(revoked.subjects[0].withdrawal, Some(Withdrawal::Revoked));
    assert!(
        revoked.sessions.is_empty() && revoked.problems.is_empty(),
        "{revoked:?}"
    );
}

#[test]
fn credentials_are_resolved_and_a_missing_secret_withdraws_them() {
    let subject = object(
        "MCPSubject",
        "support",
        "{credentialSecretRef: {name: token, key: token}}",
    );
    let watch = object(
        "WatchedResource",
        "a",
        "{serverRef: {name: docs}, subjectRef: {name: support}, uris: ['docs:///x']}",
    );
    let base = docs() + &subject + &watch;
    let with = desired(&objects(
        &(base.clone() + &secret("token", "token", "hunter2")),
    ));
    let credential = with.subjects[0].credential.as_ref().unwrap();
    assert_eq!(
        (credential.header.as_str(), credential.value.expose()),
        ("Authorization", b"Bearer hunter2".as_slice())
    );
    assert_eq!(with.sessions.len(), 1);
    assert!(!format!("{with:?}").contains("hunter2"));

    let without = desired(&objects(&base));
    assert_eq!(
        without.subjects[0].withdrawal,
        Some(Withdrawal::CredentialGone)
    );
    assert!(without.sessions.is_empty());
    assert_eq!(
        reasons(&without),
        [(
            "support spec.credentialSecretRef".to_owned(),
            "SecretNotFound"
        )]
    );
    let wrong_key = desired(&objects(&(base + &secret("token", "other", "hunter2"))));
    assert_eq!(
        wrong_key.problems[0].reason,
        ProblemReason::SecretKeyNotFound
    );
}

#[test]
fn another_namespace_has_to_allow_it() {
    let server = docs().replace("{name: docs,", "{namespace: platform, name: docs,");
    let watch = object(
        "WatchedResource",
        "a",
        "{serverRef: {name: docs, namespace: platform}, uris: ['docs:///x']}",
    );
    let grant = |from: &str, to: &str| {
        format!(
            "---\napiVersion: gateway.networking.k8s.io/v1beta1\nkind: ReferenceGrant\nmetadata: {{name: g, namespace: platform}}\nspec: {{from: [{{group: fencepost.dev, kind: WatchedResource, namespace: {from}}}], to: [{{group: fencepost.dev, kind: MCPServer, name: {to}}}]}}\n"
        )
    };
    let base = server + &watch;
    for refused in ["", &grant("other", "docs"), &grant("default", "else")] {
        let desired = desired(&objects(&format!("{base}{refused}")));
        assert_eq!(
            reasons(&desired),
            [("a spec.serverRef".to_owned(), "ReferenceNotGranted")],
            "{refused}"
        );
        assert!(desired.sessions.is_empty());
    }
    let allowed = desired(&objects(&(base + &grant("default", "docs"))));
    assert!(allowed.problems.is_empty());
    let session = &allowed.sessions[0];
    assert_eq!(
        (
            session.server.namespace.as_str(),
            session.subject.namespace.as_str()
        ),
        ("platform", "default")
    );
}

#[test]
fn outside_the_cohort_is_polled() {
    let uris: Vec<String> = (0..200).map(|n| format!("'docs:///{n}'")).collect();
    let with = |rollout: &str| {
        let spec = format!(
            "{{serverRef: {{name: docs}}, uris: [{}], refresh: {{mode: Subscribe}}, rollout: {rollout}}}",
            uris.join(", ")
        );
        let mut desired = desired(&objects(&(docs() + &object("WatchedResource", "a", &spec))));
        desired.sessions.remove(0).resources
    };
    let taken = |resources: &[DesiredResource]| -> Vec<String> {
        resources
            .iter()
            .filter(|resource| resource.cohort)
            .map(|resource| resource.uri.clone())
            .collect()
    };
    let (shadow, five, quarter, full) = (
        with("{stage: Shadow}"),
        with("{stage: Canary, percent: 5}"),
        with("{stage: Canary, percent: 25}"),
        with("{stage: Full}"),
    );
    assert!(taken(&shadow).is_empty() && taken(&full).len() == 200);
    assert!(
        !taken(&five).is_empty() && taken(&five).iter().all(|uri| taken(&quarter).contains(uri))
    );
    assert!(taken(&quarter).len() > taken(&five).len() && taken(&quarter).len() < 200);
    for resource in shadow.iter().chain(&five).chain(&quarter) {
        let mode = if resource.cohort {
            RefreshMode::Subscribe
        } else {
            RefreshMode::Poll
        };
        assert_eq!(resource.mode, mode, "{}", resource.uri);
    }
}

#[test]
fn what_is_not_done_says_so() {
    let manifests = docs()
        + &object("MCPServer", "svc", "{service: {name: docs, port: 80}}")
        + &object("ResourceCatalog", "docs", "{serverRef: {name: docs}}")
        + &object(
            "WatchedResource",
            "a",
            "{serverRef: {name: svc}, uris: ['docs:///x'], select: {prefix: 'docs://'}}",
        );
    let desired = desired(&objects(&manifests));
    let fields: Vec<String> = reasons(&desired)
        .into_iter()
        .map(|(field, reason)| format!("{field} {reason}"))
        .collect();
    assert_eq!(
        fields,
        [
            "svc spec.service NotActedOn",
            "a spec.select NotActedOn",
            "docs spec NotActedOn"
        ]
    );
    assert!(desired.problems.iter().all(|problem| {
        problem
            .message
            .starts_with("accepted, but not acted on by this version")
    }));
    assert_eq!((desired.servers.len(), desired.sessions.len()), (1, 0));
}

#[test]
fn uris_that_are_the_same_by_rfc_3986_are_two_and_a_warning() {
    let manifests = docs()
        + &object(
            "WatchedResource",
            "a",
            "{serverRef: {name: docs}, uris: ['docs:///%7Ea', 'docs:///~a', 'docs:///a b']}",
        );
    let desired = desired(&objects(&manifests));
    assert_eq!(desired.sessions[0].resources.len(), 3);
    assert_eq!(
        reasons(&desired),
        [("a spec.uris[1]".to_owned(), "UriAmbiguous")]
    );
    assert_eq!(
        desired.sessions[0]
            .resources
            .iter()
            .filter(|resource| resource.uri_normal.is_none())
            .count(),
        1
    );
}

#[test]
fn indexes_resolve_watches_and_keys() {
    let index = |watches: &str| {
        object(
            "DerivedIndex",
            "rag",
            &format!(
                "{{webhook: {{url: 'https://rag.example', signingSecretRef: {{name: hook, key: k}}}}{watches}}}"
            ),
        )
    };
    let watches = object(
        "WatchedResource",
        "a",
        "{serverRef: {name: docs}, uris: ['docs:///x']}",
    )
    .replace("uid: uid-a", "labels: {team: x}")
        + &object(
            "WatchedResource",
            "b",
            "{serverRef: {name: docs}, uris: ['docs:///x']}",
        );
    let base = docs() + &watches + &secret("hook", "k", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let all = desired(&objects(&(base.clone() + &index(""))));
    assert_eq!(
        (&all.indexes[0].watches, all.indexes[0].events.len()),
        (&WatchSelection::All, 4)
    );
    let channel = all.indexes[0].channel.as_ref().unwrap();
    assert_eq!(channel.signing_secrets[0].expose().len(), 24);
    // Without its Secret it is owed what happens meanwhile: it stays an index.
    let without = desired(&objects(&(docs() + &watches + &index(""))));
    assert_eq!(
        reasons(&without),
        [(
            "rag spec.webhook.signingSecretRef".to_owned(),
            "SecretNotFound"
        )]
    );
    let untold = without.indexes[0].channel.as_ref().unwrap_err();
    assert!(
        untold.contains("there is no Secret default/hook"),
        "{untold}"
    );
    let labelled = desired(&objects(
        &(base.clone() + &index(", watches: {matchLabels: {team: x}}")),
    ));
    assert!(
        labelled.indexes[0].watches.contains("a") && !labelled.indexes[0].watches.contains("b")
    );
    let named = desired(&objects(&(base + &index(", watches: {names: [a, c]}"))));
    assert_eq!(
        reasons(&named),
        [("rag spec.watches.names[1]".to_owned(), "WatchNotFound")]
    );
}

#[test]
fn a_server_changes_its_digest_with_what_its_sessions_depend_on() {
    let digest = |spec: &str| {
        desired(&objects(&object("MCPServer", "s", spec))).servers[0]
            .digest
            .clone()
    };
    let base = digest("{url: 'http://a.example/mcp'}");
    assert_eq!(
        base,
        digest("{url: 'http://a.example/mcp', limits: {maxInFlight: 16}}"),
        "a default written out is no change"
    );
    for changed in [
        "{url: 'http://b.example/mcp'}",
        "{url: 'http://a.example/mcp', protocol: Legacy}",
        "{url: 'http://a.example/mcp', limits: {maxInFlight: 8}}",
        "{url: 'http://a.example/mcp', suspend: true}",
    ] {
        assert_ne!(base, digest(changed), "{changed}");
    }
    assert_ne!(
        digest("{stdio: {command: a, env: {T: x}}}"),
        digest("{stdio: {command: a, env: {T: y}}}")
    );
}

#[test]
fn suspended_is_left_out() {
    let watch = object(
        "WatchedResource",
        "a",
        "{serverRef: {name: docs}, uris: ['docs:///x'], suspend: true}",
    );
    assert!(desired(&objects(&(docs() + &watch))).sessions.is_empty());
    let server = object(
        "MCPServer",
        "docs",
        "{url: 'http://docs.example/mcp', suspend: true}",
    );
    let desired = desired(&objects(
        &(server + &watch.replace("suspend: true", "suspend: false")),
    ));
    assert!(desired.servers[0].suspend && desired.sessions.is_empty());
}

#[test]
fn the_load_is_interval_arithmetic() {
    let manifests = object(
        "MCPServer",
        "docs",
        "{url: 'http://docs.example/mcp', limits: {requestsPerSecond: 1}}",
    ) + &object(
        "WatchedResource",
        "a",
        "{serverRef: {name: docs}, uris: ['docs:///x', 'docs:///y'], refresh: {maxStaleness: 60s, pollInterval: 1s, jitterPercent: 50}}",
    ) + &object(
        "WatchedResource",
        "b",
        "{serverRef: {name: docs}, uris: ['docs:///z'], refresh: {mode: Poll, maxStaleness: 60s, pollInterval: 36s, jitterPercent: 0}}",
    );
    let loads = server_loads(&desired(&objects(&manifests)));
    let [load] = loads.as_slice() else {
        panic!("{loads:?}")
    };
    let lines: Vec<_> = load
        .lines
        .iter()
        .map(|line| (line.cause, line.resources, line.reads.low, line.reads.high))
        .collect();
    assert_eq!(
        lines,
        [
            (LoadCause::Poll, 1, 100.0, 100.0),
            (LoadCause::Audit, 2, 120.0, 240.0)
        ]
    );
    assert_eq!((load.total.low, load.total.high), (220.0, 340.0));
    // Without subscriptions: two at a second, half of it by jitter, make 4 a second; one each 36 s comes on top.
    assert!(
        (load.peak_per_second - (4.0 + 1.0 / 36.0)).abs() < 1e-9,
        "{}",
        load.peak_per_second
    );
    assert!(load.is_above_limit() && !load.reads_too_slowly());
    assert_eq!(load.full_read, Duration::from_secs(3));
}

/// Objects as a cluster has them beside the manifests.
fn in_cluster(manifests: &str, cluster: ClusterObjects) -> ObjectSet {
    let mut objects = objects(manifests);
    objects.cluster = Some(cluster);
    objects
}

fn url(desired: &Desired) -> String {
    match &desired.servers[0].endpoint {
        Endpoint::Http { url, .. } => url.clone(),
        stdio @ Endpoint::Stdio { .. } => panic!("{stdio:?}"),
    }
}

#[test]
fn a_service_and_its_port_are_an_address() {
    let manifest = object(
        "MCPServer",
        "docs",
        "{service: {name: config, port: 8080, path: /v1/mcp}}",
    );
    let mut cluster = ClusterObjects {
        domain: "cluster.local".to_owned(),
        ..ClusterObjects::default()
    };
    let without = desired(&in_cluster(&manifest, cluster.clone()));
    assert_eq!(
        reasons(&without),
        [("docs spec.service".to_owned(), "ServiceNotFound")]
    );
    cluster
        .services
        .insert(ObjectName::new("default", "config"), [9090].into());
    let other_port = desired(&in_cluster(&manifest, cluster.clone()));
    assert!(other_port.problems[0].fix.contains("9090"));
    cluster
        .services
        .insert(ObjectName::new("default", "config"), [8080].into());
    assert_eq!(
        url(&desired(&in_cluster(&manifest, cluster))),
        "http://config.default.svc.cluster.local:8080/v1/mcp"
    );
    // From files there is nowhere to look.
    assert_eq!(reasons(&desired(&objects(&manifest)))[0].1, "NotActedOn");
}

/// kmcp publishes no address: its Service bears the object's name.
#[test]
fn a_kmcp_server_is_reached_by_its_own_service() {
    let manifest = object(
        "MCPServer",
        "docs",
        "{serverRef: {apiVersion: kagent.dev/v1alpha1, kind: MCPServer, name: theirs}}",
    );
    let publisher = Publisher {
        group: "kagent.dev".to_owned(),
        kind: "MCPServer".to_owned(),
        name: ObjectName::new("default", "theirs"),
    };
    let of = |said: serde_json::Value| {
        let mut cluster = ClusterObjects {
            domain: "cluster.local".to_owned(),
            ..ClusterObjects::default()
        };
        cluster.publishers.insert(publisher.clone(), said);
        url(&desired(&in_cluster(&manifest, cluster)))
    };
    assert_eq!(
        of(
            serde_json::json!({"spec": {"deployment": {"port": 8000}, "httpTransport": {"path": "sse"}}})
        ),
        "http://theirs.default.svc.cluster.local:8000/sse"
    );
    assert_eq!(
        of(serde_json::json!({"spec": {}})),
        "http://theirs.default.svc.cluster.local:3000/mcp"
    );
}

#[test]
fn a_version_that_is_not_known_is_not_guessed_at() {
    let manifest = object(
        "MCPServer",
        "docs",
        "{serverRef: {apiVersion: toolhive.stacklok.dev/v9, kind: MCPServer, name: theirs}}",
    );
    let desired = desired(&in_cluster(&manifest, ClusterObjects::default()));
    assert_eq!(reasons(&desired)[0].1, "AddressUnknown");
    assert!(
        desired.problems[0]
            .fix
            .contains("toolhive.stacklok.dev/v1beta1")
    );
}
