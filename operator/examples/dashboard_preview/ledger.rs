//! A made-up ledger in four moods. Deterministic but for the time of day.

use chrono::{DateTime, TimeDelta, Utc};
use fencepost_dashboard::source::{Answer, Source};
use fencepost_views::{
    Attention, Change, Condition, ContentText, Index, NameRef, ObjectRef, Objective,
    ObjectiveState, Overview, Page, Problem, ReadRate, Receipt, Resource, ResourceDetail,
    ResourceFilter, Sample, Series, SeriesPoint, Server, ServerRow, SessionView, StateCount,
    Supersede, Timeline, Version, Watch,
};

use crate::history;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Busy,
    Quiet,
    Broken,
    Empty,
}

impl Mood {
    pub fn parse(word: &str) -> anyhow::Result<Self> {
        Ok(match word {
            "busy" => Self::Busy,
            "quiet" => Self::Quiet,
            "broken" => Self::Broken,
            "empty" => Self::Empty,
            other => anyhow::bail!("no mood {other:?}: busy, quiet, broken or empty"),
        })
    }
}

/// URIs of the first page; the fourth tries to be markup.
const URIS: [&str; 14] = [
    "config://service/limits",
    "docs:///runbooks/payments/duplicate-charge.md",
    "docs:///sprints/2026-48/board.json",
    "docs:///\"><img src=x onerror=alert(1)><script>alert(2)</script>.md",
    "config://service/feature-flags",
    "docs:///teams/platform/on-call/escalation-policy-for-the-payments-and-ledger-services-in-europe.md",
    "k8s://clusters/eu-west-1/namespaces/agents/quotas",
    "docs:///runbooks/search/reindex.md",
    "tickets://boards/support/open?priority=high",
    "docs:///teams/ops/handover.md",
    "config://gateway/routes",
    "docs:///policies/refunds.md",
    "docs:///%C3%BCbersicht/n%C3%A4chste-schritte.md",
    "config://service/regions",
];

/// How many resources the list pretends to have.
const MANY: usize = 12_480;
const PAGE: usize = 50;

pub struct Ledger {
    mood: Mood,
    started: DateTime<Utc>,
}

impl Ledger {
    pub fn new(mood: Mood) -> Self {
        Self {
            mood,
            started: Utc::now(),
        }
    }

    fn broken(&self) -> bool {
        self.mood == Mood::Broken
    }

    fn row(&self, place: usize, now: DateTime<Utc>) -> Resource {
        let age = i64::try_from(place * 7 % 53).unwrap_or_default();
        let (state, reason) = match (self.broken(), place % 14) {
            (true, 1 | 8) => ("ACTIVE", Some("SESSION_LOST")),
            (true, 4) => ("RECONCILIATION_REQUIRED", Some("URI_AMBIGUOUS")),
            (true, 6) => ("UNSUBSCRIBE_UNKNOWN", Some("NO_ACKNOWLEDGEMENT")),
            (_, 9) => ("TOMBSTONED", Some("NOT_FOUND")),
            (true, 10) => ("TOMBSTONE_PENDING", Some("NOT_FOUND")),
            (_, 11) => ("CLOSED", Some("MANIFEST_DELETED")),
            (_, 13) => ("SUBSCRIBING", None),
            _ => ("ACTIVE", None),
        };
        let stale = reason == Some("SESSION_LOST");
        let confirmed = now - TimeDelta::seconds(if stale { 340 + age } else { age });
        let unread = state == "SUBSCRIBING";
        let uri = URIS.get(place).map_or_else(
            || format!("docs:///archive/{:05}/minutes.md", place),
            |uri| (*uri).to_owned(),
        );
        let server = if place % 3 == 1 {
            "handbook"
        } else {
            "config-service"
        };
        let ordinal = i64::try_from(place % 40 + 3).unwrap_or_default();
        Resource {
            id: if place == 0 {
                "limits".into()
            } else {
                format!("r{place}")
            },
            uri,
            server: object(server),
            subject: object("support-agents"),
            watches: vec![NameRef {
                namespace: "agents".into(),
                name: "service-limits".into(),
            }],
            state: state.into(),
            refresh: if place % 5 == 0 {
                "READ_PENDING"
            } else {
                "IDLE"
            }
            .into(),
            mode: if place % 4 == 3 { "Poll" } else { "Subscribe" }.into(),
            cohort: true,
            generation: 1 + ordinal % 3,
            issued_ordinal: if unread {
                1
            } else {
                ordinal + i64::from(place % 5 == 0)
            },
            ordinal: if unread { 0 } else { ordinal },
            digest: (!unread).then(|| history::digest(ordinal)),
            mime_type: (!unread).then(|| {
                if place % 2 == 0 {
                    "application/json"
                } else {
                    "text/markdown"
                }
                .into()
            }),
            size: (!unread).then_some(312 + ordinal * 97),
            accepted_at: (!unread).then(|| now - TimeDelta::minutes(40 + age)),
            confirmed_at: (!unread).then_some(confirmed),
            stale_after: (!unread).then(|| confirmed + TimeDelta::seconds(60)),
            stale,
            reason: reason.map(str::to_owned),
        }
    }

