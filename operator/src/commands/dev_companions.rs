//! What `dev` starts beside the manifests so that an example runs by itself.
//!
//! Two annotations, read by `dev` alone: `fencepost.dev/demo-root` on an `MCPServer` serves that
//! folder (relative to the manifest) at the server's own address, and `fencepost.dev/demo-receiver`
//! on a `DerivedIndex` receives at the webhook's own address and prints what it is told. Both only on
//! loopback: anything else would listen where nobody asked for it.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use fencepost_demo::{DemoConfig, DemoError};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::receiver::{self, ReceiverError};
use crate::{desired::Desired, manifest::ObjectSet};

const DEMO_ROOT: &str = "fencepost.dev/demo-root";
const DEMO_RECEIVER: &str = "fencepost.dev/demo-receiver";

/// Why an example's companion did not start.
#[derive(Debug, thiserror::Error)]
pub enum CompanionError {
    #[error(
        "{object}: the annotation {annotation} needs a URL on a loopback address such as http://127.0.0.1:7700/mcp"
    )]
    NotLoopback {
        object: String,
        annotation: &'static str,
    },
    #[error("{object}: the demo server for {folder} did not start")]
    Demo {
        object: String,
        folder: String,
        #[source]
        source: DemoError,
    },
    #[error("{object}: the demo receiver did not start")]
    Receiver {
        object: String,
        #[source]
        source: ReceiverError,
    },
}

/// What runs, and what to tell the user.
#[derive(Default)]
pub struct Companions {
    pub tasks: Vec<JoinHandle<()>>,
    pub told: Vec<String>,
    /// A file worth editing: the first document below the first demo folder.
    pub edit: Option<PathBuf>,
}

/// Starts what the annotations ask for.
pub async fn start(
    objects: &ObjectSet,
    desired: &Desired,
    shutdown: &CancellationToken,
) -> Result<Companions, CompanionError> {
    let mut companions = Companions::default();
    for (name, server) in &objects.servers {
        let Some(folder) = server.annotations.get(DEMO_ROOT) else {
            continue;
        };
        let object = format!("MCPServer {name}");
        let url = server
            .spec
            .url
            .as_deref()
            .and_then(|url| Url::parse(url).ok());
        let listen = loopback(url.as_ref()).ok_or_else(|| CompanionError::NotLoopback {
            object: object.clone(),
            annotation: DEMO_ROOT,
        })?;
        let beside = server
            .origin
            .file
            .parent()
            .map(PathBuf::from)
            .unwrap_or_default();
        let root = beside.join(folder);
        let config = DemoConfig {
            root: root.clone(),
            listen,
        };
        let running = fencepost_demo::serve(config, shutdown.clone())
            .await
            .map_err(|source| CompanionError::Demo {
                object: object.clone(),
                folder: root.display().to_string(),
                source,
            })?;
        companions.tasks.push(running.handle);
        companions.told.push(format!(
            "demo server   http://{}/mcp serves {}",
            running.addr,
            root.display()
        ));
        if companions.edit.is_none() {
            companions.edit = first_file(&root);
        }
    }
    for (name, index) in &objects.indexes {
        if !index.annotations.contains_key(DEMO_RECEIVER) {
            continue;
        }
        let object = format!("DerivedIndex {name}");
        let wanted = desired
            .indexes
            .iter()
            .find(|i| i.key.namespace == name.namespace && i.key.name == name.name);
        let Some((wanted, channel)) = wanted.and_then(|i| Some((i, i.channel.as_ref().ok()?)))
        else {
            continue;
        };
        let listen = loopback(Url::parse(&wanted.url).ok().as_ref()).ok_or_else(|| {
            CompanionError::NotLoopback {
                object: object.clone(),
                annotation: DEMO_RECEIVER,
            }
        })?;
        let running = receiver::serve(
            listen,
            channel.signing_secrets.clone(),
            true,
            shutdown.clone(),
        )
        .await
        .map_err(|source| CompanionError::Receiver { object, source })?;
        companions.told.push(format!(
            "demo receiver http://{listen} prints what index {name} is told"
        ));
        companions.tasks.push(running.handle);
    }
    Ok(companions)
}

fn loopback(url: Option<&Url>) -> Option<SocketAddr> {
    let url = url?;
    let ip: IpAddr = match url.host()? {
        url::Host::Ipv4(ip) => ip.into(),
        url::Host::Ipv6(ip) => ip.into(),
        url::Host::Domain("localhost") => IpAddr::from([127, 0, 0, 1]),
        url::Host::Domain(_) => return None,
    };
    ip.is_loopback()
        .then(|| url.port_or_known_default())
        .flatten()
        .map(|port| SocketAddr::new(ip, port))
}

/// The first file directly below the folder, by name; a JSON file before others.
fn first_file(root: &std::path::Path) -> Option<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(root)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .collect();
    files.sort_by_key(|path| (path.extension().is_none_or(|e| e != "json"), path.clone()));
    files.into_iter().next()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_loopback_addresses_are_listened_on() {
        let at = |url: &str| loopback(Some(&Url::parse(url).unwrap()));
        assert_eq!(
            at("http://127.0.0.1:7700/mcp"),
            Some(([127, 0, 0, 1], 7700).into())
        );
        assert_eq!(
            at("http://localhost/mcp"),
            Some(([127, 0, 0, 1], 80).into())
        );
        assert_eq!(at("http://[::1]:1/mcp").map(|a| a.port()), Some(1));
        assert_eq!(at("http://10.0.0.1:7700/mcp"), None);
        assert_eq!(at("http://0.0.0.0:7700/mcp"), None);
        assert_eq!(at("http://example.com/mcp"), None);
    }
}
