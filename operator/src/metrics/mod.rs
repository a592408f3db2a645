//! What Fencepost measures of itself, for Prometheus and for the samples behind the charts.
//!
//! In come facts from the engine and the outbox, one typed method each; out go the text of `/metrics`
//! and, every few seconds, the counts since the sample before. Labels are names of Kubernetes objects
//! and fixed words, never anything a server sent. Series of an object go with the object: each scrape
//! first drops what the retained names do not cover, so that a late call cannot bring one back.

mod families;
mod name;
mod window;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use fencepost_ledger::{Outcome, Trigger, Verdict};
use fencepost_store::{Gauges, SampleCounts};
use prometheus::TextEncoder;

use families::Families;
pub use name::Name;
use window::Window;

/// All metrics of one process; shared by `Arc`.
pub struct Metrics {
    families: Families,
    state: Mutex<State>,
    started: Instant,
}

/// What the ratios and the samples are made of.
struct State {
    /// None until it is first said which servers there are: nothing is dropped before.
    servers: Option<BTreeSet<Name>>,
    indexes: Option<BTreeSet<Name>>,
    windows: BTreeMap<Name, Window>,
    counts: SampleCounts,
    sampled: Instant,
}

impl Metrics {
    /// Fails only when two families bear one name, which a test rules out.
    pub fn new() -> Result<Self, prometheus::Error> {
        let now = Instant::now();
        Ok(Self {
            families: Families::register()?,
            state: Mutex::new(State {
                servers: None,
                indexes: None,
                windows: BTreeMap::new(),
                counts: SampleCounts::default(),
                sampled: now,
            }),
            started: now,
        })
    }

    /// A read has its receipt. `reason` is the stable word of the receipt, if it bears one.
    pub fn read_settled(
        &self,
        server: &Name,
        trigger: Trigger,
        verdict: Verdict,
        reason: Option<&'static str>,
    ) {
        // Somebody else settled it and counted it, or it never was: no receipt was written here.
        let Some(outcome) = verdict.outcome() else {
            return;
        };
        let f = &self.families;
        f.reads
            .with_label_values(&server.and([trigger.as_str(), outcome.as_str()]))
            .inc();
        match verdict {
            Verdict::Stale(why) => f
                .stale_receipts
                .with_label_values(&server.and([why.as_str()]))
                .inc(),
            Verdict::Refused | Verdict::Failed => {
                let reason = reason.unwrap_or("UNKNOWN");
                f.reads_failed
                    .with_label_values(&server.and([reason]))
                    .inc();
            }
            _ => {}
        }
        let accepted = outcome == Outcome::Accepted;
        if accepted {
            f.versions.with_label_values(&server.labels()).inc();
        }
        let minute = self.minute();
        let mut state = self.state();
        *state
            .counts
            .reads
            .entry(trigger.as_str().to_owned())
            .or_default() += 1;
        *state
            .counts
            .outcomes
            .entry(outcome.as_str().to_owned())
            .or_default() += 1;
        state.counts.versions += u64::from(accepted);
        if trigger == Trigger::Notification {
            state.counts.notification_reads += 1;
            state.counts.notification_versions += u64::from(accepted);
            state
                .windows
                .entry(server.clone())
                .or_default()
                .read(minute, accepted);
        }
    }

    /// A notification, or something else that came on the stream, and what was made of it. Both are
    /// fixed words of the program.
    pub fn notification(&self, server: &Name, kind: &'static str, disposition: &'static str) {
        self.families
            .notifications
            .with_label_values(&server.and([kind, disposition]))
            .inc();
        if kind == "updated" {
            self.state().counts.notifications += 1;
        }
    }

    /// A resource has converged: from its first unanswered invalidation or due time to the receipt of
    /// a read issued after it.
    pub fn converged(&self, server: &Name, after: Duration) {
        let seconds = after.as_secs_f64();
        self.families
            .convergence
            .with_label_values(&server.labels())
            .observe(seconds);
        let minute = self.minute();
        let mut state = self.state();
        state.counts.converged(seconds);
        state
            .windows
            .entry(server.clone())
            .or_default()
            .converged(minute, seconds);
    }

    /// The database or the core refused what would have broken an invariant. The objective is 0.
    pub fn invariant_violation(&self, invariant: &'static str) {
        self.families
            .violations
            .with_label_values(&[invariant])
            .inc();
        self.state().counts.violations += 1;
    }

