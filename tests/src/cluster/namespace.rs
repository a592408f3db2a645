//! A namespace of one test.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    time::Duration,
};

use k8s_openapi::api::core::v1;
use kube::Api;
use uuid::Uuid;

use super::{kubeconfig, ran::Ran, tools::Tools};
use crate::wait;

/// The service account `default` comes from a controller, at once.
const READY_LIMIT: Duration = Duration::from_secs(30);

/// The namespace controller empties a namespace within ten seconds once its finalizers are gone.
const GONE_LIMIT: Duration = Duration::from_mins(1);

/// Deleted on drop, without waiting for its end.
pub struct Namespace {
    name: String,
    tools: Tools,
    deleted: bool,
}

impl Namespace {
    /// Makes `PREFIX-xxxxxxxx` and waits until it has its service account.
    pub(super) async fn create(tools: Tools, prefix: &str) -> Self {
        let unique = Uuid::new_v4().simple().to_string();
        let name = format!("{prefix}-{}", &unique[..8]);
        tools.kubectl(["create", "namespace", &name]).await.ok();
        let made = Self {
            name,
            tools,
            deleted: false,
        };
        let accounts: Api<v1::ServiceAccount> = Api::namespaced(made.client().await, &made.name);
        let what = format!("service account default in namespace {}", made.name);
        wait::until(&what, READY_LIMIT, async || accounts.get("default").await).await;
        made
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// kubectl in this namespace, as the administrator.
    pub async fn kubectl<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        let mut all: Vec<OsString> = vec!["--namespace".into(), (&self.name).into()];
        all.extend(args.into_iter().map(|arg| arg.as_ref().into()));
        self.tools.kubectl(all).await
    }

    /// `kubectl apply -f -` in this namespace, as the administrator.
    pub async fn apply(&self, manifests: &str) -> Ran {
        let args = ["--namespace", &self.name, "apply", "-f", "-"];
        self.tools.kubectl_with(args, manifests).await
    }

    /// Deletes it and returns at once.
    pub async fn start_deletion(&mut self) {
        let args = ["delete", "namespace", &self.name, "--wait=false"];
        self.tools.kubectl(args).await.ok();
        self.deleted = true;
    }

    /// Waits for its end.
    ///
    /// # Panics
    ///
    /// When the limit passes, with what the namespace says of what is left in it.
    pub async fn gone(&self) {
        let namespaces: Api<v1::Namespace> = Api::all(self.client().await);
        let what = format!("namespace {} is gone", self.name);
        wait::until(&what, GONE_LIMIT, async || {
            match namespaces.get_opt(&self.name).await {
                Ok(None) => Ok(()),
                Ok(Some(left)) => Err(format!("{:?}", left.status)),
                Err(error) => Err(error.to_string()),
            }
        })
        .await;
    }

    async fn client(&self) -> kube::Client {
        kubeconfig::client(self.tools.kubeconfig()).await
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if !self.deleted {
            // What it returns is of no use here: the server may be stopped, and the namespace gone.
            drop(self.tools.kubectl_now(&[
                "delete",
                "namespace",
                &self.name,
                "--wait=false",
                "--request-timeout=5s",
            ]));
        }
    }
}
