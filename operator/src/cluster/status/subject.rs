//! The status of an `MCPSubject`.

use fencepost_crds::{MCPSubjectSpec, MCPSubjectStatus};
use fencepost_views::Subject;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{draft::Draft, watch::time};

pub fn draft(spec: &MCPSubjectSpec, known: Option<&Subject>) -> Draft {
    let Some(known) = known else {
        return Draft::reconciling("Publishing", "the subject is not in the ledger yet");
    };
    let status = MCPSubjectStatus {
        epoch: Some(known.epoch),
        last_used: known.last_used_at.and_then(time).map(Time),
        ..MCPSubjectStatus::default()
    };
    let draft = if spec.revoked {
        Draft::unready(
            "Revoked",
            "spec.revoked is true: nothing is read on this subject's authority, and none of its content is served",
        )
    } else if known.revoked {
        Draft::reconciling("Publishing", "the permission is being given back")
    } else if spec.credential_secret_ref.is_some() {
        Draft::ready(
            "CredentialAvailable",
            "the credential is there and can be sent",
        )
    } else {
        Draft::ready("Anonymous", "requests carry no credential")
    };
    draft.with(&status)
}