    pub fn session_opened(&self, era: &'static str) {
        self.families.sessions.with_label_values(&[era]).inc();
    }

    pub fn session_closed(&self, era: &'static str) {
        self.families.sessions.with_label_values(&[era]).dec();
    }

    /// A list or a watch of the API server failed. Both are fixed words of the program.
    pub fn kubernetes_watch_failed(&self, resource: &str, reason: &'static str) {
        self.families
            .watch_errors
            .with_label_values(&[resource, reason])
            .inc();
    }

    /// The verbs that are missing now, each once for every namespace it is missing in.
    pub fn missing_permissions<'a>(&self, missing: impl Iterator<Item = (&'a str, &'a str)>) {
        self.families.missing_permissions.reset();
        for (verb, resource) in missing {
            self.families
                .missing_permissions
                .with_label_values(&[verb, resource])
                .inc();
        }
    }

    /// Why the database refuses writes now, as this replica sees it; a fixed word of the program.
    pub fn ledger_unwritable(&self, reason: Option<&'static str>) {
        self.families.ledger_unwritable.reset();
        if let Some(reason) = reason {
            self.families
                .ledger_unwritable
                .with_label_values(&[reason])
                .set(1);
        }
    }

    /// Whether this replica reconciles.
    pub fn leads(&self, leads: bool) {
        if leads {
            self.families.leader.with_label_values::<&str>(&[]).set(1);
        } else {
            self.families.leader.reset();
        }
    }

    /// What stands now, all of it: what is not named is gone.
    pub fn set_gauges(&self, gauges: &Gauges) {
        let mut state = self.state();
        self.families.resources.reset();
        for row in &gauges.resources {
            let server = Name::new(&row.namespace, &row.server);
            self.families
                .resources
                .with_label_values(&server.and([row.state.as_str()]))
                .set(row.count);
        }
        self.families.outbox_lag.reset();
        for row in &gauges.outbox_lags {
            let index = Name::new(&row.namespace, &row.index);
            self.families
                .outbox_lag
                .with_label_values(&index.labels())
                .set(row.seconds);
        }
        state.counts.stale_resources = Some(gauges.stale_resources);
        state.counts.index_lag_seconds = gauges
            .outbox_lags
            .iter()
            .map(|row| row.seconds)
            .reduce(f64::max);
    }

    /// A try to tell an index has ended: `acknowledged`, or a stable word of why not.
    pub fn delivery(&self, index: &Name, outcome: &'static str) {
        self.families
            .deliveries
            .with_label_values(&index.and([outcome]))
            .inc();
    }

    /// The servers that exist; series of all others end.
    pub fn retain_servers(&self, names: &[Name]) {
        let mut state = self.state();
        let names: BTreeSet<Name> = names.iter().cloned().collect();
        state.windows.retain(|name, _| names.contains(name));
        state.servers = Some(names);
    }

    /// The derived indexes that exist; series of all others end.
    pub fn retain_indexes(&self, names: &[Name]) {
        self.state().indexes = Some(names.iter().cloned().collect());
    }

    /// What was counted since the last call.
    pub fn take_sample(&self) -> SampleCounts {
        let mut state = self.state();
        let now = Instant::now();
        let mut counts = std::mem::take(&mut state.counts);
        counts.seconds = now.duration_since(state.sampled).as_secs_f64();
        state.sampled = now;
        counts
    }

    /// The body of `/metrics`.
    pub fn render(&self) -> Result<String, prometheus::Error> {
        let minute = self.minute();
        let mut state = self.state();
        // What stopped happening leaves the window, not only what is gone.
        state.windows.retain(|_, window| !window.is_empty(minute));
        self.families.set_ratios(&state.windows, minute);
        self.families
            .retain(state.servers.as_ref(), state.indexes.as_ref());
        drop(state);
        TextEncoder::new().encode_to_string(&self.families.gather())
    }

    fn minute(&self) -> u64 {
        self.started.elapsed().as_secs() / 60
    }

    /// The counts stay usable when a thread panicked while it held them: each is added in one step.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use fencepost_ledger::StaleReason;
    use fencepost_store::{LagGauge, StateGauge};

    use super::*;

    #[test]
    fn series_of_a_deleted_server_are_gone_and_a_late_call_does_not_bring_them_back() {
        let metrics = Metrics::new().unwrap();
        let (kept, gone) = (Name::new("agents", "kept"), Name::new("agents", "gone"));
        metrics.retain_servers(&[kept.clone(), gone.clone()]);
        let use_all = |name: &Name| {
            metrics.read_settled(name, Trigger::Notification, Verdict::Accepted, None);
            metrics.read_settled(
                name,
                Trigger::Poll,
                Verdict::Stale(StaleReason::StaleOrdinal),
                None,
            );
            metrics.read_settled(name, Trigger::Poll, Verdict::Failed, Some("TIMEOUT"));
            metrics.notification(name, "updated", "pulsed");
            metrics.converged(name, Duration::from_millis(3));
        };
        use_all(&kept);
        use_all(&gone);
        metrics.set_gauges(&gauges(&["kept", "gone"], 0.0));
        assert!(metrics.render().unwrap().contains(r#"name="gone""#));
        metrics.retain_servers(std::slice::from_ref(&kept));
        use_all(&gone);
        let text = metrics.render().unwrap();
        assert!(!text.contains(r#"name="gone""#), "{text}");
        for family in [
            "fencepost_reads_total",
            "fencepost_stale_receipts_total",
            "fencepost_read_failures_total",
            "fencepost_notifications_total",
            "fencepost_versions_accepted_total",
            "fencepost_convergence_seconds_bucket",
            "fencepost_converged_ratio",
            "fencepost_read_amplification_ratio",
            "fencepost_resources",
        ] {
            let series = text
                .lines()
                .find(|line| line.starts_with(&format!("{family}{{")));
            assert!(
                series.is_some_and(|line| line.contains(r#"name="kept""#)),
                "{family}: {text}"
            );
        }
    }

    #[test]
    fn there_is_a_bucket_exactly_at_each_target() {
        let metrics = Metrics::new().unwrap();
        metrics.converged(&Name::new("a", "s"), Duration::from_mins(1));
        let text = metrics.render().unwrap();
        for bound in ["0.005", "1", "5", "30", "60", "300"] {
            assert!(
                text.contains(&format!(r#"le="{bound}""#)),
                "{bound}: {text}"
            );
        }
        assert!(text.contains(r#"le="60"} 1"#), "{text}");
        assert!(text.contains(r#"le="30"} 0"#), "{text}");
    }

    #[test]
    fn a_sample_holds_what_happened_since_the_one_before() {
        let metrics = Metrics::new().unwrap();
        let server = Name::new("agents", "docs");
        metrics.read_settled(&server, Trigger::Notification, Verdict::Accepted, None);
        metrics.read_settled(&server, Trigger::Notification, Verdict::Unchanged, None);
        metrics.read_settled(&server, Trigger::Poll, Verdict::AlreadySettled, None);
        metrics.notification(&server, "updated", "pulsed");
        metrics.notification(&server, "gap", "LAGGED");
        metrics.set_gauges(&gauges(&[], 3.0));
        let sample = metrics.take_sample();
        assert_eq!(
            sample.reads,
            BTreeMap::from([("Notification".to_owned(), 2)])
        );
        assert_eq!((sample.notifications, sample.versions), (1, 1));
        assert_eq!(sample.amplification(), Some(2.0));
        assert_eq!(sample.index_lag_seconds, Some(3.0));
        let next = metrics.take_sample();
        assert!(next.reads.is_empty());
        assert_eq!(next.index_lag_seconds, None);
    }

    #[test]
    fn a_lag_is_exported_only_while_this_replica_delivers() {
        let metrics = Metrics::new().unwrap();
        metrics.set_gauges(&gauges(&[], 3.0));
        assert!(
            metrics
                .render()
                .unwrap()
                .contains(r#"fencepost_outbox_lag_seconds{name="rag",namespace="agents"} 3"#)
        );
        metrics.set_gauges(&Gauges::default());
        assert!(
            !metrics
                .render()
                .unwrap()
                .contains("fencepost_outbox_lag_seconds{")
        );
    }

    fn gauges(servers: &[&str], lag: f64) -> Gauges {
        let resources = servers.iter().map(|server| StateGauge {
            namespace: "agents".to_owned(),
            server: (*server).to_owned(),
            state: "ACTIVE".to_owned(),
            count: 1,
        });
        let lag = LagGauge {
            namespace: "agents".to_owned(),
            index: "rag".to_owned(),
            seconds: lag,
        };
        Gauges {
            resources: resources.collect(),
            stale_resources: 0,
            outbox_lags: vec![lag],
        }
    }
}
