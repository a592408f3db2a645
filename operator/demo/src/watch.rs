//! From the system's file events to [`Change`]s.
//!
//! An editor's save is a burst: create, write, rename over the old name, delete the backup. A burst is folded into one window, after
//! which the folder is walked and compared with what it held before. The walk finds what came and went, whatever the events said;
//! the events find rewrites that left size and time as they were.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use notify::{
    Event, EventKind, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    DemoError,
    change::{Change, Changes},
    folder::{Folder, Stamp},
    uri,
};

/// How long a burst is gathered after its first event: longer than an editor's save, far below what a person notices.
const FOLD: Duration = Duration::from_millis(50);

/// Events waiting to be folded. Past it the system's own answer to overflow is used: compare everything.
const QUEUE: usize = 4096;

enum Seen {
    Touched(Vec<PathBuf>),
    /// Events were lost.
    Rescan,
}

/// Watches until `shutdown`. Returns once the watch is in place, so that no later edit goes unseen.
pub fn start(folder: Arc<Folder>, shutdown: CancellationToken) -> Result<Changes, DemoError> {
    let changes = Changes::new();
    let (seen, queue) = mpsc::channel(QUEUE);
    let overflowed = Arc::new(AtomicBool::new(false));
    let overflow = Arc::clone(&overflowed);
    let failed = |source| DemoError::Watch {
        path: folder.root().to_owned(),
        source,
    };
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        let seen_now = match event {
            Ok(event) if event.need_rescan() => Seen::Rescan,
            Ok(event) if matters(event.kind) => Seen::Touched(event.paths),
            Ok(_) => return,
            Err(_) => Seen::Rescan,
        };
        // This runs on the watcher's own thread, which must not block: a full queue becomes one comparison of everything.
        if seen.try_send(seen_now).is_err() {
            overflow.store(true, Ordering::Release);
        }
    })
    .map_err(failed)?;
    watcher
        .watch(folder.root(), RecursiveMode::Recursive)
        .map_err(failed)?;
    let known = folder.files().ok_or_else(|| DemoError::TooManyFiles {
        path: folder.root().to_owned(),
        limit: crate::folder::MAX_FILES,
    })?;
    let telling = changes.clone();
    tokio::spawn(async move {
        // The watch ends when this is dropped.
        let _watcher = watcher;
        shutdown
            .run_until_cancelled(follow(folder, telling, known, queue, overflowed))
            .await;
    });
    Ok(changes)
}

/// Reads of a file are events too, ours among them; only what can alter a content counts.
fn matters(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

async fn follow(
    folder: Arc<Folder>,
    changes: Changes,
    mut known: BTreeMap<PathBuf, Stamp>,
    mut queue: mpsc::Receiver<Seen>,
    overflowed: Arc<AtomicBool>,
) {
    while let Some(first) = queue.recv().await {
        tokio::time::sleep(FOLD).await;
        let mut touched = BTreeSet::new();
        let mut all = overflowed.swap(false, Ordering::AcqRel);
        let mut next = Some(first);
        while let Some(seen) = next {
            match seen {
                Seen::Touched(paths) => touched.extend(paths),
                Seen::Rescan => all = true,
            }
            next = queue.try_recv().ok();
        }
        let walked = tokio::task::spawn_blocking({
            let folder = Arc::clone(&folder);
            move || folder.files()
        });
        let Ok(Some(current)) = walked.await else {
            tracing::warn!(
                "the folder holds too many files; changes are not told until some are removed"
            );
            continue;
        };
        let change = compare(folder.root(), &known, &current, &touched, all);
        known = current;
        if change != Change::default() {
            changes.tell(change);
        }
    }
}

fn compare(
    root: &Path,
    before: &BTreeMap<PathBuf, Stamp>,
    after: &BTreeMap<PathBuf, Stamp>,
    touched: &BTreeSet<PathBuf>,
    all: bool,
) -> Change {
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    let came_or_rewritten = after.iter().filter(|(path, stamp)| {
        all || before.get(*path) != Some(*stamp) || touched.contains(&root.join(path))
    });
    let list = before.len() != after.len() || before.keys().ne(after.keys());
    let updated = gone
        .chain(came_or_rewritten.map(|(path, _)| path))
        .map(|path| uri::of_path(path))
        .collect();
    Change { updated, list }
}
