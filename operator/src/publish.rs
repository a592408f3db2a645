//! Desired state as the rows that the ledger keeps of it.

use fencepost_ledger::Digest;
use fencepost_store::{IndexRow, Published, ServerRow, SubjectRow, WatchRow};
use fencepost_views::Condition;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::desired::{Desired, DesiredServer, Endpoint, Problem, WatchSelection};

/// The uid of an object in the ledger. Kubernetes' own are UUIDs; another that a file gives is
/// digested into one (version 8 of RFC 9562), the same in every process.
pub fn ledger_uid(uid: &str) -> Uuid {
    Uuid::parse_str(uid).unwrap_or_else(|_| {
        let digest = Sha256::digest(format!("fencepost.dev/uid/{uid}"));
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    })
}
