//! Failures reported in the field, by kind: each named after what went wrong for somebody.

use std::time::Duration;

use fencepost_tests::{
    faulty::{Eras, Faults, FaultyServer, ReadFault, SessionLoss, UnsubscribeFault},
    wait,
};

use crate::world::{LAZY, SOON, World, server, watch};

const URI: &str = "config://limits";

fn with_token(url: &str, token: &str) -> String {
    let watched = watch("limits", &[URI], LAZY).replace(
        "serverRef: {name: server}",
        "serverRef: {name: server}, subjectRef: {name: support}",
    );
    server(url)
        + &format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: token, namespace: agents}}\nstringData: {{token: {token}}}\n---\n\
             apiVersion: fencepost.dev/v1alpha1\nkind: MCPSubject\nmetadata: {{name: support, namespace: agents}}\n\
             spec: {{credentialSecretRef: {{name: token, key: token}}}}\n---\n"
        )
        + &watched
}

/// A22: the token expires; the Secret gets another; nothing is lost and nobody restarts anything.
#[tokio::test]
async fn a_rotated_token_is_used_without_a_restart() {
    let faulty = FaultyServer::start_with(Faults {
        bearer: Some("first".into()),
        ..Faults::default()
    })
    .await;
    faulty.set(URI, "one");
    let world = World::start(&with_token(&faulty.url(), "first")).await;
    let before = world.content(URI, "one").await;
    faulty.faults(|faults| faults.bearer = Some("second".into()));
    faulty.change(URI, "two");
    wait::until("a server that refuses the old token", SOON, async || {
        let server = world.get("/api/v1/servers").await["items"][0].clone();
        if server["ready"] == false {
            Ok(())
        } else {
            Err(server)
        }
    })
    .await;
    assert_eq!(
        world.find(URI).await.unwrap()["digest"],
        before["digest"],
        "the last accepted version stays"
    );
    world.write(&with_token(&faulty.url(), "second"));
    world.content(URI, "two").await;
    world.ledger_holds().await;
}

/// A32: a server that says "later" is left alone for so long, and nothing is lost or deleted.
#[tokio::test]
async fn a_rate_limit_is_waited_out() {
    for fault in [
        ReadFault::TooManyRequests {
            retry_after: Some("1".into()),
        },
        ReadFault::RateLimitedInBody,
    ] {
        let faulty = FaultyServer::start().await;
        faulty.set(URI, "one");
        let world = World::start(&(server(&faulty.url()) + &watch("limits", &[URI], LAZY))).await;
        let before = world.content(URI, "one").await;
        faulty.fail_read(URI, Some(fault));
        faulty.change(URI, "two");
        let limited = world
            .resource("a limited read", URI, |r| r["reason"] == "RATE_LIMITED")
            .await;
        assert_eq!(limited["digest"], before["digest"]);
        faulty.fail_read(URI, None);
        world.content(URI, "two").await;
        world.ledger_holds().await;
    }
}

/// A31: a modern server acknowledges two of five; the three others are polled.
#[tokio::test]
async fn a_partly_acknowledged_listen_leaves_the_rest_to_polling() {
    let faulty = FaultyServer::start_with(Faults {
        eras: Eras::Modern,
        listen_accepts: Some(2),
        ..Faults::default()
    })
    .await;
    let uris = [
        "config://r/0",
        "config://r/1",
        "config://r/2",
        "config://r/3",
        "config://r/4",
    ];
    for uri in uris {
        faulty.set(uri, "one");
    }
    let world = World::start(&(server(&faulty.url()) + &watch("all", &uris, LAZY))).await;
    let mut subscribed = 0;
    for uri in uris {
        subscribed += i32::from(world.content(uri, "one").await["mode"] == "Subscribe");
    }
    assert_eq!(subscribed, 2);
}

/// A12: an unsubscribe that is never answered stays silent; watching again takes another session.
#[tokio::test]
async fn an_unanswered_unsubscribe_never_reopens_in_its_session() {
    let faulty = FaultyServer::start_with(Faults {
        eras: Eras::Legacy,
        unsubscribe: UnsubscribeFault::NeverAnswered,
        ..Faults::default()
    })
    .await;
    faulty.set(URI, "one");
    faulty.set("config://other", "other");
    let other = watch("other", &["config://other"], LAZY);
    let both = server(&faulty.url()) + &watch("limits", &[URI], LAZY) + &other;
    let world = World::start(&both).await;
    let before = world.content(URI, "one").await;
    world.write(&(server(&faulty.url()) + &other));
    world
        .resource("an unknown close", URI, |r| {
            r["state"] == "UNSUBSCRIBE_UNKNOWN"
        })
        .await;
    faulty.change(URI, "two");
    wait::stays("silence", Duration::from_secs(1), async || {
        let now = world.find(URI).await.unwrap();
        if now["digest"] == before["digest"] {
            Ok(())
        } else {
            Err(now)
        }
    })
    .await;
    world.write(&both);
    let after = world.content(URI, "two").await;
    assert!(after["generation"].as_i64() > before["generation"].as_i64());
    world.ledger_holds().await;
}

