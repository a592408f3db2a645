//! `make bench`: the whole path beside bare reads of the same server and beside the ledger's statements alone, in one run.
//!
//! Out: versions a second as ratios of one another, CPU by process, reads a version under repeated notifications, memory a
//! watched resource. Nothing is asserted about time; a version lost or made up, or counters that disagree, end the run with an
//! error. `BENCH_SESSIONS`, `BENCH_RESOURCES`, `BENCH_ROUNDS` and `BENCH_WATCHED` make it smaller.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bare;
mod cpu;
mod dev;
mod memory;
mod sizes;
mod statements;
mod whole;

use std::sync::Arc;

use fencepost_tests::{
    faulty::{Eras, Faults, FaultyServer},
    postgres::Postgres,
};

use crate::{sizes::Sizes, whole::Manner};

#[tokio::main]
async fn main() {
    let sizes = Sizes::from_env();
    // Its own settings are left alone: fsync, synchronous_commit and full_page_writes are on.
    let postgres = Arc::new(Postgres::start(&[]).await);
    let server = FaultyServer::start_with(Faults {
        // Without it the probe of each session would be answered either way.
        eras: Eras::Modern,
        ..Faults::default()
    })
    .await;
    server.without_log();
    println!("{}", statements::settings(postgres.url()).await);
    println!("{sizes}");

    let bare = bare::reads_a_second(&server, sizes.versions()).await;
    let alone = statements::run(&postgres.database().await.url, sizes).await;
    let path = async |manner| {
        let database = postgres.database().await;
        whole::run(&database.url, &server, sizes, manner).await
    };
    let once = path(Manner::ONCE).await;
    let in_a_row = path(Manner::IN_A_ROW).await;
    let apart = path(Manner::APART).await;
    let bytes = memory::bytes_a_resource(&postgres, &server, sizes.watched).await;

    let row = |what: &str, rate: f64| {
        println!("{what:<52}{rate:>10.0}{:>18.2}", once.a_second / rate);
    };
    println!("{:<52}{:>10}{:>18}", "", "a second", "whole path is");
    row("accepted versions, whole path", once.a_second);
    row("bare reads of the same server", bare);
    row("issue and acceptance, statements alone", alone.a_second);
    println!(
        "one version at a time, statements alone: {:.1} ms each",
        1000.0 / alone.lone_a_second
    );
    println!("CPU of the whole path: {}", once.cpu);
    println!(
        "reads a version: {:.3} with one notification a change, {:.3} with three in a row, {:.3} with three 50 ms apart",
        once.amplification, in_a_row.amplification, apart.amplification
    );
    println!(
        "memory a watched resource: {:.1} KiB (VmRSS of the binary at {} less VmRSS at 0, divided)",
        bytes / 1024.0,
        sizes.watched
    );
}
