//! The dashboard on made-up ledgers, for looking at it and for the browser's checks: no engine, no database.
//!
//! `cargo run -p fencepost --example dashboard_preview -- [busy|quiet|broken|empty] [address]` prints the
//! address it listens on. `POST /preview/cut` ends the event stream, `POST /preview/restore` gives it back.

mod history;
mod ledger;
mod routes;

use std::sync::Arc;

use ledger::{Ledger, Mood};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mood = Mood::parse(&arguments.next().unwrap_or_else(|| "busy".into()))?;
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".into());
    let listener = tokio::net::TcpListener::bind(&address).await?;
    println!("http://{}/", listener.local_addr()?);
    let ledger = Arc::new(Ledger::new(mood));
    axum::serve(listener, routes::router(ledger)).await?;
    Ok(())
}
