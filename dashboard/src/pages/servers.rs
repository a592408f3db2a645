//! The servers: what the handshake said, its sessions, its conditions, and the load that the manifests cause.

use fencepost_views::{Condition, LiveKind, Page, Server, SessionView};
use leptos::prelude::*;
use leptos_meta::Title;

use super::server_rows::StateCounts;
use crate::live::Live;
use crate::parts::{
    Badge, Command, Copy, Digest, Empty, Loaded, Pager, Shape, Tone, ToneShape, When,
};
use crate::{Base, data, figures};

#[component]
pub fn ServersPage() -> impl IntoView {
    let moved = Live::refresh_on(|event| matches!(event.kind, LiveKind::Server | LiveKind::Sample));
    let page = Resource::new(move || moved.get(), |_| data::servers());
    let json = Base::here().api("servers");
    view! {
        <Title text="Servers" />
        <div class="page-head"><h1>"Servers"</h1></div>
        <Loaded resource=page shape=|| view! { <Shape rows=8 /> } let:page>
            <Cards page=page />
            <Pager
                shown=Signal::derive(move || page.with(|page| page.items.len()))
                first=Signal::stored(None::<String>)
                next=Signal::stored(None::<String>)
                json=json.clone()
                noun="servers"
            />
        </Loaded>
    }
}

#[component]
fn Cards(page: Signal<Page<Server>>) -> impl IntoView {
    move || {
        let servers = page.get().items;
        if servers.is_empty() {
            return view! {
                <Empty title="No server is declared yet">
                    <p>"An MCPServer says where a server is; its era is found by asking:"</p>
                    <Command text=MANIFEST.to_owned() what="the manifest" />
                </Empty>
            }
            .into_any();
        }
        view! {
            <div class="cards">{servers.into_iter().map(|server| view! { <Card server=server /> }).collect_view()}</div>
        }
        .into_any()
    }
}

const MANIFEST: &str = "apiVersion: fencepost.dev/v1alpha1
kind: MCPServer
metadata: {name: config-service, namespace: agents}
spec:
  url: http://config-service.agents.svc:8080/mcp
  protocol: Auto
";

#[component]
fn Card(server: Server) -> impl IntoView {
    let base = Base::here();
    let name = format!("{}/{}", server.namespace, server.name);
    let resources = base.to(&format!("/resources?server={}", data::segment(&name)));
    let kubectl = format!(
        "kubectl -n {} get mcpserver {} -o yaml",
        server.namespace, server.name
    );
    let (tone, word) = if server.ready {
        (Tone::Good, "ready")
    } else {
        (Tone::Bad, "away")
    };
    let era = match (&server.era, &server.protocol_version) {
        (Some(era), Some(version)) => format!("{era}, {version}"),
        (Some(era), None) => era.clone(),
        _ => format!("not found yet (declared {})", server.protocol),
    };
    let software = match (&server.server_name, &server.server_version) {
        (Some(name), Some(version)) => format!("{name} {version}"),
        (Some(name), None) => name.clone(),
        _ => "no handshake yet".to_owned(),
    };
    let subscribe = match server.subscribe {
        Some(true) => "offered",
        Some(false) => "not offered: its resources are polled",
        None => "not known yet",
    };
    let capabilities = server
        .capabilities
        .as_ref()
        .and_then(|value| serde_json::to_string_pretty(value).ok());
    let per_hour = server.reads_per_hour;
    let heading = format!("server-{}", server.uid);
    let labelled = heading.clone();
    view! {
        <article class="card" aria-labelledby=labelled>
            <header class="card-head">
                <h2 id=heading><span class="muted">{server.namespace}"/"</span>{server.name}</h2>
                <Badge tone=tone word=word.to_owned() />
                <a class="card-link" href=resources>"Its resources"</a>
            </header>
            <Conditions conditions=server.conditions />
            <dl class="facts">
                <div class="wide"><dt>"Address"</dt><dd><code class="break">{server.address.clone()}</code> <Copy text=server.address what="the address" /></dd></div>
                <div><dt>"Era"</dt><dd>{era}</dd></div>
                <div><dt>"Software"</dt><dd>{software}</dd></div>
                <div><dt>"Subscribe"</dt><dd>{subscribe}</dd></div>
                <div>
                    <dt>"Load by manifest"</dt>
                    <dd class="num">
                        {figures::number(per_hour)}" reads an hour"
                        <span class="muted">" = "{figures::number(per_hour / 3_600.0)}" a second"</span>
                    </dd>
                </div>
                <div class="wide"><dt>"Resources"</dt><dd><StateCounts counts=server.resources /></dd></div>
            </dl>
            <Sessions sessions=server.sessions />
            <div class="card-foot">
                {capabilities
                    .map(|text| {
                        view! {
                            <details>
                                <summary>"Capabilities of the handshake"</summary>
                                <pre tabindex="0" role="region" aria-label="Capabilities"><code>{text}</code></pre>
                            </details>
                        }
                    })}
                <Command text=kubectl what="the kubectl line" />
            </div>
        </article>
    }
}

#[component]
fn Sessions(sessions: Vec<SessionView>) -> impl IntoView {
    if sessions.is_empty() {
        return view! { <p class="muted">"No session has been opened yet."</p> }.into_any();
    }
    view! {
        <div class="table-wrap">
            <table class="rows">
                <caption class="hush">"Sessions"</caption>
                <thead>
                    <tr>
                        <th scope="col" class="num">"Session"</th>
                        <th scope="col">"Subject"</th>
                        <th scope="col">"Era"</th>
                        <th scope="col">"Opened"</th>
                        <th scope="col">"Ended"</th>
                        <th scope="col">"Capability receipt"</th>
                    </tr>
                </thead>
                <tbody>
                    {sessions
                        .into_iter()
                        .map(|session| {
                            let receipt = session.receipt_digest;
                            view! {
                                <tr>
                                    <td data-label="Session" class="num">{figures::count(session.session_generation)}</td>
                                    <td data-label="Subject">{session.subject}</td>
                                    <td data-label="Era">{session.era.unwrap_or_else(|| "–".to_owned())}</td>
                                    <td data-label="Opened" class="when"><When at=session.opened_at /></td>
                                    <td data-label="Ended" class="when">
                                        {match session.closed_at {
                                            Some(at) => view! { <When at=at /> }.into_any(),
                                            None => view! { <span class="good-text">"open"</span> }.into_any(),
                                        }}
                                        {session.close_reason.map(|reason| view! { " " <span class="muted">{figures::words(&reason)}</span> })}
                                    </td>
                                    <td data-label="Capability receipt"><Digest digest=receipt /></td>
                                </tr>
                            }
                        })
                        .collect_view()}
                </tbody>
            </table>
        </div>
    }
    .into_any()
}

/// What is abnormal about an object, with its reason and since when.
#[component]
pub fn Conditions(conditions: Vec<Condition>) -> impl IntoView {
    (!conditions.is_empty()).then(|| {
        view! {
            <ul class="conditions">
                {conditions
                    .into_iter()
                    .map(|condition| {
                        view! {
                            <li class="condition warn">
                                <ToneShape tone=Tone::Warn />
                                <div>
                                    <strong>{condition.kind}</strong>
                                    " "
                                    <span class="muted">{figures::words(&condition.reason)}", since "<When at=condition.since /></span>
                                    <p>{condition.message}</p>
                                </div>
                            </li>
                        }
                    })
                    .collect_view()}
            </ul>
        }
    })
}
