//! The uids of objects from files, which have none of their own.
//!
//! In: the objects of one load. Out: a uid for each: the one written in the manifest; else the one it had; else a new one. What must
//! hold: an object keeps its uid until it disappears, and gets a new one when it comes back, so that it counts as another
//! object. A file that could not be read makes nothing disappear.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::kind::ObjectId;

/// The uids given so far. A plain value: who loads keeps it, as JSON, for as long as the objects shall keep their identity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UidRegistry {
    /// By `Kind namespace/name`.
    objects: BTreeMap<String, Registered>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Registered {
    uid: String,
    /// The file that had the object last: as long as it cannot be read, the object has not disappeared.
    file: PathBuf,
}

impl UidRegistry {
    /// The uid of an object that is there now.
    pub fn assign(&mut self, id: &ObjectId, written: Option<&str>, file: &Path) -> String {
        let key = id.to_string();
        let uid = written
            .map(ToOwned::to_owned)
            .or_else(|| self.objects.get(&key).map(|known| known.uid.clone()))
            .unwrap_or_else(|| Uuid::new_v4().to_string());
        self.objects.insert(
            key,
            Registered {
                uid: uid.clone(),
                file: file.to_owned(),
            },
        );
        uid
    }

    /// Forgets what has disappeared: what is not in `present` and whose file could be read.
    pub fn forget_all_but(
        &mut self,
        present: &BTreeSet<ObjectId>,
        is_broken: impl Fn(&Path) -> bool,
    ) {
        let present: BTreeSet<String> = present.iter().map(ToString::to_string).collect();
        self.objects
            .retain(|key, known| present.contains(key) || is_broken(&known.file));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::manifest::Kind;

    #[test]
    fn kept_until_it_disappears_and_new_when_it_comes_back() {
        let id = ObjectId::new(Kind::MCPServer, "default", "docs");
        let file = Path::new("a.yaml");
        let mut uids = UidRegistry::default();
        let first = uids.assign(&id, None, file);
        assert_eq!(
            uids.assign(&id, None, Path::new("b.yaml")),
            first,
            "moved to another file, still the same"
        );

        let mut stored: UidRegistry =
            serde_json::from_str(&serde_json::to_string(&uids).unwrap()).unwrap();
        stored.forget_all_but(&BTreeSet::new(), |broken| broken == Path::new("b.yaml"));
        assert_eq!(
            stored.assign(&id, None, file),
            first,
            "its file was broken, so it had not disappeared"
        );

        stored.forget_all_but(&BTreeSet::new(), |_| false);
        assert_ne!(stored.assign(&id, None, file), first);
        assert_eq!(stored.assign(&id, Some("given"), file), "given");
        assert_eq!(stored.assign(&id, None, file), "given");
    }
}