    fn detail(&self, id: &str) -> Result<ResourceDetail, Problem> {
        let now = Utc::now();
        let place = if id == "limits" {
            Some(0)
        } else {
            id.strip_prefix('r').and_then(|place| place.parse().ok())
        };
        let place = place.filter(|place| *place < MANY && self.mood != Mood::Empty).ok_or_else(|| Problem {
            kind: "/problems/not-found".into(),
            title: "There is no such resource".into(),
            status: 404,
            detail: "Nothing is known under this id. Look it up by its URI on the page of all resources.".into(),
            object: Some(id.to_owned()),
            field: None,
        })?;
        let mut resource = self.row(place, now);
        if place == 0 {
            let reads = history::reads(self.end());
            let last = reads
                .iter()
                .rev()
                .find(|read| read.outcome.as_deref() == Some("unchanged"));
            let confirmed = last.and_then(|read| read.finished_at);
            resource.generation = 3;
            resource.issued_ordinal = reads.last().map_or(0, |read| read.ordinal);
            resource.ordinal = last.map_or(0, |read| read.ordinal);
            resource.confirmed_at = confirmed;
            resource.stale_after = confirmed.map(|at| at + TimeDelta::seconds(60));
            resource.refresh = "READ_PENDING".into();
        }
        Ok(ResourceDetail {
            max_staleness_seconds: 60.0,
            read_interval_seconds: 45.0,
            stores_content: true,
            close_ordinal: None,
            session_generation: Some(7),
            conditions: if self.broken() {
                vec![condition(
                    "DeliveryUnproven",
                    "NOTIFICATIONS_MISSED",
                    "Audit reads found 3 changes that no notification had announced. The resource is read every 45 s until one is.",
                    now,
                )]
            } else {
                Vec::new()
            },
            resource,
        })
    }

    /// Where the made-up history ends: a quarter of a minute stands still, so that a page can be looked at.
    fn end(&self) -> DateTime<Utc> {
        let now = Utc::now();
        now - TimeDelta::milliseconds((now - self.started).num_milliseconds() % 15_000)
    }

