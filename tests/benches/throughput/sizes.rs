//! How much is measured.

use std::fmt;

/// Reads at once, in every measurement: the manifest's `maxInFlight`, and the tasks of the other two.
pub const IN_FLIGHT: usize = 256;

/// What every resource says, but for its round.
pub const TEXT: &str = "some text of a usual length, to be read, digested and stored";

#[derive(Clone, Copy)]
pub struct Sizes {
    pub sessions: usize,
    /// Of each session.
    pub resources: usize,
    /// In each of them every resource changes once.
    pub rounds: usize,
    /// For the memory.
    pub watched: usize,
}

impl Sizes {
    pub fn from_env() -> Self {
        Self {
            sessions: from_env("BENCH_SESSIONS", 40),
            resources: from_env("BENCH_RESOURCES", 30),
            rounds: from_env("BENCH_ROUNDS", 20),
            watched: from_env("BENCH_WATCHED", 10_000),
        }
    }

    pub fn all(self) -> usize {
        self.sessions * self.resources
    }

    pub fn versions(self) -> usize {
        self.all() * self.rounds
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        write!(
            f,
            "{} sessions of {} resources, {} rounds, {IN_FLIGHT} reads in flight, {cores} cores",
            self.sessions, self.resources, self.rounds
        )
    }
}

fn from_env(name: &str, default: usize) -> usize {
    let Ok(value) = std::env::var(name) else {
        return default;
    };
    match value.parse() {
        Ok(size) if size > 0 => size,
        _ => panic!("{name}={value} is no size; give a number above 0"),
    }
}
