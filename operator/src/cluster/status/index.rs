//! The status of a `DerivedIndex`.

use fencepost_crds::DerivedIndexStatus;
use fencepost_views::Index;

use super::draft::Draft;

pub fn draft(known: Option<&Index>) -> Draft {
    let Some(known) = known else {
        return Draft::reconciling("Publishing", "the index is not in the ledger yet");
    };
    let status = DerivedIndexStatus {
        delivered_position: Some(known.delivered_position),
        acknowledged_position: Some(known.acknowledged_position),
        lag: Some(known.pending),
        ..DerivedIndexStatus::default()
    };
    let behind = known
        .conditions
        .iter()
        .any(|condition| condition.kind == "IndexBehind");
    let mut draft = if let Some(error) = &known.last_error {
        Draft::reconciling(
            "DeliveryFailing",
            format!("the last delivery failed and is tried again: {error}"),
        )
    } else if behind {
        Draft::reconciling("IndexBehind", "events wait longer than the target of 30 s")
    } else {
        Draft::ready(
            "Delivering",
            "everything up to the acknowledged position is confirmed",
        )
    };
    if behind {
        draft.add(
            "IndexBehind",
            "LAG_PAST_TARGET",
            "the oldest event that is not confirmed waits longer than the target of 30 s",
        );
    }
    draft.with(&status)
}
