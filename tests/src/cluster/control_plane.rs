//! etcd, kube-apiserver and kube-controller-manager on loopback, as child processes.
//!
//! The API server can be stopped and started again on the same etcd, folder and port, as an upgrade of a control plane does. Nothing
//! is kept: etcd does not sync, and all ends by SIGKILL.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use aws_lc_rs::{
    encoding::{AsDer as _, EcPrivateKeyRfc5915Der},
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair},
};
use base64::Engine as _;
use nix::sys::signal::Signal;
use tokio::net::TcpStream;
use uuid::Uuid;

use super::{
    kubeconfig::{self, Endpoint, write_private},
    programs,
    reaper::Reaper,
};
use crate::{
    process::{Process, describe},
    wait,
};

/// Ready takes five seconds on an idle machine with two cores, and a multiple of that beside a build.
const START_LIMIT: Duration = Duration::from_mins(2);

/// With etcd alive the API server ends within three seconds of SIGTERM, the grace for watches included.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Ports below those that the kernel gives to outgoing connections: during a stop nobody else comes by ours.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Starts on another port when one is taken between the look and the use.
const MOST_STARTS: usize = 5;

/// What only namespaces, owners and service accounts need. Others are for nodes and workloads.
const CONTROLLERS: &str =
    "namespace-controller,garbage-collector-controller,serviceaccount-controller";

pub struct ControlPlane {
    controllers: Process,
    /// None while it is stopped.
    api_server: Option<Process>,
    _etcd: Process,
    pub endpoint: Endpoint,
    /// Of the administrator.
    pub kubeconfig: PathBuf,
    settings: Settings,
    /// Last: it waits for the others' end.
    pub reaper: Reaper,
}

/// What a start of the API server needs, the first time and again.
struct Settings {
    folder: PathBuf,
    port: u16,
    etcd: String,
    token: String,
}

/// How a start of the API server ended.
enum Started {
    Ready(Process, Endpoint),
    /// What it wrote.
    PortTaken(String),
}

impl ControlPlane {
    /// # Panics
    ///
    /// When a program is missing or does not get ready, with all that it wrote.
    pub async fn start() -> Self {
        let reaper = Reaper::watch();
        let folder = reaper.folder().to_owned();
        let token = Uuid::new_v4().simple().to_string();
        write_private(&folder.join("service-account.key"), &signing_key());
        write_private(
            &folder.join("tokens.csv"),
            &format!("{token},administrator,administrator,\"system:masters\"\n"),
        );
        let (etcd_process, etcd) = start_etcd(&reaper).await;
        let mut settings = Settings {
            folder,
            port: free_port(),
            etcd,
            token,
        };
        let mut starts = 1;
        let (api_server, endpoint) = loop {
            match settings.start_api_server(&reaper).await {
                Started::Ready(process, endpoint) => break (process, endpoint),
                Started::PortTaken(output) => {
                    assert!(starts < MOST_STARTS, "no free port was found; {output}");
                    starts += 1;
                    settings.port = free_port();
                }
            }
        };
        let kubeconfig = settings.administrator(&endpoint);
        let controllers = start_controllers(&reaper, &kubeconfig);
        Self {
            controllers,
            api_server: Some(api_server),
            _etcd: etcd_process,
            endpoint,
            kubeconfig,
            settings,
            reaper,
        }
    }

    /// Orderly by SIGTERM, or at once by SIGKILL. Its port refuses connections afterwards.
    ///
    /// # Panics
    ///
    /// When it is stopped already or does not end in time.
    pub async fn stop_api_server(&mut self, signal: Signal) {
        let mut process = self.api_server.take().expect("the API server is running");
        process.signal(signal);
        process.ended(STOP_LIMIT).await;
    }

    /// Waits until it is ready again.
    ///
    /// # Panics
    ///
    /// When it is running or does not get ready, or the controllers did not outlive the stop.
    pub async fn start_api_server(&mut self) {
        assert!(self.api_server.is_none(), "the API server is running");
        match self.settings.start_api_server(&self.reaper).await {
            Started::Ready(process, _) => self.api_server = Some(process),
            Started::PortTaken(output) => {
                panic!("port {} was taken meanwhile; {output}", self.settings.port)
            }
        }
        if let Some(status) = self.controllers.status() {
            panic!(
                "kube-controller-manager ended meanwhile ({}); it wrote:\n{}",
                describe(status),
                self.controllers.output().join("\n")
            );
        }
    }

    /// What the API server wrote since its last start.
    pub fn log(&self) -> Vec<String> {
        self.api_server
            .as_ref()
            .map(Process::output)
            .unwrap_or_default()
    }
}

