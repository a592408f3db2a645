//! `fencepost operator` against a real kube-apiserver and etcd, a real Postgres, with exactly the rights that its roles give.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod chart;
mod deletion;
mod flaps;
mod image;
mod lifecycle;
mod monitoring;
mod references;
mod refused;
mod replicas;
mod secrets;
mod size;
mod trouble;
mod world;
