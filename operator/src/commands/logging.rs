//! Log lines: to stderr, as text or JSON, filtered by `RUST_LOG`.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// `--log-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// Quiet by default: what an operator has to know, not what each read did.
const DEFAULT_FILTER: &str = "info,sqlx=warn,hyper=warn,rmcp=off,kube_client=off";

/// Starts logging; a broken `RUST_LOG` is named and the default used.
pub fn init(format: LogFormat) {
    let filter = match std::env::var("RUST_LOG") {
        Ok(wanted) => EnvFilter::try_new(&wanted).unwrap_or_else(|error| {
            eprintln!("warning: RUST_LOG is not understood ({error}); using {DEFAULT_FILTER}");
            EnvFilter::new(DEFAULT_FILTER)
        }),
        Err(_) => EnvFilter::new(DEFAULT_FILTER),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => builder
            .with_target(false)
            .with_ansi(std::io::stderr().is_terminal())
            .compact()
            .init(),
        LogFormat::Json => builder.json().init(),
    }
}
