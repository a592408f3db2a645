//! A running `fencepost dev` over manifests written for it, and its counters.

use std::{fmt::Debug, iter::Sum, str::FromStr, time::Duration};

use fencepost_tests::{binary::Fencepost, wait};
use tempfile::TempDir;

use crate::sizes::IN_FLIGHT;

/// Far more than a round or a start needs anywhere: whatever is not there by then is lost.
const LIMIT: Duration = Duration::from_mins(5);

pub struct Dev {
    fencepost: Fencepost,
    http: reqwest::Client,
    base: String,
    _folder: TempDir,
}

impl Dev {
    pub async fn start(database_url: &str, manifests: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("bench.yaml"), manifests).unwrap();
        let path = folder.path().to_str().unwrap();
        let mut fencepost = Fencepost::serving([
            "dev",
            path,
            "--database-url",
            database_url,
            "--listen",
            "127.0.0.1:0",
        ])
        .await;
        Self {
            base: fencepost.base_url().await,
            fencepost,
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            _folder: folder,
        }
    }

    pub fn pid(&self) -> u32 {
        self.fencepost.pid()
    }

    /// The sum of a metric over its series that bear all these labels, written as `name="value"`.
    pub async fn metric<T: FromStr<Err: Debug> + Sum>(&self, name: &str, labels: &[&str]) -> T {
        let url = format!("{}/metrics", self.base);
        let answer = self.http.get(url).send().await.unwrap();
        let text = answer.text().await.unwrap();
        let of_name = |line: &str| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('{'))
        };
        text.lines()
            .filter(|line| of_name(line) && labels.iter().all(|label| line.contains(label)))
            .map(|line| line.rsplit(' ').next().unwrap().parse::<T>().unwrap())
            .sum()
    }

    pub async fn versions(&self) -> usize {
        self.metric("fencepost_versions_accepted_total", &[]).await
    }

    /// Waits until so many versions were accepted since the start.
    pub async fn accepted(&self, count: usize) {
        let what = format!("{count} versions");
        let enough = |versions: &usize| *versions >= count;
        wait::until_value(&what, LIMIT, async || self.versions().await, enough).await;
    }

    pub async fn stop(mut self) {
        let status = self.fencepost.terminate().await;
        assert!(status.success(), "{status}: {:#?}", self.fencepost.output());
    }
}

pub fn server(url: &str) -> String {
    format!(
        "apiVersion: fencepost.dev/v1alpha1\nkind: MCPServer\nmetadata: {{name: server, namespace: bench}}\n\
         spec: {{url: \"{url}\", limits: {{maxInFlight: {IN_FLIGHT}, requestsPerSecond: 10000, maxSubscriptionsPerSession: 100000}}}}\n---\n"
    )
}

/// A subject, which has a session of its own.
pub fn subject(name: &str) -> String {
    format!(
        "apiVersion: fencepost.dev/v1alpha1\nkind: MCPSubject\nmetadata: {{name: {name}, namespace: bench}}\nspec: {{}}\n---\n"
    )
}

/// Refreshed by notifications alone within the time of a run.
pub fn watch(name: &str, subject: &str, uris: &[String]) -> String {
    let uris = serde_json::to_string(uris).unwrap();
    format!(
        "apiVersion: fencepost.dev/v1alpha1\nkind: WatchedResource\nmetadata: {{name: {name}, namespace: bench}}\n\
         spec: {{serverRef: {{name: server}}, subjectRef: {{name: {subject}}}, uris: {uris}, \
         refresh: {{mode: Subscribe, maxStaleness: 1h, pollInterval: 1h}}}}\n---\n"
    )
}
