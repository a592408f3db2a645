//! Subjects with their credential, the anonymous one of each namespace among them.

use fencepost_crds::{ANONYMOUS, MCPSubjectSpec};
use sha2::{Digest, Sha256};
use uuid::Builder;

use super::{
    ObjectKey,
    credential::header_value,
    problem::{Problem, ProblemReason},
    reference::{Referrer, secret},
};
use crate::manifest::{Kind, ObjectName, ObjectSet, Secret};

/// What a request carries to say who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    pub header: String,
    /// The whole value of the header, `Bearer ` included where it belongs.
    pub value: Secret,
}

/// Why a subject may not read any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Withdrawal {
    /// `spec.revoked` is true.
    Revoked,
    /// The Secret, its key or a usable credential in it is not there.
    CredentialGone,
}

/// The identity on whose authority resources are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredSubject {
    pub key: ObjectKey,
    /// Absent: requests carry none.
    pub credential: Option<Credential>,
    /// Present: it has no sessions and its content is not served.
    pub withdrawal: Option<Withdrawal>,
}

impl DesiredSubject {
    pub const fn revoked(&self) -> bool {
        self.withdrawal.is_some()
    }

    /// The subject that a missing `subjectRef` means, where no `MCPSubject` of that name is declared.
    pub(super) fn anonymous(namespace: &str) -> Self {
        let key = ObjectKey {
            namespace: namespace.to_owned(),
            name: ANONYMOUS.to_owned(),
            uid: anonymous_uid(namespace),
        };
        Self {
            key,
            credential: None,
            withdrawal: None,
        }
    }
}

/// Uid of a namespace's undeclared anonymous subject: a UUID (version 8, RFC 9562) from a digest of the namespace, so that every
/// process and every run agrees on it.
pub fn anonymous_uid(namespace: &str) -> String {
    let digest = Sha256::digest(format!("fencepost.dev/subject/{namespace}/{ANONYMOUS}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    Builder::from_custom_bytes(bytes).into_uuid().to_string()
}

pub(super) fn subjects(objects: &ObjectSet, problems: &mut Vec<Problem>) -> Vec<DesiredSubject> {
    objects
        .subjects
        .iter()
        .map(|(name, object)| {
            let (credential, gone) = match credential(objects, name, &object.spec) {
                Ok(credential) => (credential, None),
                Err(problem) => {
                    problems.push(*problem);
                    (None, Some(Withdrawal::CredentialGone))
                }
            };
            let withdrawal = if object.spec.revoked {
                Some(Withdrawal::Revoked)
            } else {
                gone
            };
            DesiredSubject {
                key: ObjectKey::new(name, &object.uid),
                credential,
                withdrawal,
            }
        })
        .collect()
}

fn credential(
    objects: &ObjectSet,
    name: &ObjectName,
    spec: &MCPSubjectSpec,
) -> Result<Option<Credential>, Box<Problem>> {
    let Some(reference) = &spec.credential_secret_ref else {
        return Ok(None);
    };
    let from = Referrer {
        kind: Kind::MCPSubject,
        name,
        field: "spec.credentialSecretRef",
    };
    let value = header_value(&spec.header, secret(objects, from, reference)?).map_err(|unfit| {
        from.problem(ProblemReason::CredentialInvalid, unfit.message, unfit.fix)
    })?;
    Ok(Some(Credential {
        header: spec.header.clone(),
        value,
    }))
}
