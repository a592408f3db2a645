//! Manifests: what people wrote, checked as an API server would check it.
//!
//! In: paths of `.yaml`, `.yml` and `.json` files and folders. Out: typed objects with their place and uid, and every error of
//! every file. What must hold: a file that cannot be read is never read as a deletion
//! ([`LoadOutcome::keeping_from_broken_files`]), and no value of a Secret gets into an error.
//!
//! References between objects are not resolved here: [`crate::desired`] does that, for files and clusters alike.

mod cluster;
mod document;
mod field;
mod files;
mod finding;
mod kind;
mod load;
mod object;
mod position;
mod read;
mod schema;
mod secret;
mod uid;
mod values;

pub use cluster::{ClusterObjects, Publisher};
pub use field::FieldPath;
pub use finding::Finding;
pub use kind::{Kind, ObjectId};
pub use load::{LoadOutcome, load};
pub use object::{
    ByName, Manifest, ObjectName, ObjectSet, Origin, ReferenceGrantFrom, ReferenceGrantSpec,
    ReferenceGrantTo,
};
pub use read::{Checked, Schemas, Unusable, check};
pub use schema::Violation;
pub use secret::{Secret, SecretData};
pub use uid::UidRegistry;
