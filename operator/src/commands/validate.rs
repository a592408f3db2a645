//! `fencepost validate PATH...`: everything that is wrong with manifests, and the read load they will cause. Offline.
//!
//! In: paths. Out: a report, and whether there was an error. Nothing is kept and nothing is contacted.

use std::{
    fmt::Write as _,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use crate::{
    desired::{
        Desired, Problem, ProblemReason, Severity, desired,
        load::{LoadCause, ReadsPerHour, ServerLoad, server_loads},
    },
    manifest::{FieldPath, Finding, LoadOutcome, UidRegistry, load},
};

/// What `validate` ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Valid,
    Invalid,
    /// No path was given.
    Usage,
}

impl Verdict {
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Valid => 0,
            Self::Invalid => 1,
            Self::Usage => 2,
        }
    }
}

/// What is known of a set of manifests. `dev` shows the same findings.
#[derive(Debug)]
pub struct Report {
    pub errors: Vec<Finding>,
    pub warnings: Vec<Finding>,
    pub loads: Vec<ServerLoad>,
    pub objects: usize,
}

/// The command: the report goes to stdout.
pub fn run(paths: &[PathBuf]) -> ExitCode {
    match validate(paths, &mut io::stdout().lock()) {
        Ok(verdict) => ExitCode::from(verdict.exit_code()),
        // Who reads the output has closed it; there is nobody left to tell.
        Err(_) => ExitCode::FAILURE,
    }
}

/// Validates `paths` and writes the report to `out`.
pub fn validate(paths: &[PathBuf], out: &mut impl Write) -> io::Result<Verdict> {
    if paths.is_empty() {
        writeln!(
            out,
            "name the manifests to validate: fencepost validate PATH..."
        )?;
        return Ok(Verdict::Usage);
    }
    let outcome = load(paths, &mut UidRegistry::default());
    let report = report(&outcome, &desired(&outcome.objects));
    out.write_all(report.to_text().as_bytes())?;
    Ok(if report.errors.is_empty() {
        Verdict::Valid
    } else {
        Verdict::Invalid
    })
}

/// Puts together what loading and resolving found.
pub fn report(outcome: &LoadOutcome, desired: &Desired) -> Report {
    let mut errors = outcome.errors.clone();
    let mut warnings = Vec::new();
    for problem in desired
        .problems
        .iter()
        .filter(|problem| !is_consequence(outcome, problem))
    {
        let finding = located(outcome, problem);
        match problem.reason.severity() {
            Severity::Error => errors.push(finding),
            Severity::Warning => warnings.push(finding),
        }
    }
    errors.sort();
    warnings.sort();
    Report {
        errors,
        warnings,
        loads: server_loads(desired),
        objects: outcome.objects.len(),
    }
}

/// A reference to an object that has errors of its own, or that may stand in a text that could not be read: the one error is enough.
fn is_consequence(outcome: &LoadOutcome, problem: &Problem) -> bool {
    let missing = matches!(
        problem.reason,
        ProblemReason::ServerNotFound
            | ProblemReason::SubjectNotFound
            | ProblemReason::WatchNotFound
            | ProblemReason::SecretNotFound
            | ProblemReason::ReferenceNotGranted
    );
    missing
        && (outcome.unnamed
            || problem
                .refers_to
                .as_ref()
                .is_some_and(|id| outcome.broken_objects.contains(id)))
}

fn located(outcome: &LoadOutcome, problem: &Problem) -> Finding {
    let origin = outcome.objects.origin(&problem.object);
    Finding {
        file: origin.map(|origin| origin.file.clone()).unwrap_or_default(),
        line: origin.map(|origin| origin.line_of(&FieldPath::parse(&problem.field))),
        document: origin.map_or(0, |origin| origin.document),
        object: Some(problem.object.to_string()),
        field: Some(problem.field.clone()),
        message: problem.message.clone(),
        fix: problem.fix.clone(),
    }
}

impl Report {
    /// The report as people read it: errors, warnings, load, and one line that sums it up.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for finding in &self.errors {
            let _ = writeln!(text, "error: {finding}");
        }
        for finding in &self.warnings {
            let _ = writeln!(text, "warning: {finding}");
        }
        for load in &self.loads {
            if !text.is_empty() {
                text.push('\n');
            }
            write_load(&mut text, load);
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let (errors, warnings) = (self.errors.len(), self.warnings.len());
        let _ = writeln!(
            text,
            "{} read, {}, {}",
            counted(self.objects, "object"),
            counted(errors, "error"),
            counted(warnings, "warning")
        );
        text
    }
}

fn write_load(text: &mut String, load: &ServerLoad) {
    let _ = writeln!(
        text,
        "read load of MCPServer {}: {} in {}",
        load.server,
        counted(load.resources, "resource"),
        counted(load.sessions, "session")
    );
    let _ = writeln!(
        text,
        "  {:<7}{:>10}  {:<22}{:>16}",
        "cause", "resources", "interval", "reads an hour"
    );
    for line in &load.lines {
        let cause = match line.cause {
            LoadCause::Poll => "poll",
            LoadCause::Audit => "audit",
        };
        let interval = interval(line.interval, line.jitter_percent);
        let _ = writeln!(
            text,
            "  {cause:<7}{:>10}  {interval:<22}{:>16}",
            line.resources,
            range(line.reads)
        );
    }
    let _ = writeln!(
        text,
        "  {:<7}{:>10}  {:<22}{:>16}",
        "sum",
        load.resources,
        "",
        range(load.total)
    );
    if load.total_if_polled != load.total {
        let _ = writeln!(
            text,
            "  without subscriptions, all polled: {} reads an hour",
            range(load.total_if_polled)
        );
    }
    let _ = writeln!(
        text,
        "  at worst {} reads a second of {} allowed; one read of everything takes {}",
        number(load.peak_per_second),
        load.limit_per_second,
        seconds(load.full_read)
    );
    if load.is_above_limit() {
        let _ = writeln!(
            text,
            "  warning: the limit is too low for these intervals, bounds will not hold; raise spec.limits.requestsPerSecond or pollInterval"
        );
    } else if load.reads_too_slowly() {
        let _ = writeln!(
            text,
            "  warning: after a reconnect that is longer than the tightest maxStaleness ({}); raise spec.limits.requestsPerSecond",
            seconds(load.tightest_staleness)
        );
    }
}

/// The interval in force with its jitter: shortened, never lengthened.
fn interval(longest: Duration, jitter_percent: u8) -> String {
    if jitter_percent == 0 {
        return seconds(longest);
    }
    let shortest = longest.mul_f64(1.0 - f64::from(jitter_percent) / 100.0);
    format!(
        "{} to {} (-{jitter_percent}%)",
        seconds(shortest),
        seconds(longest)
    )
}

fn seconds(duration: Duration) -> String {
    format!("{}s", number(duration.as_secs_f64()))
}

fn range(reads: ReadsPerHour) -> String {
    let (low, high) = (number(reads.low), number(reads.high));
    if low == high {
        low
    } else {
        format!("{low} to {high}")
    }
}

/// Whole from ten on, else with what is needed to see it.
fn number(value: f64) -> String {
    let text = if value >= 10.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    };
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
