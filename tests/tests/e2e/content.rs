//! Content and secrets: served as text of its own type, withheld from a revoked subject, and no token anywhere.

use fencepost_tests::faulty::FaultyServer;

use crate::world::{LAZY, SOON, World, server, watch};

const URI: &str = "config://limits";
const TOKEN: &str = "tok-7d1fe4c2a9";

fn subject(revoked: bool) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: token, namespace: agents}}\nstringData: {{token: {TOKEN}}}\n---\n\
         apiVersion: fencepost.dev/v1alpha1\nkind: MCPSubject\nmetadata: {{name: support, namespace: agents}}\n\
         spec: {{credentialSecretRef: {{name: token, key: token}}, revoked: {revoked}}}\n---\n"
    )
}

#[tokio::test]
async fn a_revoked_subjects_content_is_withheld_at_once_and_its_token_is_nowhere() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "secret text");
    let watched = watch("limits", &[URI], LAZY).replace(
        "serverRef: {name: server}",
        "serverRef: {name: server}, subjectRef: {name: support}",
    );
    let manifests = |revoked| server(&faulty.url()) + &subject(revoked) + &watched;
    let world = World::start(&manifests(false)).await;
    let resource = world.content(URI, "secret text").await;
    let sent = faulty.requests();
    assert!(
        sent.iter()
            .any(|r| r.authorization.as_deref() == Some(&format!("Bearer {TOKEN}")))
    );
    let path = format!(
        "/api/v1/resources/{}/content",
        resource["id"].as_str().unwrap()
    );

    world.write(&manifests(true));
    let revoked = world
        .resource("a revoked resource", URI, |r| r["state"] == "REVOKED")
        .await;
    let answer = world.answer(&path).await;
    assert_eq!(answer.status(), 403);
    assert!(!answer.text().await.unwrap().contains("secret text"));
    assert_eq!(
        world.versions(&revoked).await.len(),
        1,
        "digests stay, so that it can be traced"
    );
    // Nothing is read any more.
    let reads = faulty.reads_of(URI);
    faulty.change(URI, "newer");
    fencepost_tests::wait::stays(
        "no read for a revoked subject",
        std::time::Duration::from_secs(1),
        async || {
            if faulty.reads_of(URI) == reads {
                Ok(())
            } else {
                Err(())
            }
        },
    )
    .await;
    let id = revoked["id"].as_str().unwrap();
    let mut shown = world.fencepost.output().join("\n");
    for path in [
        "/api/v1/servers",
        "/api/v1/subjects",
        "/api/v1/watches",
        "/metrics",
        "/",
        "/servers",
    ] {
        shown += &world.answer(path).await.text().await.unwrap();
    }
    shown += &world
        .answer(&format!("/api/v1/resources/{id}/receipts"))
        .await
        .text()
        .await
        .unwrap();
    assert!(!shown.contains(TOKEN), "the token is shown somewhere");
    let _ = SOON;
    world.ledger_holds().await;
}
