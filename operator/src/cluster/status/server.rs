//! The status of an `MCPServer`.

use fencepost_crds::{MCPServerSpec, MCPServerStatus};
use fencepost_views::Server;
use serde_json::Value;

use super::draft::Draft;

/// Capabilities listed at most; the schema's bound.
const MAX_CAPABILITIES: usize = 64;

/// `wanted`: some watch asks for a session.
pub fn draft(spec: &MCPServerSpec, known: Option<&Server>, wanted: bool) -> Draft {
    let Some(known) = known else {
        return Draft::reconciling("Publishing", "the server is not in the ledger yet");
    };
    let status = MCPServerStatus {
        era: known.era.as_deref().map(capitalised),
        protocol_version: known.protocol_version.clone(),
        server_name: known.server_name.clone(),
        server_version: known.server_version.clone(),
        capabilities: capabilities(known.capabilities.as_ref()),
        sessions: Some(open_sessions(known)),
        ..MCPServerStatus::default()
    };
    let draft = if spec.suspend {
        Draft::unready("Suspended", "spec.suspend is true: no session is open")
    } else if known.ready {
        Draft::ready("Connected", connected(known))
    } else if let Some(refused) = known.conditions.iter().find(|c| is_refused(&c.reason)) {
        Draft::stalled(&refused.reason, refused.message.clone())
    } else if let Some(trouble) = known.conditions.first() {
        Draft::reconciling(
            &trouble.reason,
            format!("{}; it is tried again", trouble.message),
        )
    } else if wanted {
        Draft::reconciling("Connecting", "the first session is being opened")
    } else {
        Draft::ready(
            "Idle",
            "no watch asks for this server, so no session is open",
        )
    };
    draft.with(&status)
}

/// What this process does not do: no try will bring it, somebody has to change the manifest or a flag.
fn is_refused(reason: &str) -> bool {
    matches!(
        reason,
        "ADDRESS_REFUSED" | "REDIRECT_REFUSED" | "STDIO_NOT_ALLOWED"
    )
}

fn open_sessions(server: &Server) -> i64 {
    let open = server
        .sessions
        .iter()
        .filter(|session| session.closed_at.is_none() && session.era.is_some());
    i64::try_from(open.count()).unwrap_or(i64::MAX)
}

fn connected(server: &Server) -> String {
    let era = server.era.as_deref().map(capitalised).unwrap_or_default();
    let version = server.protocol_version.as_deref().unwrap_or("unknown");
    let subscribe = if server.subscribe == Some(true) {
        "it offers subscribe"
    } else {
        "it offers no subscribe, so resources are polled"
    };
    format!("{era} era, protocol version {version}; {subscribe}")
}

/// `legacy` in the ledger, `Legacy` in a manifest.
fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
        .unwrap_or_default()
}

/// `{"resources": {"subscribe": true}}` as `resources`, `resources.subscribe`. Names of a server that is not trusted are cut.
fn capabilities(declared: Option<&Value>) -> Vec<String> {
    let mut names = Vec::new();
    for (name, inner) in declared.and_then(Value::as_object).into_iter().flatten() {
        let name: String = name.chars().take(64).collect();
        for (detail, on) in inner.as_object().into_iter().flatten() {
            if *on == Value::Bool(true) {
                let detail: String = detail.chars().take(64).collect();
                names.push(format!("{name}.{detail}"));
            }
        }
        names.push(name);
    }
    names.sort();
    names.truncate(MAX_CAPABILITIES);
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn capabilities_are_flattened() {
        let declared = json!({"tools": {}, "resources": {"subscribe": true, "listChanged": false}});
        assert_eq!(
            capabilities(Some(&declared)),
            ["resources", "resources.subscribe", "tools"]
        );
    }
}
