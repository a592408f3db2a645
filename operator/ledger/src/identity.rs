//! Newtypes that carry the fences: an ordinal cannot be compared with a generation by mistake.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// Nothing has been counted yet.
            pub const ZERO: Self = Self(0);

            pub const fn new(value: u64) -> Self {
                Self(value)
            }

            pub const fn get(self) -> u64 {
                self.0
            }

            /// The one after this. Saturates: at a million a second a `u64` lasts 584,000 years.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counter! {
    /// Number of a dispatched read of a resource; rises across generations too, never reused.
    Ordinal
}
counter! {
    /// One incarnation of watching a resource.
    Generation
}
counter! {
    /// One connection incarnation for (server, subject); also the epoch of the lease.
    SessionGeneration
}
counter! {
    /// Authorization epoch of a subject; rises with each withdrawal.
    Epoch
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            pub const fn new(id: Uuid) -> Self {
                Self(id)
            }

            pub const fn get(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

identifier! {
    /// A resource: (server, subject, exact URI).
    ResourceId
}
identifier! {
    /// One dispatched read.
    RequestId
}
