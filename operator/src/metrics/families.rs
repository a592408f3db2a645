//! The metric families: names, labels, buckets. Names are public and stay.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fencepost_store::CONVERGENCE_BOUNDS;
use prometheus::{
    GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry,
    core::{Collector, MetricVec, MetricVecBuilder},
    proto::MetricFamily,
};

use super::{Name, window::Window};

/// The labels of an object come first in every family that has them.
const OBJECT: [&str; 2] = ["namespace", "name"];

/// Exported as 0 from the start, so that the first violation is an increase an alert can see. The
/// first four are the database's own fences (`FP001` to `FP004`).
const INVARIANTS: [&str; 5] = [
    "counter_fell",
    "closed_generation_changed",
    "closed_generation_reopened",
    "receipt_changed",
    "constraint",
];

pub(super) struct Families {
    registry: Registry,
    pub convergence: HistogramVec,
    pub reads: IntCounterVec,
    pub reads_failed: IntCounterVec,
    pub notifications: IntCounterVec,
    pub versions: IntCounterVec,
    pub stale_receipts: IntCounterVec,
    pub violations: IntCounterVec,
    pub outbox_lag: GaugeVec,
    pub deliveries: IntCounterVec,
    pub resources: IntGaugeVec,
    pub sessions: IntGaugeVec,
    pub watch_errors: IntCounterVec,
    pub missing_permissions: IntGaugeVec,
    pub ledger_unwritable: IntGaugeVec,
    pub leader: IntGaugeVec,
    converged_ratio: GaugeVec,
    amplification: GaugeVec,
}

impl Families {
    pub fn register() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let add = Adder {
            registry: &registry,
        };
        let info = add.gauges(
            "fencepost_build_info",
            "1, labelled with the version that runs",
            &["version"],
            false,
        )?;
        info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        let families = Self {
            convergence: add.convergence()?,
            reads: add.counters("fencepost_reads_total", "Reads that have their receipt", &["trigger", "outcome"], true)?,
            reads_failed: add.counters(
                "fencepost_read_failures_total",
                "Reads that were refused or failed, by the reason of their receipt",
                &["reason"],
                true,
            )?,
            notifications: add.counters(
                "fencepost_notifications_total",
                "What came on the servers' streams and what was made of it",
                &["kind", "disposition"],
                true,
            )?,
            versions: add.counters("fencepost_versions_accepted_total", "Accepted versions", &[], true)?,
            stale_receipts: add.counters(
                "fencepost_stale_receipts_total",
                "Answers that came too late to change anything",
                &["reason"],
                true,
            )?,
            violations: add.counters(
                "fencepost_invariant_violations_total",
                "Writes refused because an invariant would have broken; must stay 0",
                &["invariant"],
                false,
            )?,
            outbox_lag: add.ratios("fencepost_outbox_lag_seconds", "Age of the oldest event that the index has not acknowledged")?,
            deliveries: add.counters(
                "fencepost_deliveries_total",
                "Tries to tell an index, by how they ended",
                &["outcome"],
                true,
            )?,
            resources: add.gauges("fencepost_resources", "Watched resources by state", &["state"], true)?,
            sessions: add.gauges("fencepost_sessions", "Open sessions by protocol era", &["era"], false)?,
            watch_errors: add.counters(
                "fencepost_kubernetes_watch_errors_total",
                "Lists and watches of the API server that failed",
                &["resource", "reason"],
                false,
            )?,
            missing_permissions: add.gauges(
                "fencepost_missing_permissions",
                "Namespaces in which this ServiceAccount lacks the verb on the resource",
                &["verb", "resource"],
                false,
            )?,
            ledger_unwritable: add.gauges(
                "fencepost_ledger_unwritable",
                "1 while Postgres answers this replica and refuses its writes, with the reason; absent otherwise",
                &["reason"],
                false,
            )?,
            leader: add.gauges("fencepost_leader", "1 on the replica that reconciles; absent on the others", &[], false)?,
            converged_ratio: add.ratios(
                "fencepost_converged_ratio",
                "Share of the convergences of the last 15 minutes that took at most 60 s",
            )?,
            amplification: add.ratios(
                "fencepost_read_amplification_ratio",
                "Reads that notifications caused per version they brought, over the last 15 minutes",
            )?,
            registry: registry.clone(),
        };
        for invariant in INVARIANTS {
            families.violations.with_label_values(&[invariant]).reset();
        }
        for era in ["legacy", "modern"] {
            families.sessions.with_label_values(&[era]).set(0);
        }
        Ok(families)
    }

    /// Ratios exist only where there was something to divide by.
    pub fn set_ratios(&self, windows: &BTreeMap<Name, Window>, minute: u64) {
        self.converged_ratio.reset();
        self.amplification.reset();
        for (name, window) in windows {
            if let Some(ratio) = window.converged_ratio(minute) {
                self.converged_ratio
                    .with_label_values(&name.labels())
                    .set(ratio);
            }
            if let Some(ratio) = window.amplification(minute) {
                self.amplification
                    .with_label_values(&name.labels())
                    .set(ratio);
            }
        }
    }

    /// Drops every series of an object that is not among the given.
    pub fn retain(&self, servers: Option<&BTreeSet<Name>>, indexes: Option<&BTreeSet<Name>>) {
        if let Some(servers) = servers {
            retain(&self.convergence, servers);
            retain(&self.reads, servers);
            retain(&self.reads_failed, servers);
            retain(&self.notifications, servers);
            retain(&self.versions, servers);
            retain(&self.stale_receipts, servers);
            retain(&self.resources, servers);
            retain(&self.converged_ratio, servers);
            retain(&self.amplification, servers);
        }
        if let Some(indexes) = indexes {
            retain(&self.outbox_lag, indexes);
            retain(&self.deliveries, indexes);
        }
    }

    pub fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }
}

