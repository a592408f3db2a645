//! A headless Chromium behind its driver, each with a profile of its own, ended by the id that was started.

use std::{path::PathBuf, process::Command, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fencepost_tests::{process::Process, real_servers::node_folder, wait};
use serde_json::{Value, json};
use tempfile::TempDir;
use thirtyfour::{ChromiumLikeCapabilities, DesiredCapabilities, LoggingPrefsLogLevel, WebDriver};

const START: Duration = Duration::from_secs(30);

/// The word of the live indicator; only the wasm ever writes "live".
pub const INDICATOR: &str = "return document.querySelector('.live-word')?.textContent ?? null";

/// Where the pictures of a run are kept.
fn artifacts() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("artifacts");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub struct Chromium {
    pub driver: WebDriver,
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
        Self {
            driver,
            _process: process,
            _profile: profile,
        }
    }

    pub async fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.driver
            .cdp()
            .send_raw(command, parameters)
            .await
            .unwrap()
    }

    /// A screen of that width, in a colour scheme.
    pub async fn screen(&self, width: u32, scheme: &str) {
        self.size(&json!(width), &json!(900)).await;
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", media).await;
    }

    async fn size(&self, width: &Value, height: &Value) {
        let mobile = width.as_u64() < Some(600);
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.devtools("Emulation.setDeviceMetricsOverride", size)
            .await;
    }

    pub async fn open(&self, url: &str) {
        self.driver.goto(url).await.unwrap();
    }

    /// Opens a page and waits until the wasm has taken it over and the stream is open.
    pub async fn open_live(&self, url: &str) {
        self.open(url).await;
        self.until("a live page", INDICATOR, |word| *word == "live")
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
        let (ours, elsewhere): (Vec<_>, Vec<_>) = log
            .into_iter()
            .filter_map(|entry| {
                let event: Value = serde_json::from_str(&entry.message).ok()?;
                let message = &event["message"];
                (message["method"] == "Network.requestWillBeSent").then(|| {
                    message["params"]["request"]["url"]
                        .as_str()
                        .map(str::to_owned)
                })?
            })
            .filter(|url| !url.starts_with("data:") && !url.starts_with("chrome"))
            .partition(|url| url.starts_with(base));
        assert!(
            !ours.is_empty(),
            "the log holds no request at all: it proves nothing"
        );
        elsewhere
    }

    /// Violations that axe-core calls serious or critical.
    pub async fn inaccessible(&self) -> Vec<String> {
        let axe = std::fs::read_to_string(node_folder().join("node_modules/axe-core/axe.min.js"))
            .unwrap();
        // By the devtools: the page's own policy lets no foreign script in.
        self.devtools("Runtime.evaluate", json!({"expression": axe}))
            .await;
        let run = "axe.run(document).then(r => ({passed: r.passes.length, violated: r.violations\
                   .filter(v => ['serious', 'critical'].includes(v.impact))\
                   .map(v => v.id + ': ' + v.nodes.map(n => n.target.join(' ')).slice(0, 3).join(', '))}))";
        let answer = self
            .devtools(
                "Runtime.evaluate",
                json!({"expression": run, "awaitPromise": true, "returnByValue": true}),
            )
            .await;
        let found = &answer["result"]["value"];
        assert!(
            found["passed"].as_u64() > Some(5),
            "axe did not look at the page: {answer}"
        );
        serde_json::from_value(found["violated"].clone()).unwrap()
    }

    /// What the eye would find wrong with the layout: a page wider than the window, drawings with
    /// coordinates that are no numbers, and an end that the bar at the thumb hides.
    pub async fn misdrawn(&self) -> Vec<String> {
        let found = self
            .eval(
                "const found = [];
                 const wide = document.documentElement.scrollWidth - window.innerWidth;
                 if (wide > 0) found.push(`${wide} px too wide`);
                 for (const node of document.querySelectorAll('svg *'))
                     for (const a of node.attributes)
                         if (/NaN|Infinity/.test(a.value)) found.push(`<${node.tagName} ${a.name}=${a.value.slice(0, 60)}>`);
                 scrollTo(0, document.documentElement.scrollHeight);
                 const nav = document.querySelector('.top nav').getBoundingClientRect();
                 const low = [...document.querySelectorAll('.foot > *')].reduce((b, e) => Math.max(b, e.getBoundingClientRect().bottom), 0);
                 if (nav.top > 200 && low > nav.top + 0.5) found.push(`the navigation hides ${low - nav.top} px of the page's end`);
                 scrollTo(0, 0);
                 return found;",
            )
            .await;
        serde_json::from_value(found).unwrap()
    }

    /// A picture of the whole page, not of the window alone.
    pub async fn picture(&self, name: &str) {
        let size = self
            .eval("return [innerWidth, innerHeight, document.documentElement.scrollHeight]")
            .await;
        let (width, window, page) = (&size[0], &size[1], &size[2]);
        // The window grows to the page, so that the bar at the thumb is at the page's end.
        self.size(width, page).await;
        let shot = self
            .devtools("Page.captureScreenshot", json!({"format": "png"}))
            .await;
        self.size(width, window).await;
        let bytes = STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        std::fs::write(artifacts().join(format!("{name}.png")), bytes).unwrap();
    }

    pub async fn end(self) {
        self.driver.quit().await.unwrap();
    }
}
