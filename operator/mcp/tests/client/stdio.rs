//! Child processes: small shell scripts that speak the protocol, badly where that is the point.

use std::path::Path;
use std::time::{Duration, Instant};

use fencepost_mcp::{
    ConnectConfig, ConnectError, EndReason, Era, Events, RequestError, Session, SessionEvent,
    Transport, UnwatchOutcome, WatchOutcome, connect,
};

use crate::fake::{config, next, next_telling, until};

/// Reads requests; `$id` is theirs. `cases` come first, then a legacy server's usual answers.
fn script(before: &str, cases: &str) -> String {
    format!(
        r#"{before}
say() {{ printf '%s\n' "$1"; }}
answer() {{ say '{{"jsonrpc":"2.0","id":'$id',"result":'"$1"'}}'; }}
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{{"id":\([0-9]*\).*/\1/p')
  case "$line" in
{cases}
  *server/discover*) ;;
  *'"initialize"'*) answer '{{"protocolVersion":"2025-06-18","capabilities":{{"resources":{{"subscribe":true}}}},"serverInfo":{{"name":"sh","version":"1"}}}}' ;;
  *resources/subscribe*) answer '{{}}'; say '{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"test://a"}}}}' ;;
  *resources/read*) answer '{{"contents":[{{"uri":"test://a","text":"hello"}}]}}' ;;
  esac
done
"#
    )
}

fn stdio(script: String) -> ConnectConfig {
    let transport = Transport::Stdio {
        command: "/bin/sh".into(),
        args: vec!["-c".into(), script],
        env: vec![("EXTRA".into(), "yes".into())],
    };
    ConnectConfig {
        transport,
        ..config("http://unused.invalid/".parse().unwrap())
    }
}

async fn start(before: &str, cases: &str) -> (Session, Events) {
    connect(stdio(script(before, cases))).await.unwrap()
}

fn alive(pid_file: &Path) -> bool {
    let pid = std::fs::read_to_string(pid_file).unwrap();
    // A zombie that nobody reaps is dead as well.
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|stat| !stat.contains(") Z"))
}

#[tokio::test]
async fn silence_on_discover_means_legacy_and_updates_come_in_order() {
    let (session, mut events) = start("", "").await;
    assert_eq!(session.receipt().era, Era::Legacy);
    assert!(session.has_stream());
    session.read("test://a").await.unwrap();
    assert_eq!(
        session.watch(&["test://a".to_owned()]).await,
        [WatchOutcome::Watching]
    );
    assert_eq!(
        next(&mut events).await,
        Some(SessionEvent::Updated {
            uri: "test://a".into()
        })
    );
    session.close(Duration::from_secs(2)).await;
    assert_eq!(
        next(&mut events).await,
        Some(SessionEvent::Ended {
            reason: EndReason::Closed
        })
    );
    assert_eq!(next(&mut events).await, None);
}

#[tokio::test]
async fn starting_a_process_needs_leave_and_a_command() {
    let error = connect(ConnectConfig {
        allow_stdio: false,
        ..stdio(script("", ""))
    })
    .await
    .unwrap_err();
    assert!(matches!(error, ConnectError::StdioNotAllowed));
    let transport = Transport::Stdio {
        command: "/no/such/command".into(),
        args: vec![],
        env: vec![],
    };
    let error = connect(ConnectConfig {
        transport,
        ..stdio(String::new())
    })
    .await
    .unwrap_err();
    assert!(matches!(error, ConnectError::Spawn { .. }));
}

#[tokio::test]
async fn a_strict_server_that_dies_of_the_probe_is_started_again_without() {
    let (session, _events) = start("", "  *server/discover*) exit 1 ;;").await;
    session.read("test://a").await.unwrap();
}