/// The ways in which servers say that they know the session no more: each is a new session, and a gap.
#[tokio::test]
async fn a_lost_session_is_understood_however_it_is_said() {
    for session_loss in [
        SessionLoss::NotFound,
        SessionLoss::BadRequestWithoutId,
        SessionLoss::OkWithError,
    ] {
        let faulty = FaultyServer::start_with(Faults {
            eras: Eras::Legacy,
            session_loss,
            ..Faults::default()
        })
        .await;
        faulty.set(URI, "one");
        let eager = "{mode: Auto, maxStaleness: 3s, pollInterval: 1s}";
        let world = World::start(&(server(&faulty.url()) + &watch("limits", &[URI], eager))).await;
        let before = world.content(URI, "one").await;
        faulty.set(URI, "two");
        faulty.forget_sessions();
        let after = world.content(URI, "two").await;
        assert!(
            after["generation"].as_i64() > before["generation"].as_i64(),
            "{session_loss:?}: {after}"
        );
        world.ledger_holds().await;
    }
}

/// A25: one server accepts connections and never answers; another one's reads do not wait for it.
#[tokio::test]
async fn a_silent_server_delays_no_other() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let mute = server(&format!("http://127.0.0.1:{port}/mcp"))
        .replace("name: server,", "name: mute,")
        + &watch("mute", &["config://mute"], LAZY)
            .replace("serverRef: {name: server}", "serverRef: {name: mute}");
    let world =
        World::start(&(mute + &server(&faulty.url()) + &watch("limits", &[URI], LAZY))).await;
    world.content(URI, "one").await;
    for round in 0..3 {
        let text = round.to_string();
        faulty.change(URI, &text);
        world.content(URI, &text).await;
    }
    wait::until("the mute server's reason", SOON, async || {
        let servers = world.get("/api/v1/servers").await;
        let mute = servers["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|s| s["name"] == "mute")
            .unwrap()
            .clone();
        if mute["conditions"].as_array().is_some_and(|c| !c.is_empty()) {
            Ok(())
        } else {
            Err(mute)
        }
    })
    .await;
}

/// A34: churn leaves no sessions behind on the server, and the end says goodbye.
#[tokio::test]
async fn churn_and_the_end_leave_no_session_on_the_server() {
    let faulty = FaultyServer::start_with(Faults {
        eras: Eras::Legacy,
        ..Faults::default()
    })
    .await;
    faulty.set(URI, "one");
    let with = server(&faulty.url()) + &watch("limits", &[URI], LAZY);
    let mut world = World::start(&with).await;
    world.content(URI, "one").await;
    for _ in 0..5 {
        world.write(&server(&faulty.url()));
        world
            .resource("a closed generation", URI, |r| r["state"] == "CLOSED")
            .await;
        world.write(&with);
        world
            .resource("an active one", URI, |r| r["state"] == "ACTIVE")
            .await;
    }
    let live = async || faulty.counters().sessions_live;
    wait::until_value("one live session", SOON, live, |live| *live == 1).await;
    assert!(world.fencepost.terminate().await.success());
    wait::until_value("none", SOON, live, |live| *live == 0).await;
}

/// A22: the server forbids one URI; that content is withheld, no tombstone is written, others go on.
#[tokio::test]
async fn a_forbidden_resource_is_withheld_and_its_neighbour_is_not() {
    let faulty = FaultyServer::start().await;
    let (forbidden, open) = ("config://forbidden", "config://open");
    faulty.set(forbidden, "no longer yours");
    faulty.set(open, "one");
    let world =
        World::start(&(server(&faulty.url()) + &watch("both", &[forbidden, open], LAZY))).await;
    let held = world.content(forbidden, "no longer yours").await;
    world.content(open, "one").await;
    faulty.fail_read(forbidden, Some(ReadFault::Forbidden));
    faulty.change(forbidden, "two");
    world
        .resource("a forbidden one", forbidden, |r| {
            r["reason"] == "FORBIDDEN" && r["stale"] == true
        })
        .await;
    let id = held["id"].as_str().unwrap();
    for path in [
        format!("/api/v1/resources/{id}/content"),
        format!("/api/v1/resources/{id}/versions/1/text"),
    ] {
        let answer = world.answer(&path).await;
        assert_eq!(answer.status(), 403, "{path}");
        assert!(
            !answer.text().await.unwrap().contains("no longer yours"),
            "{path}"
        );
    }
    faulty.change(open, "two");
    world.content(open, "two").await;
    // Allowed again, it is read and served again.
    faulty.fail_read(forbidden, None);
    world.content(forbidden, "two").await;
    world.ledger_holds().await;
}
