//! The outbox through the binary: signed, in order, with what changed; a restart repeats nothing wrongly and loses nothing.

use fencepost_tests::{
    faulty::FaultyServer,
    receiver::{Answer, Receiver},
    wait,
};

use crate::world::{LAZY, SOON, World, index, server, watch};

const URI: &str = "config://limits";

#[tokio::test]
async fn an_index_is_told_what_changed_also_across_a_restart() {
    let faulty = FaultyServer::start().await;
    faulty.set_typed(URI, "application/json", r#"{"max_batch":500}"#);
    let receiver = Receiver::start().await;
    let manifests = server(&faulty.url())
        + &watch("limits", &[URI], LAZY)
        + &index("rag", &receiver.url(), receiver.secret());
    let mut world = World::start(&manifests).await;
    let first = receiver
        .event("the first version", SOON, |d| d.subject() == URI)
        .await;
    assert!(first.signed, "{:?}", first.fault);

    receiver.answer(Answer::Status(500));
    faulty.set_typed(URI, "application/json", r#"{"max_batch":50}"#);
    faulty.notify(URI);
    let tried = async || {
        receiver
            .deliveries()
            .into_iter()
            .find(|d| d.position() > first.position())
    };
    let refused = wait::until_value("a refused one", SOON, tried, Option::is_some)
        .await
        .unwrap();
    assert_eq!(
        refused.event["data"]["supersede"]["changes"][0]["path"],
        "/max_batch"
    );
    assert_eq!(refused.event["data"]["supersede"]["changes"][0]["new"], 50);
    assert!(world.fencepost.terminate().await.success());
    receiver.answer(Answer::Accept);
    receiver.clear();
    world.start_again().await;
    let again = receiver
        .event("the same again", SOON, |d| {
            d.position() == refused.position()
        })
        .await;
    assert_eq!((again.id, again.body), (refused.id, refused.body));
    wait::until("an acknowledged position", SOON, async || {
        let index = world.get("/api/v1/indexes").await["items"][0].clone();
        if index["pending"] == 0
            && index["acknowledgedPosition"].as_i64()
                >= Some(again.event["data"]["position"].as_i64().unwrap())
        {
            Ok(())
        } else {
            Err(index)
        }
    })
    .await;
}