    fn samples(&self, range: u32) -> Series {
        let to = Utc::now();
        let from = to - TimeDelta::seconds(i64::from(range));
        let count = 120;
        let step = f64::from(range) / f64::from(count);
        let samples = (0..=count)
            .map(|place| {
                let x = f64::from(place);
                let wave = (x / 9.0).sin() + (x / 23.0).cos();
                let storm = if (70..78).contains(&place) { 34.0 } else { 0.0 };
                let away = self.broken() && place > 92;
                let calm = self.mood == Mood::Quiet;
                let factor = if calm { 0.05 } else { 1.0 };
                let rate = |trigger: &str, per_second: f64| ReadRate {
                    trigger: trigger.into(),
                    per_second: (per_second * factor).max(0.0),
                };
                Sample {
                    at: from + TimeDelta::milliseconds((x * step * 1_000.0) as i64),
                    seconds: step,
                    reads: vec![
                        rate("Notification", 9.0 + 4.0 * wave + storm),
                        rate("Poll", 6.0 + wave),
                        rate("Audit", 3.0 + 0.6 * wave),
                        rate(
                            "Gap",
                            if away {
                                7.0
                            } else if place == 40 {
                                12.0
                            } else {
                                0.0
                            },
                        ),
                        rate("Baseline", if place < 6 { 5.0 } else { 0.0 }),
                    ],
                    convergence_p50_seconds: (!(30..34).contains(&place))
                        .then_some(0.12 + 0.03 * wave.abs()),
                    convergence_p99_seconds: (!(30..34).contains(&place)).then_some(if away {
                        84.0 + x
                    } else {
                        1.1 + 0.5 * wave.abs() + storm / 9.0
                    }),
                    amplification: Some(1.02 + 0.02 * wave.abs() + if away { 0.31 } else { 0.0 }),
                    index_lag_seconds: Some(if away {
                        (x - 92.0) * step * 0.9
                    } else {
                        0.2 + 0.1 * wave.abs()
                    }),
                    stale_resources: Some(if away { 214 } else { 0 }),
                    notifications_per_second: 11.0 + wave,
                    versions_per_second: 8.0 + wave,
                }
            })
            .collect();
        Series {
            from,
            to,
            step_seconds: step,
            samples,
        }
    }

    fn objectives(&self, series: &Series) -> Vec<Objective> {
        let points = |value: fn(&Sample) -> Option<f64>| -> Vec<SeriesPoint> {
            series
                .samples
                .iter()
                .filter_map(|sample| {
                    value(sample).map(|value| SeriesPoint {
                        at: sample.at,
                        value,
                    })
                })
                .collect()
        };
        let broken = self.broken();
        let objective = |name: &str,
                         title: &str,
                         unit: &str,
                         value: f64,
                         target: f64,
                         at_least: bool,
                         points: Vec<SeriesPoint>| Objective {
            name: name.into(),
            title: title.into(),
            unit: unit.into(),
            value: Some(value),
            target,
            at_least,
            state: if (value >= target) == at_least || (value - target).abs() < f64::EPSILON {
                ObjectiveState::Holds
            } else {
                ObjectiveState::Violated
            },
            budget_left: Some(if broken && at_least { 0.0 } else { 0.83 }),
            burn_rate: Some(if broken && at_least { 14.2 } else { 0.21 }),
            observations: 184_220,
            points,
        };
        let mut index_lag = objective(
            "index_lag",
            "Indexes confirm within a minute",
            "seconds",
            if broken { 512.0 } else { 0.24 },
            60.0,
            false,
            points(|sample| sample.index_lag_seconds),
        );
        if self.mood == Mood::Quiet {
            index_lag = Objective {
                value: None,
                state: ObjectiveState::NoData,
                budget_left: None,
                burn_rate: None,
                observations: 0,
                points: Vec::new(),
                ..index_lag
            };
        }
        vec![
            objective(
                "fence_violations",
                "No fence is ever crossed",
                "count",
                0.0,
                0.0,
                false,
                points(|_| Some(0.0)),
            ),
            objective(
                "converged_60s",
                "Converged within 60 s",
                "ratio",
                if broken { 0.983 } else { 0.999_93 },
                0.999,
                true,
                points(|sample| {
                    Some(if sample.convergence_p99_seconds? > 60.0 {
                        0.982
                    } else {
                        0.999_9
                    })
                }),
            ),
            objective(
                "read_amplification",
                "Reads per change",
                "reads per version",
                1.04,
                1.2,
                false,
                points(|sample| sample.amplification),
            ),
            index_lag,
        ]
    }

