//! The resources in memory: contents, and per URI its faults, holds and count of reads.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::faulty::{
    faults::ReadFault,
    hold::{self, Gate, ReadHold},
    message::quoted,
};

#[derive(Default)]
pub struct Resources {
    entries: RwLock<HashMap<String, Arc<Entry>>>,
    /// URI to MIME type of what is there, in the order of the list.
    listed: RwLock<BTreeMap<String, String>>,
}

#[derive(Default)]
struct Entry {
    reads: AtomicU64,
    slow: Mutex<Slow>,
}

#[derive(Default)]
struct Slow {
    /// One entry of `contents`, as JSON; `None` when the resource is not there.
    contents: Option<Arc<str>>,
    fault: Option<ReadFault>,
    holds: VecDeque<Gate>,
}

/// All that a read needs, taken at the moment it came.
pub struct Taken {
    pub contents: Option<Arc<str>>,
    pub fault: Option<ReadFault>,
    pub gate: Option<Gate>,
}

impl Resources {
    pub fn set(&self, uri: &str, text: &str) {
        self.set_typed(uri, "text/plain", text);
    }

    pub fn set_typed(&self, uri: &str, mime: &str, text: &str) {
        let contents = format!(
            r#"{{"uri":{},"mimeType":{},"text":{}}}"#,
            quoted(uri),
            quoted(mime),
            quoted(text)
        );
        self.entry(uri)
            .with(|slow| slow.contents = Some(contents.into()));
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        if listed.get(uri).is_none_or(|listed| listed != mime) {
            listed.insert(uri.to_owned(), mime.to_owned());
        }
    }

    pub fn remove(&self, uri: &str) {
        self.entry(uri).with(|slow| slow.contents = None);
        self.listed
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(uri);
    }

    pub fn fail(&self, uri: &str, fault: Option<ReadFault>) {
        self.entry(uri).with(|slow| slow.fault = fault);
    }

    pub fn hold(&self, uri: &str) -> ReadHold {
        let (hold, gate) = hold::pair();
        self.entry(uri).with(|slow| slow.holds.push_back(gate));
        hold
    }

    pub fn take(&self, uri: &str) -> Taken {
        let entry = self.entry(uri);
        entry.reads.fetch_add(1, Ordering::Relaxed);
        entry.with(|slow| {
            while slow.holds.front().is_some_and(Gate::is_open) {
                slow.holds.pop_front();
            }
            Taken {
                contents: slow.contents.clone(),
                fault: slow.fault.clone(),
                gate: slow.holds.pop_front(),
            }
        })
    }

    pub fn reads_of(&self, uri: &str) -> u64 {
        self.entry(uri).reads.load(Ordering::Relaxed)
    }

    /// Up to `size` items after `after`, and whether there are more.
    pub fn page(&self, after: Option<&str>, size: usize) -> (Vec<(String, String)>, bool) {
        use std::ops::Bound::{Excluded, Unbounded};
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        let from = after.map_or(Unbounded, Excluded);
        let mut rest = listed.range::<str, _>((from, Unbounded));
        let page = rest
            .by_ref()
            .take(size)
            .map(|(uri, mime)| (uri.clone(), mime.clone()))
            .collect();
        (page, rest.next().is_some())
    }

    fn entry(&self, uri: &str) -> Arc<Entry> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(uri) {
            return Arc::clone(entry);
        }
        drop(entries);
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(entries.entry(uri.to_owned()).or_default())
    }
}

impl Entry {
    fn with<T>(&self, look: impl FnOnce(&mut Slow) -> T) -> T {
        look(&mut self.slow.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
