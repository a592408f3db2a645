//! The core and the SQL enforce the same fences, each on its own; here they are held to each other.

use std::{cell::RefCell, env};

use proptest::test_runner::{Config, TestCaseError, TestRunner};
use sqlx::PgPool;
use tokio::runtime::Handle;

use crate::{
    invariants,
    model::{Model, Seen, Step, step},
};

/// Sequences of 20 to 80 steps: about a tenth of a second each. `FENCEPOST_CASES` asks for more.
const CASES: u32 = 600;

async fn run(pool: PgPool, steps: Vec<Step>) -> Result<Seen, TestCaseError> {
    // Each sequence has the database for itself: the invariants are asked of all rows.
    sqlx::query(
        "truncate server, subject, session_lease, session, watch, resource, read, resource_version,
             content, outbox, derived_index, delivery_lease, mark",
    )
    .execute(&pool)
    .await
    .unwrap();
    let mut model = Model::new(pool).await;
    for step in steps {
        model.take(step).await?;
    }
    model.take(Step::EndSession).await?;
    invariants::check(model.world.store.pool())
        .await
        .map_err(TestCaseError::fail)?;
    Ok(model.seen)
}

/// What the sequences have to come by, each at least this often in `CASES` of them: the rarest comes up about 35 times.
const AT_LEAST: u32 = 10;
const EXPECTED: [&str; 18] = [
    "Issued",
    "NotActive",
    "OtherGeneration",
    "OtherSession",
    "Revoked",
    "Accepted",
    "Unchanged",
    "NotFound",
    "Refused",
    "Failed",
    "AlreadySettled",
    "NeverIssued",
    "Stale(StaleEpoch)",
    "Stale(StaleGeneration)",
    "Stale(StaleAfterClose)",
    "Stale(StaleOrdinal)",
    "Confirmed",
    "NotYet",
];

#[sqlx::test(migrations = "../migrations")]
async fn core_and_sql_agree(pool: PgPool) {
    let cases = env::var("FENCEPOST_CASES")
        .ok()
        .map_or(CASES, |cases| cases.parse().unwrap());
    let handle = Handle::current();
    let seen = tokio::task::spawn_blocking(move || {
        let config = Config {
            cases,
            failure_persistence: None,
            ..Config::default()
        };
        let seen = RefCell::new(Seen::new());
        let steps = proptest::collection::vec(step(), 20..80);
        TestRunner::new(config)
            .run(&steps, |steps| {
                for (what, times) in handle.block_on(run(pool.clone(), steps))? {
                    *seen.borrow_mut().entry(what).or_default() += times;
                }
                Ok(())
            })
            .map_err(|error| error.to_string())?;
        Ok::<_, String>(seen.into_inner())
    })
    .await
    .unwrap()
    .unwrap_or_else(|error| panic!("{error}"));
    println!("{seen:?}");
    if cases >= CASES {
        for what in EXPECTED {
            let times = seen.get(what).copied().unwrap_or_default();
            assert!(times >= AT_LEAST, "{what} came up {times} times: {seen:?}");
        }
    }
}