    fn version_list(&self) -> Vec<Version> {
        let accepted = history::reads(self.end())
            .into_iter()
            .filter(|read| read.outcome.as_deref() == Some("accepted"));
        let mut versions: Vec<Version> = accepted
            .map(|read| Version {
                generation: read.generation,
                ordinal: read.ordinal,
                digest: read.digest.unwrap_or_default(),
                previous_digest: Some(history::digest(read.ordinal - 1)),
                mime_type: Some("application/json".into()),
                size: 298 + read.ordinal % 9,
                accepted_at: read.finished_at.unwrap_or(read.issued_at),
                trigger: read.trigger,
                server_version: "config-service/1.4.2".into(),
                subject: "support-agents".into(),
                content_kept: read.ordinal > history::BEFORE + 4,
            })
            .collect();
        versions.reverse();
        versions
    }
}

fn object(name: &str) -> ObjectRef {
    ObjectRef {
        namespace: "agents".into(),
        name: name.into(),
        uid: format!("0d4b6f3e-{:04x}", name.len() * 977),
    }
}

fn condition(kind: &str, reason: &str, message: &str, now: DateTime<Utc>) -> Condition {
    Condition {
        kind: kind.into(),
        reason: reason.into(),
        message: message.into(),
        since: now - TimeDelta::minutes(12),
    }
}

fn counts(pairs: &[(&str, i64)]) -> Vec<StateCount> {
    pairs
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| StateCount {
            state: (*state).into(),
            count: *count,
        })
        .collect()
}

fn now<'a, T: Send + 'a>(answer: Result<T, Problem>) -> Answer<'a, T> {
    Box::pin(std::future::ready(answer))
}

