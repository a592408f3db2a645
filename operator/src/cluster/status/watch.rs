//! The status of a `WatchedResource`: counts and a sample, never all of its resources.

use chrono::{DateTime, Utc};
use fencepost_crds::{
    ResourceSample, Rollout, RolloutStage, RolloutStatus, WatchedResourceSpec,
    WatchedResourceStatus,
};
use fencepost_store::queries::WatchTally;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::draft::Draft;

/// How the server of a watch stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ServerState {
    #[default]
    Connected,
    /// No session is open: it is away, or not connected yet.
    Away,
    Suspended,
    /// Its object cannot be used as it stands.
    Unusable,
}

/// What else has a say in it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Around {
    pub server: ServerState,
    pub subject_revoked: bool,
}

pub fn draft(spec: &WatchedResourceSpec, tally: Option<&WatchTally>, around: Around) -> Draft {
    let none = WatchTally::default();
    let tally = tally.unwrap_or(&none);
    let mut draft = ready(spec, tally, around);
    if tally.stale > 0 && !spec.suspend {
        draft.add(
            "ContentStale",
            tally
                .stale_reason
                .as_deref()
                .unwrap_or("PAST_MAX_STALENESS"),
            format!(
                "{} of {} older than maxStaleness allows, or not confirmed by the last read",
                tally.stale,
                resources(tally.following)
            ),
        );
    }
    if tally.unproven > 0 {
        draft.add(
            "DeliveryUnproven",
            "AuditFoundChange",
            format!(
                "an audit read of {} found a change that the server had not announced; rely on maxStaleness, not on its notifications",
                resources(tally.unproven)
            ),
        );
    }
    if tally.volatile > 0 {
        draft.add(
            "Volatile",
            "DigestChangesOnEveryRead",
            format!(
                "{} with a new digest on nearly every read; exclude what changes with digest.ignoreJsonPointers",
                resources(tally.volatile)
            ),
        );
    }
    draft.with(&status(spec, tally))
}

fn ready(spec: &WatchedResourceSpec, tally: &WatchTally, around: Around) -> Draft {
    let all = tally.following;
    if spec.suspend {
        Draft::unready("Suspended", "spec.suspend is true: nothing is read")
    } else if around.subject_revoked {
        Draft::unready(
            "SubjectRevoked",
            "the subject's permission is withdrawn: nothing is read, and nothing is served",
        )
    } else if spec.uris.is_empty() && spec.select.is_some() {
        Draft::stalled(
            "NotActedOn",
            "spec.select: this version chooses nothing from a catalog; name the resources in uris",
        )
    } else if around.server == ServerState::Unusable {
        Draft::reconciling(
            "ServerNotReady",
            "the server's object cannot be used as it stands; its own conditions say why",
        )
    } else if around.server == ServerState::Suspended {
        Draft::unready(
            "ServerSuspended",
            "the server is suspended: nothing is read",
        )
    } else if tally.stale > 0 {
        let reason = tally
            .stale_reason
            .as_deref()
            .unwrap_or("PAST_MAX_STALENESS");
        Draft::reconciling(
            reason,
            format!(
                "{} of {} not confirmed within their bound",
                tally.stale,
                resources(all)
            ),
        )
    } else if tally.unread > 0 || (all == 0 && !spec.uris.is_empty() && tally.states.is_empty()) {
        if around.server == ServerState::Away {
            Draft::reconciling(
                "ServerNotReady",
                "no session with the server is open yet; its own conditions say why",
            )
        } else {
            Draft::reconciling("Progressing", "first reads are under way")
        }
    } else if all == 0 && spec.uris.is_empty() {
        Draft::ready("NothingWatched", "no resource is named or chosen")
    } else if all == 0 {
        Draft::ready("Converged", "none of the resources is left on the server")
    } else {
        Draft::ready(
            "Converged",
            format!(
                "{} kept within {}",
                resources(all),
                spec.refresh.max_staleness
            ),
        )
    }
}

fn resources(count: i64) -> String {
    match count {
        1 => "1 resource".to_owned(),
        many => format!("{many} resources"),
    }
}

fn status(spec: &WatchedResourceSpec, tally: &WatchTally) -> WatchedResourceStatus {
    WatchedResourceStatus {
        resources: Some(tally.states.iter().map(|state| state.count).sum()),
        states: tally
            .states
            .iter()
            .map(|state| (state.state.clone(), state.count))
            .collect(),
        converged: Some(format!("{}/{}", tally.converged, tally.following)),
        rollout: spec.rollout.as_ref().map(rollout),
        sample: tally
            .sample
            .iter()
            .map(|resource| ResourceSample {
                uri: resource.uri.clone(),
                state: resource.state.clone(),
                stale: resource.stale,
                confirmed_at: resource.confirmed_at.and_then(time).map(Time),
            })
            .collect(),
        ..WatchedResourceStatus::default()
    }
}

/// What is in force is what was asked for: no gate holds it back in this version.
fn rollout(asked: &Rollout) -> RolloutStatus {
    RolloutStatus {
        stage: asked.stage,
        percent: match asked.stage {
            RolloutStage::Shadow => Some(0),
            RolloutStage::Canary => asked.percent,
            RolloutStage::Full => Some(100),
        },
        reason: Some("AsSpecified".to_owned()),
    }
}

/// Whole seconds, as a status writes times.
pub fn time(at: DateTime<Utc>) -> Option<Timestamp> {
    Timestamp::from_second(at.timestamp()).ok()
}
