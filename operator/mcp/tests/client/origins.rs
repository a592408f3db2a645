//! Where requests go: along redirects of one's own origin, to no refused address, over TLS that is trusted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fencepost_mcp::{
    AddressRefusal, ConnectConfig, ConnectError, EgressPolicy, Protocol, RequestError, Transport,
    connect,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::fake::{Fake, Reply, config, legacy_default};

#[tokio::test]
async fn a_redirect_on_ones_own_origin_keeps_method_body_and_place() {
    for status in [307, 308, 301, 302] {
        let fake = Fake::start(move |seen| match seen.path.as_str() {
            "/mcp" => Reply::status(status).with("location", "/mcp/"),
            _ => legacy_default(seen),
        })
        .await;
        let (session, _events) = fake.connect().await;
        session.read("test://a").await.unwrap();
        let detours = fake
            .seen()
            .iter()
            .filter(|seen| seen.path == "/mcp")
            .count();
        assert_eq!(detours, 1, "{status}: the detour is taken once");
    }
}

#[tokio::test]
async fn a_redirect_to_a_login_page_is_not_kept() {
    let away = AtomicBool::new(true);
    let fake = Fake::start(move |seen| {
        let reads = seen.method() == "resources/read";
        match seen.path.as_str() {
            "/mcp" if reads && away.swap(false, Ordering::Relaxed) => {
                Reply::status(307).with("location", "/login")
            }
            "/login" => Reply::status(200).typed("text/html"),
            _ => legacy_default(seen),
        }
    })
    .await;
    let (session, _events) = fake.connect().await;
    session.read("test://a").await.unwrap_err();
    session.read("test://a").await.unwrap();
}

#[tokio::test]
async fn a_redirect_elsewhere_is_refused_and_nothing_leaves() {
    let other = Fake::legacy(|_| None).await;
    let port = other.url.port().unwrap();
    for location in [
        format!("http://127.0.0.1:{port}/mcp?key=s3cret"),
        format!("http://localhost:{port}/mcp?key=s3cret"),
        "http://169.254.169.254/latest?key=s3cret".to_owned(),
        "//example.invalid/mcp?key=s3cret".to_owned(),
    ] {
        let fake =
            Fake::start(move |_| Reply::status(307).with("location", location.clone())).await;
        let error = fake.try_connect(Protocol::Auto).await.unwrap_err();
        assert!(
            matches!(
                error.request_error(),
                Some(RequestError::RedirectRefused { .. })
            ),
            "{error:?}"
        );
        assert!(!format!("{error:?}").contains("s3cret"));
    }
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn another_scheme_is_another_origin() {
    let fake = Fake::start(|seen| {
        let host = seen.header("host").unwrap();
        Reply::status(308).with("location", format!("https://{host}/mcp"))
    })
    .await;
    let error = fake.try_connect(Protocol::Auto).await.unwrap_err();
    assert_eq!(error.reason(), "REDIRECT_REFUSED");
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    let fake = Fake::start(|_| Reply::status(307).with("location", "/mcp")).await;
    let error = fake.try_connect(Protocol::Modern).await.unwrap_err();
    assert_eq!(error.reason(), "PROTOCOL_ERROR");
    assert_eq!(fake.seen().len(), 4);
}

#[tokio::test]
async fn loopback_and_metadata_are_refused_before_anything_is_sent() {
    let fake = Fake::legacy(|_| None).await;
    let port = fake.url.port().unwrap();
    let strict = EgressPolicy::default();
    for host in [
        "127.0.0.1",
        "localhost",
        "0.0.0.0",
        "[::1]",
        "2130706433",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
    ] {
        let url = format!("http://{host}:{port}/mcp").parse().unwrap();
        let error = connect(ConnectConfig {
            egress: strict.clone(),
            ..config(url)
        })
        .await
        .unwrap_err();
        let refused = Some(&RequestError::AddressRefused {
            reason: AddressRefusal::Loopback,
        });
        assert_eq!(error.request_error(), refused, "{host}: {error:?}");
    }
    for host in [
        "169.254.169.254",
        "2852039166",
        "[fd00:ec2::254]",
        "[64:ff9b::a9fe:a9fe]",
        "100.100.100.200",
    ] {
        let url = format!("http://{host}/mcp").parse().unwrap();
        // Loopback is allowed here; these never are.
        let error = connect(config(url)).await.unwrap_err();
        assert_eq!(error.reason(), "ADDRESS_REFUSED", "{host}");
    }
    assert!(fake.seen().is_empty());
}

#[tokio::test]
async fn a_proxy_from_the_flag_is_used_also_on_this_machine() {
    let proxy = Fake::legacy(|_| None).await;
    let egress = EgressPolicy {
        allow_loopback: false,
        proxy: Some(proxy.url.clone()),
    };
    let url = "http://mcp.invalid/mcp".parse().unwrap();
    let (session, _events) = connect(ConnectConfig {
        egress: egress.clone(),
        ..config(url)
    })
    .await
    .unwrap();
    session.read("test://a").await.unwrap();
    assert_eq!(
        proxy.of("resources/read")[0].header("host"),
        Some("mcp.invalid")
    );

    let seen = proxy.seen().len();
    let metadata = "http://169.254.169.254/mcp".parse().unwrap();
    let error = connect(ConnectConfig {
        egress,
        ..config(metadata)
    })
    .await
    .unwrap_err();
    assert_eq!(error.reason(), "ADDRESS_REFUSED");
    assert_eq!(proxy.seen().len(), seen);
}

/// A TLS server that answers every request with 401, so that a completed handshake is told from a failed one.
/// The key in `tls/` is of this test alone.
async fn tls_server() -> String {
    let chain = vec![CertificateDer::from_pem_slice(include_bytes!("tls/server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server-key.pem")).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "https://localhost:{}/mcp",
        listener.local_addr().unwrap().port()
    );
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut stream = acceptor.accept(socket).await?;
                let _ = stream.read(&mut [0; 4096]).await?;
                stream
                    .write_all(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    .await?;
                stream.shutdown().await
            });
        }
    });
    url
}

#[tokio::test]
async fn a_private_authority_is_trusted_when_it_is_given() {
    let url = tls_server().await;
    let attempt = |ca: Option<&[u8]>| {
        let transport = Transport::Http {
            url: url.parse().unwrap(),
            ca_pem: ca.map(<[u8]>::to_vec),
        };
        connect(ConnectConfig {
            transport,
            ..config(url.parse().unwrap())
        })
    };
    let trusted = attempt(Some(include_bytes!("tls/ca.pem")))
        .await
        .unwrap_err();
    assert_eq!(trusted.reason(), "UNAUTHORIZED", "{trusted:?}");
    let unknown = attempt(None).await.unwrap_err();
    assert!(
        matches!(unknown, ConnectError::Unreachable { .. }),
        "{unknown:?}"
    );
    let junk = attempt(Some(b"no certificate")).await.unwrap_err();
    assert!(matches!(junk, ConnectError::Egress(_)), "{junk:?}");
}
