//! One message a line, as over standard input and output, in both eras.

use fencepost_demo::serve_lines;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{LIMIT, is_update},
    write,
};

struct Pipe {
    root: tempfile::TempDir,
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    served: tokio::task::JoinHandle<Result<(), fencepost_demo::DemoError>>,
}

impl Pipe {
    fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "limits.json", "{}");
        let (input, server_input) = tokio::io::duplex(65_536);
        let (server_output, output) = tokio::io::duplex(65_536);
        let served = serve_lines(
            root.path().to_owned(),
            server_input,
            server_output,
            CancellationToken::new(),
        );
        let served = tokio::spawn(served);
        Self {
            root,
            input,
            output: BufReader::new(output).lines(),
            served,
        }
    }

    async fn send(&mut self, message: &Value) {
        self.input
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let found = tokio::time::timeout(LIMIT, async {
            while let Some(line) = self.output.next_line().await.unwrap() {
                let message: Value = serde_json::from_str(&line).unwrap();
                if wanted(&message) {
                    return message;
                }
            }
            panic!("the output ended before {what}");
        });
        found.await.unwrap_or_else(|_| panic!("no {what} in time"))
    }

    async fn call(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        self.until(method, |message| message["id"] == id).await
    }

    async fn ends(self) {
        drop(self.input);
        tokio::time::timeout(LIMIT, self.served)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
    }
}

#[tokio::test]
async fn legacy() {
    let mut pipe = Pipe::start();
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let initialized = pipe.call(0, "initialize", params).await;
    assert_eq!(initialized["result"]["protocolVersion"], "2025-11-25");
    pipe.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await;
    let uri = json!({"uri": "docs:///limits.json"});
    assert_eq!(
        pipe.call(1, "resources/subscribe", uri.clone()).await["result"],
        json!({})
    );
    write(pipe.root.path(), "limits.json", "[1]");
    pipe.until("update", |message| {
        is_update(message, "docs:///limits.json")
    })
    .await;
    let read = pipe.call(2, "resources/read", uri).await;
    assert_eq!(read["result"]["contents"][0]["text"], "[1]");
    pipe.ends().await;
}

#[tokio::test]
async fn modern() {
    let mut pipe = Pipe::start();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let discovered = pipe
        .call(1, "server/discover", json!({"_meta": meta}))
        .await;
    assert_eq!(
        discovered["result"]["capabilities"]["resources"]["subscribe"],
        true
    );
    let filter = json!({"resourceSubscriptions": ["docs:///limits.json"]});
    let listen = json!({"_meta": meta, "notifications": filter});
    pipe.send(
        &json!({"jsonrpc": "2.0", "id": 2, "method": "subscriptions/listen", "params": listen}),
    )
    .await;
    let acknowledged = pipe
        .until("acknowledgement", |message| {
            message["method"] == "notifications/subscriptions/acknowledged"
        })
        .await;
    assert_eq!(acknowledged["params"]["notifications"], filter);
    write(pipe.root.path(), "limits.json", "[2]");
    pipe.until("update", |message| {
        is_update(message, "docs:///limits.json")
    })
    .await;
    let read = json!({"_meta": meta, "uri": "docs:///limits.json"});
    let read = pipe.call(3, "resources/read", read).await;
    assert_eq!(read["result"]["contents"][0]["text"], "[2]");
    pipe.ends().await;
}
