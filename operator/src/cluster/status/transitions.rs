//! Kubernetes Events, on transitions only: `Ready` changed its status or reason, or an abnormal condition came or went.
//!
//! What was said before stands in the object's own status, so that a restart repeats nothing.

use kube::runtime::events::{Event, EventType};
use serde_json::Value;

use super::draft::bounded;

/// Characters of a note: the API server's bound.
const MAX_NOTE: usize = 1024;

/// The events that lead from one status to the next.
pub fn between(before: &Value, after: &Value) -> Vec<Event> {
    let mut events = Vec::new();
    let now = conditions(after);
    let known = conditions(before);
    let find = |of: &[&Value], kind: &Value| -> Option<Value> {
        of.iter()
            .find(|condition| condition["type"] == *kind)
            .map(|condition| (*condition).clone())
    };
    for condition in &now {
        let was = find(&known, &condition["type"]);
        match condition["type"].as_str() {
            Some("Ready") => {
                let moved = was.as_ref().is_none_or(|was| {
                    was["status"] != condition["status"] || was["reason"] != condition["reason"]
                });
                // What only begins is no news: what comes of it is.
                let begins =
                    was.is_none() && condition["status"] != "True" && has(&now, "Reconciling");
                if moved && !begins {
                    events.push(event(condition, condition["status"] == "True"));
                }
            }
            Some("Reconciling" | "Stalled") | None => {}
            Some(_) => {
                if was.is_none() {
                    events.push(event(condition, false));
                }
            }
        }
    }
    for condition in known {
        let kind = condition["type"].as_str().unwrap_or_default();
        let abnormal = !matches!(kind, "Ready" | "Reconciling" | "Stalled");
        if abnormal && find(&now, &condition["type"]).is_none() {
            events.push(Event {
                type_: EventType::Normal,
                reason: format!("{kind}Over"),
                note: Some(format!("the condition {kind} is over")),
                action: "Reconcile".to_owned(),
                secondary: None,
            });
        }
    }
    events
}

fn conditions(status: &Value) -> Vec<&Value> {
    status["conditions"]
        .as_array()
        .map(|conditions| conditions.iter().collect())
        .unwrap_or_default()
}

fn has(conditions: &[&Value], kind: &str) -> bool {
    conditions.iter().any(|condition| condition["type"] == kind)
}

fn event(condition: &Value, good: bool) -> Event {
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let reason = if condition["type"] == "Ready" {
        text("reason")
    } else {
        text("type")
    };
    Event {
        type_: if good {
            EventType::Normal
        } else {
            EventType::Warning
        },
        reason,
        note: Some(bounded(text("message"), MAX_NOTE)),
        action: "Reconcile".to_owned(),
        secondary: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ready(status: &str, reason: &str) -> Value {
        json!({"conditions": [{"type": "Ready", "status": status, "reason": reason, "message": "m"}]})
    }

    #[test]
    fn an_event_a_transition_and_none_otherwise() {
        let reasons = |before: &Value, after: &Value| -> Vec<String> {
            between(before, after)
                .into_iter()
                .map(|event| event.reason)
                .collect()
        };
        let converged = ready("True", "Converged");
        assert_eq!(reasons(&Value::Null, &converged), ["Converged"]);
        assert_eq!(reasons(&converged, &converged), Vec::<String>::new());
        assert_eq!(
            reasons(&converged, &ready("False", "Suspended")),
            ["Suspended"]
        );
        let mut stale = converged.clone();
        if let Some(conditions) = stale["conditions"].as_array_mut() {
            conditions.push(json!({"type": "ContentStale", "status": "True", "reason": "TIMEOUT", "message": "m"}));
        }
        assert_eq!(reasons(&converged, &stale), ["ContentStale"]);
        assert_eq!(reasons(&stale, &converged), ["ContentStaleOver"]);
        let mut begins = ready("False", "Connecting");
        if let Some(conditions) = begins["conditions"].as_array_mut() {
            conditions.push(json!({"type": "Reconciling", "status": "True", "reason": "Connecting", "message": "m"}));
        }
        assert_eq!(reasons(&Value::Null, &begins), Vec::<String>::new());
    }
}