#[tokio::test]
async fn a_line_that_cannot_be_read_fails_its_own_request_at_once() {
    let cases = r#"
  *test://long*) printf '{"jsonrpc":"2.0","result":{"contents":[{"uri":"test://long","text":"'; head -c 300000 /dev/zero | tr '\0' x; say '"}]},"id":'$id'}' ;;
  *test://bytes*) printf '{"jsonrpc":"2.0","id":%s,"result":{"x":"\377\376"}}\n' $id ;;
  *test://slow*) ;;
"#;
    let (session, mut events) = start("echo starting up; echo", cases).await;
    let started = Instant::now();
    let slow = session.clone();
    let slow = tokio::spawn(async move { slow.read("test://slow").await });
    assert_eq!(
        session.read("test://long").await,
        Err(RequestError::TooLarge { limit: 128 * 1024 })
    );
    assert!(matches!(
        session.read("test://bytes").await,
        Err(RequestError::Protocol { .. })
    ));
    assert!(started.elapsed() < Duration::from_millis(1800));
    session.read("test://a").await.unwrap();
    assert_eq!(slow.await.unwrap(), Err(RequestError::Timeout));
    assert_eq!(
        next(&mut events).await,
        Some(SessionEvent::Ignored { kind: "junk_frame" })
    );
}

#[tokio::test]
async fn the_childs_end_is_told_and_fails_what_waits() {
    let (session, mut events) = start("", "  *test://die*) exit 3 ;;").await;
    let started = Instant::now();
    assert_eq!(
        session.read("test://die").await,
        Err(RequestError::Disconnected)
    );
    assert!(started.elapsed() < Duration::from_millis(1800));
    assert_eq!(
        next_telling(&mut events).await,
        Some(SessionEvent::Ended {
            reason: EndReason::ChildExited
        })
    );
    assert_eq!(next(&mut events).await, None);
    assert_eq!(
        session.read("test://a").await,
        Err(RequestError::SessionLost)
    );
}

#[tokio::test]
async fn a_stubborn_child_and_its_own_children_are_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let stubborn = format!(
        "trap '' TERM\nsh -c \"trap '' TERM; while :; do sleep 1; done\" & echo $! > {0}/child\necho $$ > {0}/leader",
        folder.path().display()
    );
    let endless = |script: String| format!("{script}\nwhile :; do sleep 1; done\n");
    for close in [true, false] {
        let (session, _events) = connect(stdio(endless(script(&stubborn, ""))))
            .await
            .unwrap();
        assert!(alive(&path("leader")) && alive(&path("child")));
        if close {
            session.close(Duration::from_millis(300)).await;
        } else {
            drop(session);
        }
        until(|| !alive(&path("leader")) && !alive(&path("child"))).await;
    }
}

#[tokio::test]
async fn a_child_that_goes_takes_its_own_children_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let before = format!("sleep 60 & echo $! > {}/child", folder.path().display());
    let (session, mut events) = start(&before, "  *test://die*) exit 0 ;;").await;
    assert_eq!(
        session.read("test://die").await,
        Err(RequestError::Disconnected)
    );
    assert_eq!(
        next_telling(&mut events).await,
        Some(SessionEvent::Ended {
            reason: EndReason::ChildExited
        })
    );
    until(|| !alive(&folder.path().join("child"))).await;
}

#[tokio::test]
async fn an_output_held_open_by_a_runaway_does_not_hide_the_childs_end() {
    let folder = tempfile::tempdir().unwrap();
    // A new session leaves the group, and so survives it.
    let before = format!(
        "setsid sleep 5 & echo $! > {}/runaway",
        folder.path().display()
    );
    let (session, mut events) = start(&before, "  *test://die*) exit 0 ;;").await;
    assert_eq!(
        session.read("test://die").await,
        Err(RequestError::Disconnected)
    );
    let ended = SessionEvent::Ended {
        reason: EndReason::ChildExited,
    };
    assert_eq!(next_telling(&mut events).await, Some(ended));
}