fn retain<T: MetricVecBuilder>(family: &MetricVec<T>, names: &BTreeSet<Name>) {
    for collected in family.collect() {
        for metric in collected.get_metric() {
            let labels: HashMap<&str, &str> = metric
                .get_label()
                .iter()
                .map(|label| (label.name(), label.value()))
                .collect();
            let [namespace, name] =
                OBJECT.map(|label| labels.get(label).copied().unwrap_or_default());
            if !names.contains(&Name::new(namespace, name)) {
                // Gone already is as good.
                let _ = family.remove(&labels);
            }
        }
    }
}

/// Makes families and registers them.
struct Adder<'a> {
    registry: &'a Registry,
}

impl Adder<'_> {
    fn counters(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        object: bool,
    ) -> Result<IntCounterVec, prometheus::Error> {
        self.registered(IntCounterVec::new(
            Opts::new(name, help),
            &labelled(labels, object),
        )?)
    }

    fn gauges(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        object: bool,
    ) -> Result<IntGaugeVec, prometheus::Error> {
        self.registered(IntGaugeVec::new(
            Opts::new(name, help),
            &labelled(labels, object),
        )?)
    }

    /// A number with a fraction for each object.
    fn ratios(&self, name: &str, help: &str) -> Result<GaugeVec, prometheus::Error> {
        self.registered(GaugeVec::new(Opts::new(name, help), &OBJECT)?)
    }

    fn convergence(&self) -> Result<HistogramVec, prometheus::Error> {
        let options = HistogramOpts::new(
            "fencepost_convergence_seconds",
            "From a resource's first unanswered invalidation or due time to the receipt of a read issued after it",
        )
        .buckets(CONVERGENCE_BOUNDS.to_vec());
        self.registered(HistogramVec::new(options, &OBJECT)?)
    }

    fn registered<C: Collector + Clone + 'static>(
        &self,
        family: C,
    ) -> Result<C, prometheus::Error> {
        self.registry.register(Box::new(family.clone()))?;
        Ok(family)
    }
}

fn labelled<'a>(labels: &[&'a str], object: bool) -> Vec<&'a str> {
    let mut all = if object { OBJECT.to_vec() } else { Vec::new() };
    all.extend(labels);
    all
}
