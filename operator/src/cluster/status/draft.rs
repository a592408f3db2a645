//! A status before it is compared with the one that stands: conditions as kstatus reads them, and the fields of the kind.
//!
//! `Ready` always; `Reconciling` and `Stalled` only while true; everything else only while abnormal.

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Characters of a condition's message: half of what the API server allows, and more than a person reads.
const MAX_MESSAGE: usize = 2048;

/// What a condition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    True,
    False,
}

impl Truth {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
        }
    }
}

/// One condition without its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftCondition {
    pub kind: &'static str,
    pub status: Truth,
    /// A stable word.
    pub reason: String,
    pub message: String,
}

/// What a status shall say.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    pub conditions: Vec<DraftCondition>,
    pub fields: Map<String, Value>,
}

impl Draft {
    /// All is as it was asked for.
    pub fn ready(reason: &str, message: impl Into<String>) -> Self {
        Self::of(Truth::True, reason, message)
    }

    /// It is not, and nothing is under way.
    pub fn unready(reason: &str, message: impl Into<String>) -> Self {
        Self::of(Truth::False, reason, message)
    }

    /// It is not yet, and comes by itself.
    pub fn reconciling(reason: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        let mut draft = Self::of(Truth::False, reason, message.clone());
        draft.add("Reconciling", reason, message);
        draft
    }

    /// It is not, and somebody has to act.
    pub fn stalled(reason: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        let mut draft = Self::of(Truth::False, reason, message.clone());
        draft.add("Stalled", reason, message);
        draft
    }

    fn of(status: Truth, reason: &str, message: impl Into<String>) -> Self {
        Self {
            conditions: vec![DraftCondition {
                kind: "Ready",
                status,
                reason: reason.to_owned(),
                message: bounded(message.into(), MAX_MESSAGE),
            }],
            fields: Map::new(),
        }
    }

    /// Adds a condition that is true. At most one of each type.
    pub fn add(&mut self, kind: &'static str, reason: &str, message: impl Into<String>) {
        if self.conditions.iter().all(|known| known.kind != kind) {
            self.conditions.push(DraftCondition {
                kind,
                status: Truth::True,
                reason: reason.to_owned(),
                message: bounded(message.into(), MAX_MESSAGE),
            });
        }
    }

    /// The fields of the kind's status type.
    pub fn with(mut self, status: &impl Serialize) -> Self {
        if let Ok(Value::Object(fields)) = serde_json::to_value(status) {
            self.fields = fields;
        }
        self
    }

    /// The whole status. A condition keeps its time while its status stays.
    pub fn settle(&self, before: &Value, generation: Option<i64>, now: Timestamp) -> Value {
        let mut status = self.fields.clone();
        let known = before["conditions"].as_array();
        let conditions: Vec<Value> = self
            .conditions
            .iter()
            .map(|condition| {
                let same = known.into_iter().flatten().find(|known| {
                    known["type"] == condition.kind
                        && known["status"] == condition.status.as_str()
                        && known["lastTransitionTime"].is_string()
                });
                let since = same.map_or_else(
                    || json!(seconds(now)),
                    |known| known["lastTransitionTime"].clone(),
                );
                json!({
                    "type": condition.kind,
                    "status": condition.status.as_str(),
                    "reason": condition.reason,
                    "message": condition.message,
                    "lastTransitionTime": since,
                    "observedGeneration": generation,
                })
            })
            .collect();
        status.insert("conditions".to_owned(), Value::Array(conditions));
        status.insert("observedGeneration".to_owned(), json!(generation));
        Value::Object(status)
    }
}

/// A time as a status writes it: whole seconds, RFC 3339, UTC.
pub fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// At most so many characters.
pub fn bounded(mut message: String, characters: usize) -> String {
    if let Some((cut, _)) = message.char_indices().nth(characters) {
        message.truncate(cut);
    }
    message
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_condition_keeps_its_time_while_its_status_stays() {
        let first = Draft::reconciling("Connecting", "the first try").settle(
            &Value::Null,
            Some(1),
            at("2026-01-01T00:00:00.5Z"),
        );
        assert_eq!(
            first["conditions"][0]["lastTransitionTime"],
            "2026-01-01T00:00:00Z"
        );
        let second = Draft::reconciling("Connecting", "the second try").settle(
            &first,
            Some(2),
            at("2026-01-01T00:01:00Z"),
        );
        assert_eq!(
            second["conditions"][0]["lastTransitionTime"],
            "2026-01-01T00:00:00Z"
        );
        assert_eq!(second["conditions"][0]["message"], "the second try");
        assert_eq!(second["conditions"][0]["observedGeneration"], 2);
        let third =
            Draft::ready("Connected", "").settle(&second, Some(2), at("2026-01-01T00:02:00Z"));
        assert_eq!(third["conditions"].as_array().unwrap().len(), 1);
        assert_eq!(
            third["conditions"][0]["lastTransitionTime"],
            "2026-01-01T00:02:00Z"
        );
    }
}
