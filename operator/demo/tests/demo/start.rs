//! What a person reads when the server cannot start.

use std::net::SocketAddr;

use fencepost_demo::{DemoConfig, DemoError, serve};
use tokio_util::sync::CancellationToken;

use crate::Demo;

async fn refused(root: impl Into<std::path::PathBuf>, listen: SocketAddr) -> DemoError {
    serve(
        DemoConfig {
            root: root.into(),
            listen,
        },
        CancellationToken::new(),
    )
    .await
    .unwrap_err()
}

#[tokio::test]
async fn each_refusal_names_its_object_and_the_way_out() {
    let demo = Demo::start().await;
    let free = SocketAddr::from(([127, 0, 0, 1], 0));

    let missing = refused(demo.root.path().join("nowhere"), free).await;
    assert!(matches!(missing, DemoError::RootMissing(_)));
    assert!(missing.to_string().contains("nowhere") && missing.to_string().contains("--root"));

    let file = refused(demo.root.path().join("limits.json"), free).await;
    assert!(matches!(file, DemoError::RootNotAFolder(_)));

    let taken = refused(demo.root.path(), demo.running.addr).await;
    assert!(matches!(taken, DemoError::AddressInUse(addr) if addr == demo.running.addr));
    assert!(
        taken.to_string().contains(&demo.running.addr.to_string())
            && taken.to_string().contains("--listen")
    );
}
