//! Servers with their address, limits and trust resolved.

use std::{collections::BTreeMap, fmt::Write as _};

use fencepost_crds::{Limits, MCPServerSpec, Protocol, StdioCommand};
use sha2::{Digest, Sha256};

use super::{
    ObjectKey, address,
    credential::certificates,
    problem::{Problem, ProblemReason},
    reference::{Referrer, secret},
};
use crate::manifest::{Kind, ObjectName, ObjectSet, Secret};

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    Http {
        url: String,
        /// Certificates to trust in place of the built-in roots.
        ca_pem: Option<Vec<u8>>,
    },
    Stdio {
        command: String,
        args: Vec<String>,
        /// A value may be a token.
        env: BTreeMap<String, Secret>,
    },
}

/// A server that can be reached.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredServer {
    pub key: ObjectKey,
    pub endpoint: Endpoint,
    pub protocol: Protocol,
    pub limits: Limits,
    /// No session shall be open.
    pub suspend: bool,
    /// Digest of all of the above but the key: sessions begin anew when it changes.
    pub digest: String,
}

pub(super) fn servers(objects: &ObjectSet, problems: &mut Vec<Problem>) -> Vec<DesiredServer> {
    let mut found = Vec::with_capacity(objects.servers.len());
    for (name, object) in &objects.servers {
        match endpoint(objects, name, &object.spec) {
            Ok(endpoint) => {
                let MCPServerSpec {
                    protocol,
                    limits,
                    suspend,
                    ..
                } = object.spec.clone();
                let digest = digest(&endpoint, protocol, &limits, suspend);
                found.push(DesiredServer {
                    key: ObjectKey::new(name, &object.uid),
                    endpoint,
                    protocol,
                    limits,
                    suspend,
                    digest,
                });
            }
            Err(problem) => problems.push(*problem),
        }
    }
    found
}

fn endpoint(
    objects: &ObjectSet,
    name: &ObjectName,
    spec: &MCPServerSpec,
) -> Result<Endpoint, Box<Problem>> {
    let field = |field| Referrer {
        kind: Kind::MCPServer,
        name,
        field,
    };
    let ca_pem = spec.tls.as_ref().map(|tls| {
        let from = field("spec.tls.caSecretRef");
        let bytes = secret(objects, from, &tls.ca_secret_ref)?;
        certificates(bytes).map_err(|unfit| {
            from.problem(ProblemReason::CertificateInvalid, unfit.message, unfit.fix)
        })
    });
    if let Some(url) = &spec.url {
        return Ok(Endpoint::Http {
            url: url.clone(),
            ca_pem: ca_pem.transpose()?,
        });
    }
    if let Some(StdioCommand { command, args, env }) = spec.stdio.clone() {
        let env = env
            .into_iter()
            .map(|(variable, value)| (variable, Secret::new(value)))
            .collect();
        return Ok(Endpoint::Stdio { command, args, env });
    }
    let unresolved = if spec.service.is_some() {
        "spec.service"
    } else {
        "spec.serverRef"
    };
    let Some(cluster) = &objects.cluster else {
        return Err(Problem::not_acted_on(
            field(unresolved).id(),
            unresolved,
            "there is no cluster to look the address up in; give url",
        ));
    };
    let url = match (&spec.service, &spec.server_ref) {
        (Some(service), _) => address::of_service(cluster, field(unresolved), service)?,
        (None, Some(reference)) => {
            address::of_publisher(objects, cluster, field(unresolved), reference)?
        }
        (None, None) => {
            return Err(Problem::not_acted_on(
                field("spec").id(),
                "spec",
                "no address is given; give url",
            ));
        }
    };
    Ok(Endpoint::Http {
        url,
        ca_pem: ca_pem.transpose()?,
    })
}

/// Each part is preceded by its length, so that no two servers write the same bytes.
fn digest(endpoint: &Endpoint, protocol: Protocol, limits: &Limits, suspend: bool) -> String {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    match endpoint {
        Endpoint::Http { url, ca_pem } => {
            part(b"http");
            part(url.as_bytes());
            part(ca_pem.as_deref().unwrap_or_default());
        }
        Endpoint::Stdio { command, args, env } => {
            part(b"stdio");
            part(command.as_bytes());
            part(&(args.len() as u64).to_be_bytes());
            for arg in args {
                part(arg.as_bytes());
            }
            for (variable, value) in env {
                part(variable.as_bytes());
                part(value.expose());
            }
        }
    }
    part(format!("{protocol:?} {limits:?} {suspend}").as_bytes());
    hash.finalize()
        .iter()
        .fold("sha256:".to_owned(), |mut text, byte| {
            // Writing into a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}
