//! Why something that was declared is not, or not fully, done.

use std::fmt;

use crate::manifest::ObjectId;

/// One finding about a declared object. Ordered by object and field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    pub object: ObjectId,
    /// Path of the field, as in `spec.serverRef`.
    pub field: String,
    pub reason: ProblemReason,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub fix: String,
    /// The object that a broken reference means. While that one cannot be read, the reference is not at fault.
    pub refers_to: Option<ObjectId>,
}

/// A stable word for a problem: condition reason, API field, log field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemReason {
    ServerNotFound,
    SubjectNotFound,
    WatchNotFound,
    SecretNotFound,
    SecretKeyNotFound,
    ReferenceNotGranted,
    CredentialInvalid,
    SigningSecretInvalid,
    SigningSecretWeak,
    CertificateInvalid,
    UriAmbiguous,
    ModesDiffer,
    ServiceNotFound,
    AddressUnknown,
    AddressNotPublished,
    NotActedOn,
}

/// Whether the object can be used as it was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Error,
    Warning,
}

impl ProblemReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ServerNotFound => "ServerNotFound",
            Self::SubjectNotFound => "SubjectNotFound",
            Self::WatchNotFound => "WatchNotFound",
            Self::SecretNotFound => "SecretNotFound",
            Self::SecretKeyNotFound => "SecretKeyNotFound",
            Self::ReferenceNotGranted => "ReferenceNotGranted",
            Self::CredentialInvalid => "CredentialInvalid",
            Self::SigningSecretInvalid => "SigningSecretInvalid",
            Self::SigningSecretWeak => "SigningSecretWeak",
            Self::CertificateInvalid => "CertificateInvalid",
            Self::UriAmbiguous => "UriAmbiguous",
            Self::ModesDiffer => "ModesDiffer",
            Self::ServiceNotFound => "ServiceNotFound",
            Self::AddressUnknown => "AddressUnknown",
            Self::AddressNotPublished => "AddressNotPublished",
            Self::NotActedOn => "NotActedOn",
        }
    }

    pub const fn severity(self) -> Severity {
        match self {
            Self::UriAmbiguous | Self::ModesDiffer | Self::SigningSecretWeak | Self::NotActedOn => {
                Severity::Warning
            }
            Self::ServerNotFound
            | Self::SubjectNotFound
            | Self::WatchNotFound
            | Self::SecretNotFound
            | Self::SecretKeyNotFound
            | Self::ReferenceNotGranted
            | Self::CredentialInvalid
            | Self::SigningSecretInvalid
            | Self::ServiceNotFound
            | Self::AddressUnknown
            | Self::AddressNotPublished
            | Self::CertificateInvalid => Severity::Error,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}: {}\n    fix: {}",
            self.object, self.field, self.message, self.fix
        )
    }
}

impl Problem {
    pub(super) fn new(
        object: ObjectId,
        field: impl Into<String>,
        reason: ProblemReason,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            object,
            field: field.into(),
            reason,
            message: message.into(),
            fix: fix.into(),
            refers_to: None,
        }
    }

    /// A field whose schema holds and which this version does not act on.
    pub(super) fn not_acted_on(object: ObjectId, field: &str, what: &str) -> Box<Self> {
        let message = format!("accepted, but not acted on by this version: {what}");
        let fix = "keep it for a later version, or remove it";
        Box::new(Self::new(
            object,
            field,
            ProblemReason::NotActedOn,
            message,
            fix,
        ))
    }

    pub(super) fn about(mut self: Box<Self>, referent: ObjectId) -> Box<Self> {
        self.refers_to = Some(referent);
        self
    }
}
