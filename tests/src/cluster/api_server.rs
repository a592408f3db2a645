//! A cluster for tests: its own control plane, or the one that `KUBECONFIG` names.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::sys::signal::Signal;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::sync::OnceCell;
use url::{Host, Url};

use super::{
    control_plane::ControlPlane,
    kubeconfig::{self, Endpoint, write_private},
    namespace::Namespace,
    programs,
    ran::Ran,
    reaper::Reaper,
    tools::Tools,
};
use crate::{binary, report, wait};

/// Established takes less than a second on an idle machine.
const CRD_LIMIT: Duration = Duration::from_mins(1);

/// No test lasts that long.
const TOKEN_LIFE: &str = "--duration=12h";

/// Says that the cluster of `KUBECONFIG` may be changed though it is not on this machine.
const DISPOSABLE: &str = "FENCEPOST_TEST_CLUSTER_IS_DISPOSABLE";

static SHARED: OnceCell<ApiServer> = OnceCell::const_new();

pub struct ApiServer {
    endpoint: Endpoint,
    tools: Tools,
    plane: Plane,
}

enum Plane {
    Own(Box<ControlPlane>),
    /// The reaper removes the folder with the kubeconfigs.
    Given(Reaper),
}

impl ApiServer {
    /// The one that the tests of this process share. It ends with the process.
    pub async fn shared() -> &'static Self {
        report::real("the shared kube-apiserver with etcd and kube-controller-manager, by kubectl");
        SHARED.get_or_init(Self::begin).await
    }

    /// One for a test that stops it or changes what the whole cluster shares.
    ///
    /// # Panics
    ///
    /// When the programs are missing, saying how to build them; when one does not start, with what it wrote; when `KUBECONFIG` names
    /// a cluster that cannot be reached, or is on another machine and not said to be disposable.
    pub async fn start() -> Self {
        report::real(
            "a kube-apiserver of its own with etcd and kube-controller-manager, by kubectl",
        );
        Self::begin().await
    }

    async fn begin() -> Self {
        if programs::set("KUBECONFIG").is_some() {
            return Self::given().await;
        }
        let plane = ControlPlane::start().await;
        Self {
            endpoint: plane.endpoint.clone(),
            tools: Tools::new(plane.kubeconfig.clone(), plane.reaper.folder().to_owned()),
            plane: Plane::Own(Box::new(plane)),
        }
    }

    async fn given() -> Self {
        let reaper = Reaper::watch();
        let folder = reaper.folder().to_owned();
        // It may be a list of files, or name others. One flat file is what a program under test gets.
        let user = PathBuf::from(programs::set("KUBECONFIG").unwrap_or_default());
        let view = Tools::new(user, folder.clone())
            .kubectl([
                "config",
                "view",
                "--raw",
                "--minify",
                "--flatten",
                "-o",
                "json",
            ])
            .await
            .ok();
        let parsed: Value = serde_json::from_str(&view).expect("kubectl writes JSON");
        let endpoint = Endpoint::of(&parsed).expect("KUBECONFIG has a current context");
        assert!(
            is_loopback(endpoint.url()) || programs::set(DISPOSABLE).is_some(),
            "KUBECONFIG names {}, which is not on this machine. The tests install CRDs and cluster roles there, and delete things. \
             If it is a disposable cluster, set {DISPOSABLE}=yes; otherwise unset KUBECONFIG and they start an API server of their own",
            endpoint.url(),
        );
        let kubeconfig = write_private(&folder.join("administrator.kubeconfig"), &view);
        let tools = Tools::new(kubeconfig, folder);
        tools.kubectl(["get", "--raw", "/readyz"]).await.ok();
        Self {
            endpoint,
            tools,
            plane: Plane::Given(reaper),
        }
    }

    /// Where it is, for instance `https://127.0.0.1:20443`.
    pub fn url(&self) -> &str {
        self.endpoint.url()
    }

    /// The administrator's.
    /// See [`Endpoint::certificate`].
    pub fn certificate(&self) -> Vec<u8> {
        self.endpoint.certificate()
    }

    pub fn kubeconfig(&self) -> &Path {
        self.tools.kubeconfig()
    }

    /// kubectl and helm with the rights of another kubeconfig.
    pub fn tools_for(&self, kubeconfig: &Path) -> Tools {
        Tools::new(kubeconfig.to_owned(), self.folder().to_owned())
    }

    pub async fn kubectl<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        self.tools.kubectl(args).await
    }

    /// `kubectl apply -f -`
    pub async fn apply(&self, manifests: &str) -> Ran {
        self.tools.apply(manifests).await
    }

    /// As [`ApiServer::kubectl`], with something to read from stdin.
    pub async fn kubectl_with<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        stdin: &str,
    ) -> Ran {
        self.tools.kubectl_with(args, stdin).await
    }

    pub async fn helm<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        self.tools.helm(args).await
    }

    /// With the administrator's rights. It lives as long as the runtime that it is made in: make one per test.
    pub async fn client(&self) -> kube::Client {
        kubeconfig::client(self.kubeconfig()).await
    }

    /// With the rights of another kubeconfig.
    pub async fn client_for(&self, kubeconfig: &Path) -> kube::Client {
        kubeconfig::client(kubeconfig).await
    }

    /// A new namespace, deleted on drop.
    pub async fn namespace(&self, prefix: &str) -> Namespace {
        Namespace::create(self.tools.clone(), prefix).await
    }

    /// A kubeconfig with exactly the rights of this service account, by a token that `kubectl create token` makes. The file lives as
    /// long as the cluster.
    ///
    /// # Panics
    ///
    /// When there is no such service account.
    pub async fn kubeconfig_for(&self, namespace: &str, service_account: &str) -> PathBuf {
        let token = self
            .kubectl([
                "create",
                "token",
                service_account,
                "--namespace",
                namespace,
                TOKEN_LIFE,
            ])
            .await
            .ok();
        let name = format!("{namespace}-{service_account}");
        self.endpoint
            .write(self.folder(), &name, token.trim(), namespace)
    }

    /// Applies what `fencepost crds` prints, and waits until the API server serves each kind.
    ///
    /// # Panics
    ///
    /// When the API server refuses one, or does not serve it in time.
    pub async fn install_crds(&self) {
        let printed = binary::run(["crds"]);
        assert!(printed.status.success(), "fencepost crds: {printed:?}");
        let manifests = String::from_utf8(printed.stdout).expect("YAML is UTF-8");
        let names = names(&manifests);
        assert!(!names.is_empty(), "fencepost crds prints CRDs");
        // As docs and chart do it: client-side apply would keep a second copy of each in an annotation, and they may be too large.
        self.kubectl_with(
            ["apply", "--server-side", "--force-conflicts", "-f", "-"],
            &manifests,
        )
        .await
        .ok();
        let wait = [
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            "crd",
        ];
        let wait = wait.into_iter().chain(names.iter().map(String::as_str));
        self.kubectl(wait).await.ok();
        let kinds = names.join(",");
        wait::until("the kinds are served", CRD_LIMIT, async || {
            let seen = self.kubectl(["get", &kinds, "-A"]).await;
            if seen.succeeded() { Ok(()) } else { Err(seen) }
        })
        .await;
    }

    /// An orderly stop. Watches end and connections are refused until [`ApiServer::start_api_server`].
    ///
    /// # Panics
    ///
    /// When it does not end in time, or is not ours to stop.
    pub async fn stop_api_server(&mut self) {
        self.own_plane().stop_api_server(Signal::SIGTERM).await;
    }

    /// An abrupt end, as of a node that fails. Connections are cut.
    ///
    /// # Panics
    ///
    /// When it is not ours to stop.
    pub async fn kill_api_server(&mut self) {
        self.own_plane().stop_api_server(Signal::SIGKILL).await;
    }

    /// Starts it again on the same etcd and port, and waits until it is ready.
    ///
    /// # Panics
    ///
    /// When it does not get ready, or is not ours to start.
    pub async fn start_api_server(&mut self) {
        self.own_plane().start_api_server().await;
    }

    /// What the API server wrote since its last start; nothing of one that was given.
    pub fn log(&self) -> Vec<String> {
        match &self.plane {
            Plane::Own(plane) => plane.log(),
            Plane::Given(_) => Vec::new(),
        }
    }

    fn own_plane(&mut self) -> &mut ControlPlane {
        match &mut self.plane {
            Plane::Own(plane) => plane,
            Plane::Given(_) => panic!(
                "this test stops the API server, and the one that KUBECONFIG names cannot be stopped from here; unset KUBECONFIG"
            ),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        match &self.plane {
            Plane::Own(plane) => plane.reaper.folder(),
            Plane::Given(reaper) => reaper.folder(),
        }
    }
}

/// `metadata.name` of each document.
fn names(manifests: &str) -> Vec<String> {
    serde_norway::Deserializer::from_str(manifests)
        .map(|document| Value::deserialize(document).expect("a manifest is YAML"))
        .filter_map(|object| Some(object.pointer("/metadata/name")?.as_str()?.to_owned()))
        .collect()
}

fn is_loopback(url: &str) -> bool {
    match Url::parse(url).ok().as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
