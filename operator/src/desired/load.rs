//! The read load that a desired state causes, by arithmetic alone.
//!
//! In: servers and sessions. Out: for each server, reads an hour as a range, and the reads a second at worst. Jitter shortens an interval
//! by up to its percentage and never lengthens it, so the range goes from `3600 / interval` to
//! `3600 / (interval * (1 - jitter))`. Reads that changes cause come on top; they depend on the documents and not on the manifests.

use std::{collections::BTreeMap, time::Duration};

use fencepost_crds::RefreshMode;

use super::{Desired, DesiredResource, ObjectKey};

const HOUR_SECONDS: f64 = 3_600.0;

/// Reads an hour, without jitter and with all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ReadsPerHour {
    pub low: f64,
    pub high: f64,
}

/// Resources of one server that are read at the same interval.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadLine {
    pub cause: LoadCause,
    pub interval: Duration,
    pub jitter_percent: u8,
    pub resources: usize,
    pub reads: ReadsPerHour,
}

/// Why resources are read at an interval. `Ord` is the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadCause {
    /// Polled, each at its `pollInterval`.
    Poll,
    /// Subscribed, read again at `maxStaleness` since a silent server proves nothing.
    Audit,
}

/// What one server is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerLoad {
    pub server: ObjectKey,
    pub sessions: usize,
    pub resources: usize,
    /// Ordered by cause and interval. Mode `Auto` counts as subscribed.
    pub lines: Vec<LoadLine>,
    /// Sum of the lines.
    pub total: ReadsPerHour,
    /// The same if the server offers no subscription, so that `Auto` and `Subscribe` are polled.
    pub total_if_polled: ReadsPerHour,
    /// Reads a second at worst: everything polled, all jitter used.
    pub peak_per_second: f64,
    /// `spec.limits.requestsPerSecond`.
    pub limit_per_second: u32,
    /// How long one read of everything takes at the limit, as after a reconnect.
    pub full_read: Duration,
    /// The tightest `maxStaleness` of the server's resources.
    pub tightest_staleness: Duration,
}

impl ServerLoad {
    /// The worst case is more than the server may be asked: bounds would not hold.
    pub fn is_above_limit(&self) -> bool {
        self.peak_per_second > f64::from(self.limit_per_second)
    }

    /// After a reconnect the last resource is read later than its bound allows.
    pub fn reads_too_slowly(&self) -> bool {
        self.full_read > self.tightest_staleness
    }
}

/// Reads an hour of each server, by namespace and name: the upper end, as the API shows it. A server without resources is left out.
pub fn reads_per_hour(desired: &Desired) -> BTreeMap<(String, String), f64> {
    server_loads(desired)
        .into_iter()
        .map(|load| ((load.server.namespace, load.server.name), load.total.high))
        .collect()
}

/// The load of every server that has resources, in the order of the servers.
pub fn server_loads(desired: &Desired) -> Vec<ServerLoad> {
    desired
        .servers
        .iter()
        .filter_map(|server| {
            let sessions = desired
                .sessions
                .iter()
                .filter(|session| session.server == server.key);
            let resources: Vec<&DesiredResource> = sessions
                .clone()
                .flat_map(|session| &session.resources)
                .collect();
            let tightest_staleness = resources
                .iter()
                .map(|resource| resource.max_staleness)
                .min()?;
            let lines = lines(&resources);
            let total_if_polled = sum(resources
                .iter()
                .map(|resource| reads(resource.poll_interval, resource.jitter_percent)));
            let limit_per_second = server.limits.requests_per_second;
            Some(ServerLoad {
                server: server.key.clone(),
                sessions: sessions.count(),
                resources: resources.len(),
                total: sum(lines.iter().map(|line| line.reads)),
                lines,
                total_if_polled,
                peak_per_second: total_if_polled.high / HOUR_SECONDS,
                limit_per_second,
                full_read: Duration::from_secs_f64(
                    resources.len() as f64 / f64::from(limit_per_second.max(1)),
                ),
                tightest_staleness,
            })
        })
        .collect()
}

fn lines(resources: &[&DesiredResource]) -> Vec<LoadLine> {
    let mut keys: Vec<(LoadCause, Duration, u8)> = resources
        .iter()
        .map(|resource| match resource.mode {
            RefreshMode::Poll => (
                LoadCause::Poll,
                resource.poll_interval,
                resource.jitter_percent,
            ),
            RefreshMode::Auto | RefreshMode::Subscribe => (
                LoadCause::Audit,
                resource.max_staleness,
                resource.jitter_percent,
            ),
        })
        .collect();
    keys.sort_unstable();
    keys.chunk_by(|one, other| one == other)
        .map(|same| {
            let (cause, interval, jitter_percent) = same[0];
            let each = reads(interval, jitter_percent);
            let count = same.len() as f64;
            let reads = ReadsPerHour {
                low: each.low * count,
                high: each.high * count,
            };
            LoadLine {
                cause,
                interval,
                jitter_percent,
                resources: same.len(),
                reads,
            }
        })
        .collect()
}

/// Reads an hour of one resource at `interval`. The types of the manifest keep the interval above zero and the jitter below 100.
fn reads(interval: Duration, jitter_percent: u8) -> ReadsPerHour {
    let low = HOUR_SECONDS / interval.as_secs_f64();
    ReadsPerHour {
        low,
        high: low / (1.0 - f64::from(jitter_percent) / 100.0),
    }
}

fn sum(parts: impl Iterator<Item = ReadsPerHour>) -> ReadsPerHour {
    parts.fold(ReadsPerHour::default(), |sum, part| ReadsPerHour {
        low: sum.low + part.low,
        high: sum.high + part.high,
    })
}
