//! CPU time by process, out of `/proc`: where the whole path spends what the machine has.

use std::{fmt, fs, time::Duration};

use sqlx::PgPool;

/// Ticks a second in `/proc/*/stat`; Linux shows user space 100 whatever the kernel's own clock.
const TICKS: f64 = 100.0;

pub struct Meter {
    fencepost: u32,
    postmaster: u32,
    before: [f64; 3],
}

/// Milliseconds of CPU per version, and how much of the machine was busy with it.
pub struct Spent {
    a_version: [f64; 3],
    busy_cores: f64,
}

impl Meter {
    pub async fn start(fencepost: u32, pool: &PgPool) -> Self {
        let backend: i32 = sqlx::query_scalar("select pg_backend_pid()")
            .fetch_one(pool)
            .await
            .unwrap();
        let postmaster = stat(&backend.to_string()).unwrap().parent;
        let mut meter = Self {
            fencepost,
            postmaster,
            before: [0.0; 3],
        };
        meter.before = meter.seconds();
        meter
    }

    pub fn stop(self, took: Duration, versions: usize) -> Spent {
        let now = self.seconds();
        let spent: [f64; 3] = std::array::from_fn(|n| now[n] - self.before[n]);
        Spent {
            a_version: spent.map(|seconds| 1000.0 * seconds / versions as f64),
            busy_cores: spent.iter().sum::<f64>() / took.as_secs_f64(),
        }
    }

    /// Of Fencepost; of Postgres with all of its processes, those that ended too; of this one, which is the MCP server.
    fn seconds(&self) -> [f64; 3] {
        let own = |pid: &str| stat(pid).map_or(0.0, |stat| stat.own);
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let backends: f64 = pids
            .filter_map(|entry| stat(entry.file_name().to_str()?))
            .filter(|stat| stat.parent == self.postmaster)
            .map(|stat| stat.own)
            .sum();
        let postmaster = stat(&self.postmaster.to_string()).unwrap();
        [
            own(&self.fencepost.to_string()),
            backends + postmaster.own + postmaster.children,
            own("self"),
        ]
    }
}

struct Stat {
    parent: u32,
    own: f64,
    /// Of children that ended and were waited for.
    children: f64,
}

/// `None` for what is no process, or none any more.
fn stat(pid: &str) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command before the last parenthesis may hold anything; what follows begins with field 3 of proc(5).
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        own: (ticks(14)? + ticks(15)?) / TICKS,
        children: (ticks(16)? + ticks(17)?) / TICKS,
    })
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [fencepost, postgres, server] = self.a_version;
        write!(
            f,
            "Fencepost {fencepost:.3}, Postgres {postgres:.3}, MCP server {server:.3} ms a version; {:.2} cores busy",
            self.busy_cores
        )
    }
}