impl Source for Ledger {
    fn overview(&self, range_seconds: u32) -> Answer<'_, Overview> {
        let (at, broken) = (Utc::now(), self.broken());
        let series = self.samples(range_seconds);
        let group =
            |kind: &str, title: &str, count: i64, minutes: i64, link: &str, examples: &[&str]| {
                Attention {
                    kind: kind.into(),
                    title: title.into(),
                    count,
                    since: at - TimeDelta::minutes(minutes),
                    link: link.into(),
                    examples: examples
                        .iter()
                        .map(|example| (*example).to_owned())
                        .collect(),
                }
            };
        let attention = if broken {
            vec![
                group(
                    "servers_away",
                    "Servers away",
                    1,
                    12,
                    "/servers",
                    &["agents/handbook"],
                ),
                group(
                    "resources_stale",
                    "Resources past their promised freshness",
                    214,
                    11,
                    "/resources?stale=true",
                    &[
                        "docs:///runbooks/payments/duplicate-charge.md",
                        "tickets://boards/support/open?priority=high",
                    ],
                ),
                group(
                    "indexes_behind",
                    "Indexes behind",
                    1,
                    9,
                    "/indexes",
                    &["agents/rag"],
                ),
                group(
                    "delivery_unproven",
                    "Changes that no notification announced",
                    3,
                    74,
                    "/resources?server=agents%2Fconfig-service",
                    &["config://service/limits"],
                ),
            ]
        } else {
            Vec::new()
        };
        now(Ok(Overview {
            at,
            range_seconds: f64::from(range_seconds),
            objectives: self.objectives(&series),
            calm_since: attention
                .is_empty()
                .then(|| self.started - TimeDelta::hours(31)),
            attention,
            servers: vec![
                ServerRow {
                    namespace: "agents".into(),
                    name: "config-service".into(),
                    ready: true,
                    era: Some("modern".into()),
                    sessions: 4,
                    resources: counts(&[
                        ("ACTIVE", 8_214),
                        ("SUBSCRIBING", 12),
                        ("TOMBSTONED", 31),
                    ]),
                    stale: 0,
                    reason: None,
                },
                ServerRow {
                    namespace: "agents".into(),
                    name: "handbook".into(),
                    ready: !broken,
                    era: Some("legacy".into()),
                    sessions: if broken { 0 } else { 2 },
                    resources: counts(&[("ACTIVE", 4_102), ("CLOSED", 121)]),
                    stale: if broken { 214 } else { 0 },
                    reason: broken.then(|| "CONNECTION_REFUSED".into()),
                },
                ServerRow {
                    namespace: "search".into(),
                    name: "tickets".into(),
                    ready: true,
                    era: Some("modern".into()),
                    sessions: 1,
                    resources: Vec::new(),
                    stale: 0,
                    reason: None,
                },
            ],
            resources: counts(&[
                ("ACTIVE", 12_316),
                ("SUBSCRIBING", 12),
                ("TOMBSTONED", 31),
                ("CLOSED", 121),
            ]),
            stale: if broken { 214 } else { 0 },
            empty: self.mood == Mood::Empty,
        }))
    }

    fn series(&self, range_seconds: u32) -> Answer<'_, Series> {
        now(Ok(self.samples(range_seconds)))
    }

    fn resources(&self, filter: ResourceFilter) -> Answer<'_, Page<Resource>> {
        let at = Utc::now();
        let many = if self.mood == Mood::Empty { 0 } else { MANY };
        let first = filter
            .after
            .as_deref()
            .and_then(|after| after.parse().ok())
            .unwrap_or(0);
        let wanted = |resource: &Resource| {
            filter
                .state
                .as_ref()
                .is_none_or(|state| resource.state == *state)
                && filter.stale.is_none_or(|stale| resource.stale == stale)
                && filter
                    .q
                    .as_ref()
                    .is_none_or(|q| resource.uri.to_lowercase().contains(&q.to_lowercase()))
                && filter.server.as_ref().is_none_or(|server| {
                    *server == format!("{}/{}", resource.server.namespace, resource.server.name)
                })
        };
        let mut items = Vec::new();
        let mut next = None;
        for place in first..many {
            let resource = self.row(place, at);
            if wanted(&resource) {
                if items.len() == PAGE {
                    next = Some(place.to_string());
                    break;
                }
                items.push(resource);
            }
        }
        now(Ok(Page { items, next }))
    }

    fn resource(&self, id: String) -> Answer<'_, ResourceDetail> {
        now(self.detail(&id))
    }

    fn versions(&self, id: String, _after: Option<String>) -> Answer<'_, Page<Version>> {
        now(self.detail(&id).map(|_| Page {
            items: self.version_list(),
            next: None,
        }))
    }

    fn receipts(&self, id: String, after: Option<String>) -> Answer<'_, Page<Receipt>> {
        let next = after.is_none().then(|| "older".to_owned());
        now(self.detail(&id).map(|_| {
            let mut items = history::reads(self.end());
            items.reverse();
            Page { items, next }
        }))
    }

    fn timeline(&self, id: String, range_seconds: u32) -> Answer<'_, Timeline> {
        now(self.detail(&id).map(|_| {
            let to = Utc::now();
            let from = to - TimeDelta::seconds(i64::from(range_seconds));
            let reads: Vec<_> = history::reads(self.end())
                .into_iter()
                .filter(|read| read.finished_at.is_none_or(|at| at >= from))
                .collect();
            let watermark_before = reads
                .first()
                .map_or(history::BEFORE, |read| read.ordinal - 1);
            let marks = history::marks(self.end())
                .into_iter()
                .filter(|mark| mark.at >= from)
                .collect();
            Timeline {
                from,
                to,
                reads,
                marks,
                watermark_before,
                truncated: false,
            }
        }))
    }

    fn version_text(&self, id: String, ordinal: i64) -> Answer<'_, ContentText> {
        now(self.detail(&id).map(|_| {
            let markup = "<script>alert('content')</script>";
            let text = format!(
                r#"{{"service":"checkout","max_batch":{},"regions":["eu-west-1","eu-north-1"],"retry":{{"most":{},"backoff_ms":250}},"note":"{markup}","owner":"payments","limits":{{"per_second":{},"burst":900}}}}"#,
                550 - ordinal % 10 * 50,
                3 + ordinal % 3,
                100 + ordinal % 7 * 20,
            );
            ContentText { ordinal, digest: history::digest(ordinal), mime_type: Some("application/json".into()), size: i64::try_from(text.len()).unwrap_or_default(), text: Some(text), truncated: false }
        }))
    }

    fn supersede(&self, _id: String, from: i64, to: i64) -> Answer<'_, Option<Supersede>> {
        let value = |ordinal: i64| 550 - ordinal % 10 * 50;
        now(Ok(Some(Supersede {
            text: format!(
                "config://service/limits has changed: /max_batch was {} and is {} since 22:41:07 UTC. Plans made on the old value need another look.",
                value(from),
                value(to)
            ),
            changes: vec![Change {
                path: "/max_batch".into(),
                old: Some(value(from).into()),
                new: Some(value(to).into()),
            }],
        })))
    }

    fn servers(&self) -> Answer<'_, Page<Server>> {
        if self.mood == Mood::Empty {
            return now(Ok(Page {
                items: Vec::new(),
                next: None,
            }));
        }
        let (at, broken) = (Utc::now(), self.broken());
        let session = |generation: i64, closed: bool| SessionView {
            subject: "support-agents".into(),
            session_generation: generation,
            era: Some("modern".into()),
            opened_at: at - TimeDelta::minutes(90 - generation * 9),
            closed_at: closed.then(|| at - TimeDelta::minutes(12)),
            close_reason: closed.then(|| "STREAM_ENDED".into()),
            receipt_digest: Some(history::digest(generation)),
        };
        let server = |name: &str, ready: bool, era: &str, subscribe: bool| Server {
            namespace: "agents".into(),
            name: name.into(),
            uid: object(name).uid,
            address: format!("http://{name}.agents.svc:8080/mcp"),
            protocol: "Auto".into(),
            era: Some(era.into()),
            protocol_version: Some(
                if era == "modern" {
                    "2026-03-26"
                } else {
                    "2025-06-18"
                }
                .into(),
            ),
            server_name: Some(name.into()),
            server_version: Some("1.4.2".into()),
            capabilities: Some(
                serde_json::json!({"resources": {"subscribe": subscribe, "listChanged": true}}),
            ),
            subscribe: Some(subscribe),
            ready,
            conditions: if ready {
                Vec::new()
            } else {
                vec![condition(
                    "ServerUnavailable",
                    "CONNECTION_REFUSED",
                    "Nothing listens at http://handbook.agents.svc:8080/mcp. Next try in 40 s; its 214 resources keep their last values and are marked stale.",
                    at,
                )]
            },
            sessions: vec![session(7, !ready), session(6, true)],
            resources: counts(&[("ACTIVE", 8_214), ("SUBSCRIBING", 12)]),
            reads_per_hour: 18_240.0,
        };
        now(Ok(Page {
            items: vec![
                server("config-service", true, "modern", true),
                server("handbook", !broken, "legacy", false),
            ],
            next: None,
        }))
    }

    fn watches(&self) -> Answer<'_, Page<Watch>> {
        now(Ok(Page {
            items: Vec::new(),
            next: None,
        }))
    }

    fn indexes(&self) -> Answer<'_, Page<Index>> {
        if self.mood == Mood::Empty {
            return now(Ok(Page {
                items: Vec::new(),
                next: None,
            }));
        }
        let (at, broken) = (Utc::now(), self.broken());
        let index = |name: &str, failing: bool| Index {
            namespace: "agents".into(),
            name: name.into(),
            uid: object(name).uid,
            url: format!("https://{name}.agents.svc/hooks/mcp"),
            delivered_position: if failing { 48_190 } else { 48_211 },
            acknowledged_position: if failing { 48_120 } else { 48_211 },
            head_position: 48_211,
            lag_seconds: if failing { 512.0 } else { 0.0 },
            pending: if failing { 91 } else { 0 },
            attempts: if failing { 14 } else { 0 },
            last_error: failing.then(|| {
                "the receiver answered 503 Service Unavailable: index is rebuilding".into()
            }),
            retry_at: failing.then(|| at + TimeDelta::seconds(48)),
            last_acknowledged_at: Some(at - TimeDelta::seconds(if failing { 512 } else { 4 })),
            conditions: Vec::new(),
        };
        now(Ok(Page {
            items: vec![index("rag", broken), index("edge-cache", false)],
            next: None,
        }))
    }
}
