//! Whether a status has to be written: what moves all the time does not count.
//!
//! An object with which nothing happens keeps its `resourceVersion`. Times that every read moves are therefore no reason to write: they
//! are written with the next change, and by themselves once an hour.

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

/// How far behind a carried time may be.
const CARRY_SECONDS: i64 = 3600;

/// Whether `before` says the same already, but for times that every read moves.
pub fn stands(status: &Value, before: &Value) -> bool {
    let mut carried = status.clone();
    carry(&mut carried, before);
    carried == *before
}

/// Puts the times of `before` into `status`, where they are not too old.
fn carry(status: &mut Value, before: &Value) {
    if let Some(new) = status.get_mut("lastUsed") {
        keep(new, &before["lastUsed"]);
    }
    let Some(sample) = status.get_mut("sample").and_then(Value::as_array_mut) else {
        return;
    };
    let known = before["sample"].as_array();
    for resource in sample {
        let same = known
            .into_iter()
            .flatten()
            .find(|known| known["uri"] == resource["uri"]);
        if let (Some(known), Some(new)) = (same, resource.get_mut("confirmedAt")) {
            keep(new, &known["confirmedAt"]);
        }
    }
}

fn keep(new: &mut Value, old: &Value) {
    let at = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
    if let (Some(new_at), Some(old_at)) = (at(new), at(old))
        && (0..CARRY_SECONDS).contains(&(new_at.as_second() - old_at.as_second()))
    {
        *new = old.clone();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_that_every_read_moves_are_carried_for_an_hour() {
        let before = json!({"lastUsed": "2026-01-01T00:00:00Z",
            "sample": [{"uri": "a", "confirmedAt": "2026-01-01T00:00:00Z"}]});
        let mut status = json!({"lastUsed": "2026-01-01T00:59:59Z",
            "sample": [{"uri": "a", "confirmedAt": "2026-01-01T00:10:00Z"}, {"uri": "b", "confirmedAt": "2026-01-01T00:10:00Z"}]});
        assert!(!stands(&status, &before), "there is a resource more");
        carry(&mut status, &before);
        assert_eq!(status["lastUsed"], before["lastUsed"]);
        assert_eq!(status["sample"][0], before["sample"][0]);
        assert_eq!(status["sample"][1]["confirmedAt"], "2026-01-01T00:10:00Z");
        let mut later = json!({"lastUsed": "2026-01-01T01:00:00Z"});
        carry(&mut later, &before);
        assert_eq!(later["lastUsed"], "2026-01-01T01:00:00Z");
    }
}
