//! Why a read was issued.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The cause of a read. Where a read has several, the strongest names it (`Ord`: later wins).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Trigger {
    /// The interval of a polled resource.
    Poll,
    /// The bound on staleness of a subscribed resource: servers may acknowledge and stay silent.
    Audit,
    /// Another look at a resource that was not found.
    TombstoneCheck,
    /// Somebody asked.
    Manual,
    /// The first read of a generation of a resource that had no accepted version.
    Baseline,
    /// Notifications may have been missed.
    Gap,
    /// The server said that the resource changed.
    Notification,
}

impl Trigger {
    pub const ALL: [Self; 7] = [
        Self::Poll,
        Self::Audit,
        Self::TombstoneCheck,
        Self::Manual,
        Self::Baseline,
        Self::Gap,
        Self::Notification,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Poll => "Poll",
            Self::Audit => "Audit",
            Self::TombstoneCheck => "TombstoneCheck",
            Self::Manual => "Manual",
            Self::Baseline => "Baseline",
            Self::Gap => "Gap",
            Self::Notification => "Notification",
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no trigger.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a trigger")]
pub struct UnknownTrigger(String);

impl FromStr for Trigger {
    type Err = UnknownTrigger;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|t| t.as_str() == s)
            .ok_or_else(|| UnknownTrigger(s.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trigger_is_read_as_it_is_written_here_and_in_json() {
        for trigger in Trigger::ALL {
            assert_eq!(trigger.as_str().parse::<Trigger>().unwrap(), trigger);
            let json = serde_json::to_string(&trigger).unwrap();
            assert_eq!(json, format!("{:?}", trigger.as_str()));
        }
        assert!("Whim".parse::<Trigger>().is_err());
    }

    #[test]
    fn of_several_causes_the_servers_word_names_the_read() {
        assert_eq!(Trigger::ALL.into_iter().max(), Some(Trigger::Notification));
        assert!(Trigger::Gap > Trigger::Manual && Trigger::Manual > Trigger::Poll);
    }
}
