//! What became of a read. Every issued read ends in exactly one of these.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Outcome of a read, as receipts, metrics and the API name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Accepted,
    Unchanged,
    Stale,
    NotFound,
    /// The server answered that it will not give the content (permission, user input needed).
    Refused,
    Failed,
}

impl Outcome {
    pub const ALL: [Self; 6] = [
        Self::Accepted,
        Self::Unchanged,
        Self::Stale,
        Self::NotFound,
        Self::Refused,
        Self::Failed,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Unchanged => "unchanged",
            Self::Stale => "stale",
            Self::NotFound => "not_found",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no outcome.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not an outcome")]
pub struct UnknownOutcome(String);

impl FromStr for Outcome {
    type Err = UnknownOutcome;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|v| v.as_str() == s)
            .ok_or_else(|| UnknownOutcome(s.to_owned()))
    }
}

/// Which fence an answer ran into. Checked in this order; the first names the receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StaleReason {
    /// The subject's authorization epoch rose after the read was issued.
    StaleEpoch,
    /// Another generation watches the resource now.
    StaleGeneration,
    /// The generation is closing or closed.
    StaleAfterClose,
    /// A read issued later has settled already.
    StaleOrdinal,
}

impl StaleReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StaleEpoch => "STALE_EPOCH",
            Self::StaleGeneration => "STALE_GENERATION",
            Self::StaleAfterClose => "STALE_AFTER_CLOSE",
            Self::StaleOrdinal => "STALE_ORDINAL",
        }
    }
}

impl fmt::Display for StaleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The acceptance point's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// A version row and an outbox row were written, the watermark rose.
    Accepted,
    /// The watermark rose; nothing else.
    Unchanged,
    Stale(StaleReason),
    /// In order: the resource is `TOMBSTONE_PENDING` now, or stays TOMBSTONED.
    NotFound,
    Refused,
    Failed,
    /// The read has its receipt already (a repeated call, or its answer was given up).
    AlreadySettled,
    /// The request id or its ordinal was never issued for this resource.
    NeverIssued,
}

impl Verdict {
    /// The outcome written into the receipt; none when no receipt is written.
    pub const fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Accepted => Some(Outcome::Accepted),
            Self::Unchanged => Some(Outcome::Unchanged),
            Self::Stale(_) => Some(Outcome::Stale),
            Self::NotFound => Some(Outcome::NotFound),
            Self::Refused => Some(Outcome::Refused),
            Self::Failed => Some(Outcome::Failed),
            Self::AlreadySettled | Self::NeverIssued => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_read_as_it_is_written_here_and_in_json() {
        for outcome in Outcome::ALL {
            assert_eq!(outcome.as_str().parse::<Outcome>().unwrap(), outcome);
            let json = serde_json::to_string(&outcome).unwrap();
            assert_eq!(json, format!("{:?}", outcome.as_str()));
        }
        for reason in [
            StaleReason::StaleEpoch,
            StaleReason::StaleGeneration,
            StaleReason::StaleAfterClose,
            StaleReason::StaleOrdinal,
        ] {
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(json, format!("{:?}", reason.as_str()));
        }
        assert!("lost".parse::<Outcome>().is_err());
    }

    #[test]
    fn only_what_writes_a_receipt_has_an_outcome() {
        let stale = Verdict::Stale(StaleReason::StaleEpoch);
        assert_eq!(stale.outcome(), Some(Outcome::Stale));
        assert_eq!(Verdict::NotFound.outcome(), Some(Outcome::NotFound));
        assert_eq!(Verdict::AlreadySettled.outcome(), None);
        assert_eq!(Verdict::NeverIssued.outcome(), None);
    }
}
