//! The states of a subscription, of a resource's presence, and the one word shown for both.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Where one generation of watching stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SubscriptionState {
    Discovered,
    Subscribing,
    Active,
    Unsubscribing,
    Closed,
    /// The unsubscribe was never acknowledged: silent for good, reconciled by the session's end.
    UnsubscribeUnknown,
    /// Of unknown identity: somebody has to look.
    ReconciliationRequired,
}

impl SubscriptionState {
    pub const ALL: [Self; 7] = [
        Self::Discovered,
        Self::Subscribing,
        Self::Active,
        Self::Unsubscribing,
        Self::Closed,
        Self::UnsubscribeUnknown,
        Self::ReconciliationRequired,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Discovered => "DISCOVERED",
            Self::Subscribing => "SUBSCRIBING",
            Self::Active => "ACTIVE",
            Self::Unsubscribing => "UNSUBSCRIBING",
            Self::Closed => "CLOSED",
            Self::UnsubscribeUnknown => "UNSUBSCRIBE_UNKNOWN",
            Self::ReconciliationRequired => "RECONCILIATION_REQUIRED",
        }
    }

    /// Closing or closed: whatever arrives now changes nothing.
    pub const fn is_closed(self) -> bool {
        matches!(
            self,
            Self::Unsubscribing | Self::Closed | Self::UnsubscribeUnknown
        )
    }
}

/// Whether the resource is there, as far as reads in order have shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Presence {
    #[default]
    Present,
    TombstonePending,
    Tombstoned,
}

impl Presence {
    pub const ALL: [Self; 3] = [Self::Present, Self::TombstonePending, Self::Tombstoned];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Present => "PRESENT",
            Self::TombstonePending => "TOMBSTONE_PENDING",
            Self::Tombstoned => "TOMBSTONED",
        }
    }
}

/// The state shown to users: one word for the subscription, the presence and the permission.
///
/// Precedence: a withdrawn permission hides everything else, then a tombstone, pending or confirmed,
/// then the subscription. A closed generation of a tombstoned resource is still TOMBSTONED.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PublicState {
    Subscription(SubscriptionState),
    TombstonePending,
    Tombstoned,
    Revoked,
}

impl PublicState {
    pub const fn of(revoked: bool, presence: Presence, subscription: SubscriptionState) -> Self {
        match (revoked, presence) {
            (true, _) => Self::Revoked,
            (false, Presence::TombstonePending) => Self::TombstonePending,
            (false, Presence::Tombstoned) => Self::Tombstoned,
            (false, Presence::Present) => Self::Subscription(subscription),
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Subscription(s) => s.as_str(),
            Self::TombstonePending => "TOMBSTONE_PENDING",
            Self::Tombstoned => "TOMBSTONED",
            Self::Revoked => "REVOKED",
        }
    }
}

/// The text names no state.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a state")]
pub struct UnknownState(String);

impl FromStr for SubscriptionState {
    type Err = UnknownState;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|v| v.as_str() == s)
            .ok_or_else(|| UnknownState(s.to_owned()))
    }
}

impl FromStr for Presence {
    type Err = UnknownState;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|v| v.as_str() == s)
            .ok_or_else(|| UnknownState(s.to_owned()))
    }
}

impl fmt::Display for PublicState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_is_read_as_it_is_written_here_and_in_json() {
        for state in SubscriptionState::ALL {
            assert_eq!(state.as_str().parse::<SubscriptionState>().unwrap(), state);
            let json = serde_json::to_string(&state).unwrap();
            assert_eq!(json, format!("{:?}", state.as_str()));
        }
        for presence in Presence::ALL {
            assert_eq!(presence.as_str().parse::<Presence>().unwrap(), presence);
        }
        let error = "PAUSED".parse::<SubscriptionState>().unwrap_err();
        assert_eq!(error.to_string(), "\"PAUSED\" is not a state");
    }

    #[test]
    fn a_withdrawn_permission_hides_a_tombstone_and_a_tombstone_the_subscription() {
        let shown = |revoked, presence| {
            PublicState::of(revoked, presence, SubscriptionState::Closed).as_str()
        };
        assert_eq!(shown(false, Presence::Present), "CLOSED");
        assert_eq!(shown(false, Presence::Tombstoned), "TOMBSTONED");
        assert_eq!(
            shown(false, Presence::TombstonePending),
            "TOMBSTONE_PENDING"
        );
        assert_eq!(shown(true, Presence::Tombstoned), "REVOKED");
        assert_eq!(shown(true, Presence::Present), "REVOKED");
    }
}