#[tokio::test]
async fn a_child_that_stops_reading_is_over() {
    let (session, mut events) = start("", "  *test://deaf*) exec 0<&-; sleep 60 ;;").await;
    let deaf = session.read("test://deaf").await;
    assert_eq!(deaf, Err(RequestError::Timeout));
    // The cancellation of the first read was written into nothing.
    let ended = SessionEvent::Ended {
        reason: EndReason::ChildExited,
    };
    assert_eq!(next_telling(&mut events).await, Some(ended));
}

#[tokio::test]
async fn a_child_sees_its_own_variables_and_none_of_our_secrets() {
    // Cargo sets this one for the test; it stands for any other of ours.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let case = r#"  *resources/read*) answer '{"contents":[{"uri":"test://a","text":"'"${EXTRA}${CARGO_MANIFEST_DIR}"'"}]}' ;;"#;
    let (session, _events) = start("", case).await;
    assert_eq!(
        session.read("test://a").await.unwrap().contents[0]
            .body
            .as_bytes(),
        b"yes"
    );
}

#[tokio::test]
async fn a_servers_requests_are_answered_on_stdio_too() {
    let cases = r#"
  *resources/read*) mine=$id; say '{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage"}' ;;
  *s1*-32601*|*-32601*s1*) id=$mine; answer '{"contents":[{"uri":"test://a","text":"refused"}]}' ;;
"#;
    let (session, _events) = start("", cases).await;
    assert_eq!(
        session.read("test://a").await.unwrap().contents[0]
            .body
            .as_bytes(),
        b"refused"
    );
}

/// A modern server: notes what it is told in `log`, acknowledges what is asked.
fn modern(log: &Path) -> String {
    script(
        "",
        &format!(
            r#"
  *server/discover*) answer '{{"supportedVersions":["2026-07-28"],"capabilities":{{"resources":{{"subscribe":true}}}}}}' ;;
  *subscriptions/listen*) uris=$(printf '%s' "$line" | sed 's/.*"resourceSubscriptions":\(\[[^]]*\]\).*/\1/')
    say '{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{"resourceSubscriptions":'"$uris"'}},"_meta":{{"io.modelcontextprotocol/subscriptionId":'$id'}}}}}}' ;;
  *notifications/cancelled*) printf '%s\n' "$line" >> {log} ;;
  *test://end*) say '{{"jsonrpc":"2.0","id":'$listen',"result":{{}}}}' ;;
"#,
            log = log.display()
        ),
    )
    .replace("uris=$(", "listen=$id; uris=$(")
}

#[tokio::test]
async fn modern_watching_over_stdio_replaces_and_cancels() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("cancelled");
    let (session, mut events) = connect(stdio(modern(&log))).await.unwrap();
    assert_eq!(session.receipt().era, Era::Modern);
    assert!(!session.has_stream());
    let (one, two) = (vec!["test://1".to_owned()], vec!["test://2".to_owned()]);
    assert_eq!(session.watch(&one).await, [WatchOutcome::Watching]);
    assert_eq!(session.watch(&two).await, [WatchOutcome::Watching]);
    let cancelled = || {
        std::fs::read_to_string(&log)
            .unwrap_or_default()
            .lines()
            .count()
    };
    until(|| cancelled() == 1).await;
    assert_eq!(session.unwatch(&two).await, [UnwatchOutcome::Acknowledged]);
    until(|| cancelled() == 2).await;
    // The listen request in force ends, and with it the session.
    let _ = session.read("test://end").await;
    assert_eq!(
        next_telling(&mut events).await,
        Some(SessionEvent::Ended {
            reason: EndReason::ListenCompleted
        })
    );
}

#[tokio::test]
async fn closing_a_modern_session_cancels_its_listen_request() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("cancelled");
    let (session, _events) = connect(stdio(modern(&log))).await.unwrap();
    session.watch(&["test://1".to_owned()]).await;
    session.close(Duration::from_secs(2)).await;
    assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), 1);
}
