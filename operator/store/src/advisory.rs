//! Numbers of the advisory locks, all of them held by a transaction and gone with it.
//!
//! Order of locks, for every transaction: advisory `PUBLISH` or `MIGRATE`, lease, subject, resources by
//! id, reads, advisory `OUTBOX`. Whoever holds `OUTBOX` takes no more resources.

/// Whoever writes outbox rows, until its commit: positions become visible in their order.
pub const OUTBOX: i64 = 0x6665_6e63_6500_0001;
/// Publishing a whole set of objects.
pub const PUBLISH: i64 = 0x6665_6e63_6500_0002;
/// Migrating the schema.
pub const MIGRATE: i64 = 0x6665_6e63_6500_0003;
