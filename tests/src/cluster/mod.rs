//! A real Kubernetes API server, and the programs that people use with it.
//!
//! [`ApiServer`] is etcd, kube-apiserver and kube-controller-manager (namespaces, garbage collection, service accounts) on loopback;
//! no scheduler and no kubelet, so no pod ever runs. Tests share one and keep to a [`Namespace`] each; those that stop the API
//! server or take CRDs away start one of their own. `scripts/build-apiserver.sh` provides the programs. Two variables replace them:
//! `KUBECONFIG` of a disposable cluster, `KUBEBUILDER_ASSETS` with the programs.

mod api_server;
mod control_plane;
mod kubeconfig;
mod namespace;
mod programs;
mod ran;
mod reaper;
#[cfg(test)]
mod tests;
mod tools;

pub use api_server::ApiServer;
pub use kubeconfig::Endpoint;
pub use namespace::Namespace;
pub use ran::Ran;
pub use tools::Tools;
