//! A headless Chromium behind its driver, each with a profile of its own, ended by the id that was started.

use std::{path::PathBuf, process::Command, time::Duration};

use fencepost_tests::{process::Process, real_servers::node_folder, wait};
use serde_json::{Value, json};
use tempfile::TempDir;
use thirtyfour::{
    ChromiumLikeCapabilities, DesiredCapabilities, LoggingPrefsLogLevel, WebDriver,
    extensions::cdp::ChromeDevTools,
};

const START: Duration = Duration::from_secs(30);

/// Where the pictures of a run are kept.
pub fn artifacts() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("artifacts");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub struct Chromium {
    pub driver: WebDriver,
    devtools: ChromeDevTools,
    // Held: dropping the process ends the driver and what it started.
    _process: Process,
    _profile: TempDir,
}

impl Chromium {
    pub async fn start() -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let profile = tempfile::tempdir().unwrap();
        let process = Process::start(
            "chromedriver",
            Command::new("chromedriver").arg(format!("--port={port}")),
        );
        let url = format!("http://127.0.0.1:{port}");
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        wait::until("chromedriver", START, async || {
            http.get(format!("{url}/status"))
                .send()
                .await
                .map(drop)
                .map_err(|error| error.to_string())
        })
        .await;
        let mut capabilities = DesiredCapabilities::chrome();
        let binary = [
            "/usr/bin/chromium",
            "/usr/bin/chromium-browser",
            "/usr/bin/google-chrome",
        ]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists())
        .expect("Chromium is installed");
        capabilities.set_binary(binary).unwrap();
        for argument in [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            &format!("--user-data-dir={}", profile.path().display()),
        ] {
            capabilities.add_arg(argument).unwrap();
        }
        for log in ["browser", "performance"] {
            capabilities
                .set_logging_prefs(log, LoggingPrefsLogLevel::All)
                .unwrap();
        }
        let driver = WebDriver::new(&url, capabilities).await.unwrap();
        let devtools = ChromeDevTools::new(driver.handle().clone());
        Self {
            driver,
            devtools,
            _process: process,
            _profile: profile,
        }
    }

    pub async fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.devtools
            .execute_cdp_with_params(command, parameters)
            .await
            .unwrap()
    }

    /// A screen of that width, in a colour scheme.
    pub async fn screen(&self, width: u32, scheme: &str) {
        let size =
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.devtools("Emulation.setDeviceMetricsOverride", size)
            .await;
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", media).await;
    }

    pub async fn open(&self, url: &str) {
        self.driver.goto(url).await.unwrap();
    }

    /// Opens a page and waits until the wasm has taken it over and the stream is open.
    pub async fn open_live(&self, url: &str) {
        self.open(url).await;
        self.until("a live page", "return document.querySelector('.indicator, [data-live]')?.textContent ?? document.body.innerText", |text| {
            text.as_str().is_some_and(|text| text.contains("live"))
        })
        .await;
    }

    pub async fn eval(&self, script: &str) -> Value {
        self.driver
            .execute(script, vec![])
            .await
            .unwrap()
            .json()
            .clone()
    }

    pub async fn until(&self, what: &str, script: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        wait::until_value(what, START, async || self.eval(script).await, wanted).await
    }

    pub async fn text(&self) -> String {
        self.eval("return document.body.innerText")
            .await
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Errors on the console since the last call.
    pub async fn console_errors(&self) -> Vec<String> {
        let log = self.driver.get_log("browser").await.unwrap();
        log.into_iter()
            .filter(|entry| entry.level == "SEVERE" || entry.message.contains("panicked"))
            .map(|entry| entry.message)
            .collect()
    }

    /// Addresses asked since the last call that do not begin with `base`.
    pub async fn asked_elsewhere(&self, base: &str) -> Vec<String> {
        let log = self.driver.get_log("performance").await.unwrap();
        log.into_iter()
            .filter_map(|entry| {
                let event: Value = serde_json::from_str(&entry.message).ok()?;
                let message = &event["message"];
                (message["method"] == "Network.requestWillBeSent").then(|| {
                    message["params"]["request"]["url"]
                        .as_str()
                        .map(str::to_owned)
                })?
            })
            .filter(|url| {
                !url.starts_with(base) && !url.starts_with("data:") && !url.starts_with("chrome")
            })
            .collect()
    }

    /// Violations that axe-core calls serious or critical.
    pub async fn inaccessible(&self) -> Vec<String> {
        let axe = std::fs::read_to_string(node_folder().join("node_modules/axe-core/axe.min.js"))
            .unwrap();
        // By the devtools: the page's own policy lets no foreign script in.
        self.devtools("Runtime.evaluate", json!({"expression": axe}))
            .await;
        let run = "axe.run(document, {resultTypes: ['violations']}).then(r => JSON.stringify(r.violations\
                   .filter(v => ['serious', 'critical'].includes(v.impact))\
                   .map(v => v.id + ': ' + v.nodes.map(n => n.target.join(' ')).slice(0, 3).join(', '))))";
        let answer = self
            .devtools(
                "Runtime.evaluate",
                json!({"expression": run, "awaitPromise": true, "returnByValue": true}),
            )
            .await;
        let found = answer["result"]["value"]
            .as_str()
            .unwrap_or_else(|| panic!("axe did not run: {answer}"));
        serde_json::from_str(found).unwrap()
    }

    pub async fn end(self) {
        self.driver.quit().await.unwrap();
    }
}
