//! A folder as MCP resources, in both eras of the protocol.
//!
//! In: a folder. Out: each file below it as `docs:///<relative path, percent-encoded>`, listed in pages, read as text or blob, and a
//! notification within a fraction of a second when a file is edited, replaced, created or deleted. Nothing outside the folder is
//! ever served, whatever a URI or a symbolic link says.
//!
//! Both eras come from rmcp's server side, without additions: legacy sessions with their GET stream, modern requests that stand
//! alone, `subscriptions/listen`, and the not-found code of each era (-32002, -32602). The same handler speaks over standard
//! input and output.

mod change;
mod error;
mod folder;
mod lines;
mod mime;
mod serve;
mod session;
mod uri;
mod watch;

pub use error::DemoError;
pub use lines::{serve_lines, serve_stdio};
pub use serve::{DemoConfig, Running, serve};
