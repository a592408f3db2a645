//! The MCP client: one session with one server on one subject's authority.
//!
//! In: where the server is, which era to speak, a source of credentials. Out: a [`Session`] to read, list and watch
//! with, and [`Events`], everything the server or the wire did by itself, in wire order.
//!
//! What must hold: no answer comes from a cache; no session is replaced silently; every request ends within its
//! deadline; nothing is connected to that the egress policy refuses; no token or session id is printed.
//! The reasons are in `docs/mcp-client.md`.

mod address;
mod config;
mod connect;
mod detect;
mod egress;
mod error;
mod event;
mod fault;
mod http_link;
mod http_post;
mod http_stream;
mod id_scan;
mod inbox;
mod legacy;
mod link;
mod list;
mod listen;
mod message;
mod modern;
mod read;
mod receipt;
mod session;
mod sse;
mod stdio;
mod stdio_child;
mod watch;

pub use address::{AddressRefusal, check_address};
pub use config::{Anonymous, ClientLimits, ConnectConfig, Credentials, Era, Protocol, Transport};
pub use connect::connect;
pub use egress::{EgressError, EgressPolicy, Redirects};
pub use error::{ConnectError, RequestError};
pub use event::{EndReason, Events, GapReason, SessionEvent};
pub use list::{ListPage, ListedItem};
pub use read::{Body, ContentEntry, ReadAnswer};
pub use receipt::CapabilityReceipt;
pub use session::Session;
pub use watch::{UnwatchOutcome, WatchOutcome};
