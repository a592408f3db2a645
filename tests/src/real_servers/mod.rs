//! MCP servers that nobody here wrote, at pinned versions, on free loopback ports.
//!
//! They are installed once, below `tests/.cache`, from the lock files in `tests/mcp-servers`; each ends with its process group when
//! it is dropped. A server can be stopped and started again on its port, for gaps.

mod everything;
mod install;
mod legacy_client;
mod memory;
mod python;
mod sdk_examples;
mod server;

pub use everything::{Edition, Everything, everything_stdio};
pub use install::node as node_folder;
pub use legacy_client::LegacyClient;
pub use memory::Memory;
pub use python::PythonModern;
pub use sdk_examples::{SdkExample, SdkServer};
pub use server::RealServer;
