//! Looks at a server the way Fencepost does: receipt, lists, reads, a watch, then every event.
//!
//! `probe URL [SECONDS]` or `probe -- COMMAND ARGS...`; loopback is allowed.

use std::sync::Arc;
use std::time::Duration;

use fencepost_mcp::{
    Anonymous, ClientLimits, ConnectConfig, EgressPolicy, Protocol, RequestError, Session,
    SessionEvent, Transport, connect,
};

/// How many listed resources are read and watched.
const SAMPLE: usize = 3;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let target = args
        .next()
        .ok_or("usage: probe URL [SECONDS] | probe -- COMMAND ARGS...")?;
    let (transport, seconds) = if target == "--" {
        let command = args.next().ok_or("name a command after --")?;
        let transport = Transport::Stdio {
            command,
            args: args.by_ref().collect(),
            env: Vec::new(),
        };
        (transport, 15)
    } else {
        let transport = Transport::Http {
            url: target.parse()?,
            ca_pem: None,
        };
        (transport, args.next().map_or(Ok(15), |text| text.parse())?)
    };
    let protocol = match std::env::var("PROBE_PROTOCOL").as_deref() {
        Ok("legacy") => Protocol::Legacy,
        Ok("modern") => Protocol::Modern,
        _ => Protocol::Auto,
    };
    let (session, mut events) = connect(ConnectConfig {
        transport,
        protocol,
        remembered_era: None,
        credentials: Arc::new(Anonymous),
        egress: EgressPolicy {
            allow_loopback: true,
            proxy: None,
        },
        limits: ClientLimits::default(),
        allow_stdio: true,
    })
    .await?;
    let receipt = session.receipt();
    println!(
        "{} {}: {} {}, capabilities {}, extensions {}",
        receipt.era,
        receipt.protocol_version,
        receipt.server_name,
        receipt.server_version,
        receipt.capabilities,
        receipt.extensions
    );
    println!("stream: {}", session.has_stream());

    let uris = look(&session).await?;
    println!("watch: {:?}", session.watch(&uris).await);

    let until = tokio::time::sleep(Duration::from_secs(seconds));
    tokio::pin!(until);
    loop {
        tokio::select! {
            () = &mut until => break,
            event = events.next() => match event {
                Some(SessionEvent::Ignored { kind }) => println!("ignored: {kind}"),
                Some(event) => println!("{event:?}"),
                None => break,
            },
        }
    }
    println!("unwatch: {:?}", session.unwatch(&uris).await);
    session.close(Duration::from_secs(5)).await;
    while let Some(event) = events.next().await {
        println!("{event:?}");
    }
    Ok(())
}

/// Lists everything, reads a few, and returns those.
async fn look(session: &Session) -> Result<Vec<String>, RequestError> {
    let mut uris = Vec::new();
    let mut cursor = None;
    // Enough for any server worth a look; a cursor that never ends is not followed for ever.
    for page_number in 1..=50 {
        let page = session.list_resources(cursor.as_deref()).await?;
        println!(
            "page {page_number}: {} items, {} bytes, next {:?}",
            page.items.len(),
            page.bytes,
            page.next_cursor
        );
        uris.extend(page.items.into_iter().map(|item| item.uri));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    match session.list_templates(None).await {
        Ok(page) => println!("templates: {}", page.items.len()),
        Err(error) => println!("templates: {error}"),
    }
    println!(
        "bad cursor: {:?}",
        session
            .list_resources(Some("no such cursor"))
            .await
            .map(|page| page.items.len())
    );
    uris.truncate(SAMPLE);
    for uri in &uris {
        match session.read(uri).await {
            Ok(answer) => println!(
                "{uri}: {} entries, {} bytes, ttl {:?}",
                answer.contents.len(),
                answer.contents[0].body.as_bytes().len(),
                answer.ttl
            ),
            Err(error) => println!("{uri}: {} {error}", error.reason()),
        }
    }
    println!("missing: {:?}", session.read("test://no/such").await);
    Ok(uris)
}
