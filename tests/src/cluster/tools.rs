//! kubectl and helm, run with the rights of one kubeconfig.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{io::AsyncWriteExt as _, process::Command, time::timeout};

use super::{programs, ran::Ran};

/// For one command. The longest are `kubectl wait` and `helm install --wait` with limits of their own, a minute or so.
const RUN_LIMIT: Duration = Duration::from_mins(3);

#[derive(Clone, Debug)]
pub struct Tools {
    kubeconfig: PathBuf,
    /// Caches and settings of the programs, in place of those of the user.
    home: PathBuf,
}

impl Tools {
    pub(super) fn new(kubeconfig: PathBuf, home: PathBuf) -> Self {
        Self { kubeconfig, home }
    }

    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub async fn kubectl<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        self.kubectl_with(args, "").await
    }

    /// As [`Tools::kubectl`], with something to read from stdin (`-f -`).
    pub async fn kubectl_with<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        stdin: &str,
    ) -> Ran {
        self.run(&programs::server("kubectl"), args, stdin).await
    }

    /// `kubectl apply -f -`
    pub async fn apply(&self, manifests: &str) -> Ran {
        self.kubectl_with(["apply", "-f", "-"], manifests).await
    }

    pub async fn helm<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        self.run(&programs::built("helm"), args, "").await
    }

    /// kubectl where there is no runtime to wait in: in a drop.
    pub(super) fn kubectl_now(&self, args: &[&str]) -> Option<std::process::Output> {
        let mut command = std::process::Command::new(programs::server("kubectl"));
        command.args(args).envs(self.environment());
        command.stdin(Stdio::null()).output().ok()
    }

    /// # Panics
    ///
    /// When it cannot be run, or does not end in time.
    async fn run<S: AsRef<OsStr>>(
        &self,
        program: &Path,
        args: impl IntoIterator<Item = S>,
        stdin: &str,
    ) -> Ran {
        let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().into()).collect();
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let told = args.iter().fold(name.into_owned(), |told, arg| {
            told + " " + &arg.to_string_lossy()
        });
        let child = Command::new(program)
            .args(&args)
            .envs(self.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{told}: {error}"));
        let input = child.stdin.take();
        let written = async {
            if let Some(mut input) = input {
                // One that does not read its input says so by its status.
                drop(input.write_all(stdin.as_bytes()).await);
            }
        };
        // Both at once: a full pipe on one side would hold up the other.
        let both = async { tokio::join!(written, child.wait_with_output()).1 };
        let output = timeout(RUN_LIMIT, both)
            .await
            .unwrap_or_else(|_elapsed| panic!("{told}: not ended within {RUN_LIMIT:?}"))
            .expect("a child of ours can be waited for");
        Ran::new(told, &output)
    }

    fn environment(&self) -> [(&'static str, OsString); 6] {
        [
            ("KUBECONFIG", self.kubeconfig.clone().into()),
            ("KUBECACHEDIR", self.home.join("kubectl").into()),
            ("KUBERC", "off".into()),
            ("HELM_CACHE_HOME", self.home.join("helm/cache").into()),
            ("HELM_CONFIG_HOME", self.home.join("helm/config").into()),
            ("HELM_DATA_HOME", self.home.join("helm/data").into()),
        ]
    }
}
