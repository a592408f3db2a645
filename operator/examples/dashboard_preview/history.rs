//! One resource's made-up history: reads that overlap, a late one, a gap, a failure, audits in between.

use chrono::{DateTime, TimeDelta, Utc};
use fencepost_views::{Mark, Receipt};

/// Seconds before the window's end, milliseconds it took, outcome, trigger, reason.
type Read = (f64, i64, &'static str, &'static str, Option<&'static str>);

/// Oldest first. The pair of ordinals 6 and 7 of the pattern is the one the design is about: 7 lands first.
const READS: [Read; 19] = [
    (820.0, 400, "unchanged", "Audit", None),
    (742.0, 14_000, "accepted", "Notification", None),
    (690.0, 300, "unchanged", "Audit", None),
    (641.0, 22_000, "failed", "Audit", Some("TIMEOUT")),
    (612.0, 9_000, "unchanged", "Audit", None),
    (
        560.0,
        30_000,
        "stale",
        "Notification",
        Some("STALE_AFTER_CLOSE"),
    ),
    (
        498.0,
        62_000,
        "stale",
        "Notification",
        Some("STALE_ORDINAL"),
    ),
    (484.0, 16_000, "accepted", "Notification", None),
    (408.0, 12_000, "unchanged", "Audit", None),
    (366.0, 8_000, "accepted", "Notification", None),
    (322.0, 15_000, "refused", "Audit", Some("INPUT_REQUIRED")),
    (284.0, 10_000, "unchanged", "Poll", None),
    (240.0, 36_000, "unchanged", "Gap", None),
    (
        231.0,
        19_000,
        "not_found",
        "Notification",
        Some("NOT_FOUND"),
    ),
    (188.0, 9_000, "accepted", "TombstoneCheck", None),
    (140.0, 1_200, "unchanged", "Audit", None),
    (96.0, 21_000, "accepted", "Notification", None),
    (41.0, 11_000, "unchanged", "Audit", None),
    (9.0, 0, "", "Notification", None),
];

/// Ordinal before the first read of the pattern.
pub const BEFORE: i64 = 180;

fn before(end: DateTime<Utc>, seconds: f64) -> DateTime<Utc> {
    #[allow(clippy::cast_possible_truncation, reason = "minutes in milliseconds")]
    let milliseconds = (seconds * 1_000.0) as i64;
    end - TimeDelta::milliseconds(milliseconds)
}

/// The reads of the last quarter of an hour, oldest first.
pub fn reads(end: DateTime<Utc>) -> Vec<Receipt> {
    READS
        .iter()
        .zip(1_i64..)
        .map(|(&(seconds, took, outcome, trigger, reason), place)| {
            let issued_at = before(end, seconds);
            let answered = !outcome.is_empty();
            Receipt {
                request_id: format!("01938f2c-7d10-7aa4-9c51-0000000{:05}", BEFORE + place),
                generation: if seconds > 560.0 { 2 } else { 3 },
                ordinal: BEFORE + place,
                trigger: trigger.into(),
                issued_at,
                finished_at: answered.then(|| issued_at + TimeDelta::milliseconds(took)),
                outcome: answered.then(|| outcome.to_owned()),
                reason: reason.map(str::to_owned),
                detail: (outcome == "failed")
                    .then(|| "no answer within 10 s: the connection was reset by peer".into()),
                digest: matches!(outcome, "accepted" | "unchanged").then(|| digest(place)),
            }
        })
        .collect()
}

pub fn digest(seed: i64) -> String {
    format!(
        "sha256:{:064x}",
        u128::from(seed.unsigned_abs()).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    )
}

pub fn marks(end: DateTime<Utc>) -> Vec<Mark> {
    let mark = |seconds: f64, kind: &str, generation, detail: Option<&str>| Mark {
        at: before(end, seconds),
        kind: kind.into(),
        generation,
        detail: detail.map(str::to_owned),
    };
    vec![
        mark(744.0, "notification", 2, None),
        mark(562.0, "notification", 2, None),
        mark(545.0, "closed", 2, Some("the session ended")),
        mark(
            545.0,
            "gap",
            2,
            Some("the listen stream ended without a word"),
        ),
        mark(512.0, "opened", 3, None),
        mark(499.0, "notification", 3, None),
        mark(485.0, "notification", 3, None),
        mark(367.0, "notification", 3, None),
        mark(242.0, "gap", 3, Some("the buffer lagged by 41 events")),
        mark(233.0, "notification", 3, None),
        mark(97.0, "notification", 3, None),
        mark(10.0, "notification", 3, None),
    ]
}
