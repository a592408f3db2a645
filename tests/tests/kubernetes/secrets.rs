//! Credentials: rotated, missing, back; never shown.

use fencepost_tests::{faulty::FaultyServer, wait};

use crate::world::{LAZY, SOON, World, server, watch};

const URI: &str = "config://limits";
const FIRST: &str = "first-token-of-the-test";
const SECOND: &str = "second-token-of-the-test";

fn secret(key: &str, token: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: token}}\nstringData: {{{key}: {token}}}\n---\n"
    )
}

#[tokio::test]
async fn a_rotated_secret_opens_a_new_session_and_a_missing_key_is_a_condition() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    faulty.faults(|faults| faults.bearer = Some(FIRST.to_owned()));
    let world = World::start("secret").await;
    let mut operator = world.ready("a").await;
    let subject = "apiVersion: fencepost.dev/v1alpha1\nkind: MCPSubject\nmetadata: {name: reader}\n\
                   spec: {credentialSecretRef: {name: token, key: token}}\n---\n";
    let watched =
        watch("limits", &[URI], LAZY).replace("uris:", "subjectRef: {name: reader}, uris:");
    world
        .apply(&(secret("token", FIRST) + subject + &server(&faulty.url()) + &watched))
        .await;
    let resource = operator.content(URI, "one").await;
    world.wait_for("condition=Ready", "mcpsub/reader").await;

    // Rotated: the server takes the second token only, from now on.
    faulty.faults(|faults| faults.bearer = Some(SECOND.to_owned()));
    faulty.set(URI, "two");
    world.apply(&secret("token", SECOND)).await;
    operator.content(URI, "two").await;
    let after = operator
        .resource("a new generation", URI, |r| r["state"] == "ACTIVE")
        .await;
    assert!(after["generation"].as_i64() > resource["generation"].as_i64());

    // The key is gone: the permission counts as withdrawn, and a condition says why.
    world.kubectl(&["delete", "secret/token"]).await;
    world.apply(&secret("other", SECOND)).await;
    let ready = world
        .ready_reason("mcpsub/reader", "SecretKeyNotFound")
        .await;
    let message = ready["message"].as_str().unwrap();
    assert!(message.contains("there are: other"), "{message}");
    world.ready_reason("watch/limits", "SubjectRevoked").await;
    let path = format!(
        "/api/v1/resources/{}/content",
        after["id"].as_str().unwrap()
    );
    wait::until("the content is withheld", SOON, async || {
        let status = operator.answer(&path).await.status();
        if status == 403 { Ok(()) } else { Err(status) }
    })
    .await;

    // And back.
    world.apply(&secret("token", SECOND)).await;
    world
        .ready_reason("mcpsub/reader", "CredentialAvailable")
        .await;
    world.ready_reason("watch/limits", "Converged").await;

    let everything = operator.process.output().join("\n")
        + &operator.metrics().await
        + &world
            .kubectl(&["get", "fencepost,events", "-o", "yaml"])
            .await;
    for token in [FIRST, SECOND] {
        assert!(!everything.contains(token), "a token was shown");
    }
    operator.process.terminate().await;
}
