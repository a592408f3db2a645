//! The receiver tells a good signature from a bad one and fails when told to.

use std::time::Duration;

use chrono::Utc;
use fencepost_tests::receiver::{Answer, Receiver};
use standardwebhooks::Webhook;

async fn send(receiver: &Receiver, secret: &str, body: &str) -> u16 {
    let now = Utc::now().timestamp();
    let signature = Webhook::new(secret)
        .unwrap()
        .sign("msg_1", now, body.as_bytes())
        .unwrap();
    let response = reqwest::Client::new()
        .post(receiver.url())
        .header("webhook-id", "msg_1")
        .header("webhook-timestamp", now)
        .header("webhook-signature", signature)
        .body(body.to_owned())
        .send()
        .await
        .unwrap();
    response.status().as_u16()
}

#[tokio::test]
async fn signatures_are_checked_and_failures_are_made() {
    let receiver = Receiver::start().await;
    receiver.answer_next([Answer::Status(500)]);
    let body = r#"{"type": "dev.fencepost.resource.accepted", "subject": "test://a", "data": {"position": 7}}"#;
    assert_eq!(send(&receiver, receiver.secret(), body).await, 500);
    assert_eq!(send(&receiver, receiver.secret(), body).await, 204);
    assert_eq!(send(&receiver, "whsec_AAAA", body).await, 204);
    let rotated = receiver.add_key();
    assert_eq!(send(&receiver, &rotated, body).await, 204);
    let signed: Vec<bool> = receiver
        .deliveries()
        .iter()
        .map(|delivery| delivery.signed)
        .collect();
    assert_eq!(signed, [true, true, false, true]);
    let event = receiver
        .event("the event", Duration::from_secs(1), |event| {
            event.subject() == "test://a"
        })
        .await;
    assert_eq!(
        (event.kind(), event.position()),
        ("dev.fencepost.resource.accepted", 7)
    );
    assert_eq!(receiver.accepted().len(), 3);
}