impl Settings {
    async fn start_api_server(&self, reaper: &Reaper) -> Started {
        let certificates = self.folder.join("certificates");
        let key = self.folder.join("service-account.key");
        let mut command = Command::new(programs::server("kube-apiserver"));
        command
            .arg(format!("--etcd-servers={}", self.etcd))
            .arg(format!("--secure-port={}", self.port))
            .arg(flag("--cert-dir", &certificates))
            .arg(flag("--token-auth-file", &self.folder.join("tokens.csv")))
            .arg(flag("--service-account-key-file", &key))
            .arg(flag("--service-account-signing-key-file", &key))
            .args([
                "--service-account-issuer=https://kubernetes.default.svc",
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                // The Service `kubernetes` in `default` gets no endpoints: a loopback address is not allowed there, and no pod asks.
                "--endpoint-reconciler-type=none",
                "--authorization-mode=RBAC",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--profiling=false",
                // Else a stop waits a minute for the watches of clients that do not hang up.
                "--shutdown-send-retry-after=true",
                "--shutdown-watch-termination-grace-period=2s",
            ]);
        reaper.mark(&mut command);
        let mut process = Process::start("kube-apiserver", &mut command);
        let certificate = certificates.join("apiserver.crt");
        let ready = wait::until("kube-apiserver is ready", START_LIMIT, async || {
            if let Some(status) = process.status() {
                let output = process.output().join("\n");
                let told = format!(
                    "kube-apiserver ended ({}); it wrote:\n{output}",
                    describe(status)
                );
                assert!(output.contains("address already in use"), "{told}");
                return Ok(Err(told));
            }
            match self.ready(&certificate).await {
                Ok(endpoint) => Ok(Ok(endpoint)),
                Err(seen) => Err((seen, process.output())),
            }
        })
        .await;
        match ready {
            Ok(endpoint) => Started::Ready(process, endpoint),
            Err(told) => Started::PortTaken(told),
        }
    }

    async fn ready(&self, certificate: &Path) -> Result<Endpoint, String> {
        TcpStream::connect(("127.0.0.1", self.port))
            .await
            .map_err(|error| format!("port {}: {error}", self.port))?;
        let certificate = fs::read(certificate).map_err(|error| error.to_string())?;
        let endpoint = Endpoint::new(&format!("https://127.0.0.1:{}", self.port), &certificate);
        let client = kubeconfig::client(&self.administrator(&endpoint)).await;
        let request = http::Request::get("/readyz")
            .body(Vec::new())
            .expect("this is a request");
        match client.request_text(request).await {
            Ok(_ok) => Ok(endpoint),
            Err(error) => Err(format!("/readyz: {error}")),
        }
    }

    fn administrator(&self, endpoint: &Endpoint) -> PathBuf {
        endpoint.write(&self.folder, "administrator", &self.token, "default")
    }
}

/// Returns the URL that it serves clients on.
async fn start_etcd(reaper: &Reaper) -> (Process, String) {
    // The kernel picks the ports. No other member ever dials the one for peers.
    let any = "http://127.0.0.1:0";
    let mut command = Command::new(programs::server("etcd"));
    command
        .arg(flag("--data-dir", &reaper.folder().join("etcd")))
        .arg(format!("--listen-client-urls={any}"))
        .arg(format!("--advertise-client-urls={any}"))
        .arg(format!("--listen-peer-urls={any}"))
        .arg(format!("--initial-advertise-peer-urls={any}"))
        .arg(format!("--initial-cluster=default={any}"))
        .arg("--unsafe-no-fsync");
    reaper.mark(&mut command);
    let mut process = Process::start("etcd", &mut command);
    let address = process
        .line("serving", START_LIMIT, |line| {
            let entry: serde_json::Value = serde_json::from_str(line).ok()?;
            let message = entry["msg"].as_str()?;
            message
                .starts_with("serving client traffic")
                .then(|| entry["address"].as_str().map(str::to_owned))?
        })
        .await;
    (process, format!("http://{address}"))
}

fn start_controllers(reaper: &Reaper, kubeconfig: &Path) -> Process {
    let mut command = Command::new(programs::controller_manager());
    command.arg(flag("--kubeconfig", kubeconfig)).args([
        &format!("--controllers={CONTROLLERS}"),
        "--leader-elect=false",
        "--secure-port=0",
        // Deletions of many namespaces at once do not wait for each other.
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]);
    reaper.mark(&mut command);
    Process::start("kube-controller-manager", &mut command)
}

fn flag(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

/// The key that service account tokens are signed with, as PEM.
fn signing_key() -> String {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).expect("a key can be made");
    let der: EcPrivateKeyRfc5915Der<'_> =
        pair.private_key().as_der().expect("a key can be written");
    let encoded = base64::engine::general_purpose::STANDARD.encode(der.as_ref());
    format!("-----BEGIN EC PRIVATE KEY-----\n{encoded}\n-----END EC PRIVATE KEY-----\n")
}

fn free_port() -> u16 {
    let span = u128::from(PORTS.end - PORTS.start);
    let mut tries = std::iter::repeat_with(|| {
        PORTS.start + u16::try_from(Uuid::new_v4().as_u128() % span).expect("the span is a u16")
    });
    tries
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a port is free")
}
