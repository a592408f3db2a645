//! Manifests from files for `dev`: loaded, kept through broken edits, watched.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use fencepost_store::{Store, StoreError};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

use crate::{
    desired::{Desired, desired},
    manifest::{Finding, ObjectSet, UidRegistry, load},
};

/// Edits are gathered for so long: editors write a file in several steps.
const SETTLE: Duration = Duration::from_millis(150);
/// Without inotify (network file systems), files are looked at so often all the same.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The manifests of `dev`, and the uids they were given.
pub struct Files {
    paths: Vec<PathBuf>,
    store: Store,
    uids: UidRegistry,
    objects: ObjectSet,
}

/// What a look at the files found.
pub struct Looked {
    pub desired: Desired,
    pub errors: Vec<Finding>,
    pub changed: bool,
}

impl Files {
    /// The uids live in the database that they are keys of.
    pub async fn open(paths: Vec<PathBuf>, store: Store) -> Result<Self, StoreError> {
        let uids = store.load_file_source().await?;
        Ok(Self {
            paths,
            store,
            uids: uids
                .and_then(|json| serde_json::from_value(json).ok())
                .unwrap_or_default(),
            objects: ObjectSet::default(),
        })
    }

    pub const fn objects(&self) -> &ObjectSet {
        &self.objects
    }

    /// Reads the files. What a broken file held before stays as it was.
    pub async fn look(&mut self) -> Result<Looked, StoreError> {
        let before = self.uids.clone();
        let outcome = load(&self.paths, &mut self.uids);
        let objects = outcome.keeping_from_broken_files(&self.objects);
        if self.uids != before {
            let json = serde_json::to_value(&self.uids).unwrap_or_default();
            self.store.save_file_source(&json).await?;
        }
        let changed = objects != self.objects;
        self.objects = objects;
        Ok(Looked {
            desired: desired(&self.objects),
            errors: outcome.errors,
            changed,
        })
    }
}

/// Says when something below `paths` may have changed. Signals carry no data: look again.
pub struct Edits {
    receiver: mpsc::Receiver<()>,
    // Held: dropping it ends the watch.
    _watcher: Option<RecommendedWatcher>,
}

impl Edits {
    pub fn watch(paths: &[PathBuf]) -> Self {
        let (sender, receiver) = mpsc::channel(1);
        let watcher = notify::recommended_watcher(move |_| {
            // Full means that a look is owed already.
            let _ = sender.try_send(());
        });
        let watcher = watcher.and_then(|mut watcher| {
            for path in paths {
                // A file is replaced by rename as often as it is written: its folder is watched.
                let target = if path.is_dir() {
                    path.as_path()
                } else {
                    path.parent()
                        .filter(|p| !p.as_os_str().is_empty())
                        .unwrap_or(Path::new("."))
                };
                watcher.watch(target, RecursiveMode::Recursive)?;
            }
            Ok(watcher)
        });
        Self {
            receiver,
            _watcher: watcher
                .inspect_err(|error| {
                    tracing::warn!(%error, "edits are noticed by looking every {LOOK_AGAIN:?}");
                })
                .ok(),
        }
    }

    /// Waits for the next edit, or for the time to look anyway.
    pub async fn next(&mut self) {
        let edited = tokio::time::timeout(LOOK_AGAIN, self.receiver.recv()).await;
        if edited.is_ok() {
            tokio::time::sleep(SETTLE).await;
            while self.receiver.try_recv().is_ok() {}
        }
    }
}
