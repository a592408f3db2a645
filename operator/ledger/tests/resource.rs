//! Which fence a refusal or a receipt names, and the steps that a closed generation does not have.

#![allow(clippy::unwrap_used)]

use fencepost_ledger::{
    Answer, Digest, Epoch, Generation, IssueRefusal, Issued, Ordinal, PublicState, RequestId,
    Resource, SessionGeneration, StaleReason, Trigger, Verdict,
};

fn request(n: u128) -> RequestId {
    RequestId::new(uuid::Uuid::from_u128(n))
}

fn active() -> (Resource, Generation, SessionGeneration) {
    let (mut resource, session) = (Resource::new(), SessionGeneration::new(1));
    let generation = resource.open_generation(session).unwrap();
    resource.activate(generation).unwrap();
    (resource, generation, session)
}

#[test]
fn a_refusal_names_the_first_fence() {
    let (mut resource, generation, session) = active();
    let refusal = |resource: &mut Resource, generation, session| {
        resource
            .issue(request(1), generation, session, Trigger::Poll)
            .unwrap_err()
    };
    let (other, newer) = (generation.next(), session.next());
    assert_eq!(
        refusal(&mut resource, other, newer),
        IssueRefusal::OtherGeneration
    );
    assert_eq!(
        refusal(&mut resource, generation, newer),
        IssueRefusal::OtherSession
    );
    resource.begin_unsubscribe(generation).unwrap();
    assert_eq!(
        refusal(&mut resource, generation, session),
        IssueRefusal::NotActive
    );
    resource.withdraw(Epoch::new(1));
    assert_eq!(refusal(&mut resource, other, newer), IssueRefusal::Revoked);
}

#[test]
fn a_receipt_names_the_first_fence() {
    let (mut resource, generation, session) = active();
    let issue = |resource: &mut Resource, n| {
        resource
            .issue(request(n), generation, session, Trigger::Poll)
            .unwrap()
    };
    let reads = [1, 2, 3, 4].map(|n| issue(&mut resource, n));
    let settle = |resource: &mut Resource, read: Issued| {
        resource.settle(
            read.request,
            read.ordinal,
            Answer::Content(Digest::new([1; 32])),
        )
    };
    assert_eq!(settle(&mut resource, reads[1]), Verdict::Accepted);
    assert_eq!(
        settle(&mut resource, reads[0]),
        Verdict::Stale(StaleReason::StaleOrdinal)
    );
    resource.begin_unsubscribe(generation).unwrap();
    assert_eq!(
        settle(&mut resource, reads[2]),
        Verdict::Stale(StaleReason::StaleAfterClose)
    );
    resource.finish_unsubscribe(generation, true).unwrap();
    resource.open_generation(session).unwrap();
    resource.withdraw(Epoch::new(1));
    assert_eq!(
        settle(&mut resource, reads[3]),
        Verdict::Stale(StaleReason::StaleEpoch)
    );
}

#[test]
fn another_ordinal_than_the_issued_one_settles_nothing() {
    let (mut resource, generation, session) = active();
    let read = resource
        .issue(request(1), generation, session, Trigger::Poll)
        .unwrap();
    let wrong = resource.settle(read.request, read.ordinal.next(), Answer::NotFound);
    assert_eq!(wrong, Verdict::NeverIssued);
    assert_eq!(resource.in_flight().count(), 1);
    assert_eq!(
        resource.settle(read.request, read.ordinal, Answer::NotFound),
        Verdict::NotFound
    );
}

#[test]
fn an_unknown_unsubscribe_waits_for_the_end_of_its_session() {
    let (mut resource, generation, session) = active();
    resource.begin_unsubscribe(generation).unwrap();
    resource.finish_unsubscribe(generation, false).unwrap();
    assert!(resource.open_generation(session).is_err());
    assert!(resource.finish_unsubscribe(generation, true).is_err());
    assert_eq!(
        resource.open_generation(session.next()),
        Ok(generation.next())
    );
}

#[test]
fn a_confirmed_tombstone_withdraws_the_content_and_closes() {
    let (mut resource, generation, session) = active();
    for (n, answer) in [
        (1, Answer::Content(Digest::new([1; 32]))),
        (2, Answer::NotFound),
    ] {
        assert!(resource.confirm_tombstone(generation).is_err());
        let read = resource
            .issue(request(n), generation, session, Trigger::Poll)
            .unwrap();
        resource.settle(read.request, read.ordinal, answer);
    }
    assert_eq!(
        resource.confirm_tombstone(generation),
        Ok(Some(Digest::new([1; 32])))
    );
    assert_eq!(resource.state(), PublicState::Tombstoned);
    assert_eq!(resource.close_ordinal(), Some(Ordinal::new(2)));
    assert!(resource.confirm_tombstone(generation).is_err());
}
