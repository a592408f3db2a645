//! The overview: objectives, what is wrong now, the charts, the servers. One screen for whoever is on call.

use fencepost_views::{LiveKind, Overview};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

use super::attention::Attentions;
use super::chart::Charts;
use super::objectives::Objectives;
use super::server_rows::ServerRows;
use crate::live::Live;
use crate::parts::{Command, Empty, Loaded, Ranges, Shape};
use crate::range::{self, Range};
use crate::{Base, data};

#[component]
pub fn OverviewPage() -> impl IntoView {
    let query = use_query_map();
    let range = Memo::new(move |_| {
        Range::parse(query.read().get("range").as_deref(), range::OVERVIEW, "1h")
    });
    let moved = Live::refresh_on(|_| true);
    let sampled = Live::refresh_on(|event| event.kind == LiveKind::Sample);
    let overview = Resource::new(
        move || (range.get().seconds, moved.get()),
        |(seconds, _)| data::overview(seconds),
    );
    let series = Resource::new(
        move || (range.get().seconds, sampled.get()),
        |(seconds, _)| data::series(seconds),
    );
    let base = Base::here();
    view! {
        <Title text="Overview" />
        <div class="page-head">
            <h1>"Overview"</h1>
            <Ranges among=range::OVERVIEW chosen=range address=move |word| base.to(&format!("/?range={word}")) />
        </div>
        <Loaded resource=overview shape=|| view! { <Shape rows=8 /> } let:overview>
            <Body overview=overview series=series />
        </Loaded>
    }
}

#[component]
fn Body(
    overview: Signal<Overview>,
    series: Resource<data::Answer<fencepost_views::Series>>,
) -> impl IntoView {
    let empty = Memo::new(move |_| overview.read().empty);
    move || {
        if empty.get() {
            return view! { <FirstSteps /> }.into_any();
        }
        view! {
            <Objectives overview=overview />
            <Attentions overview=overview />
            <Loaded resource=series shape=|| view! { <Shape rows=6 /> } let:series>
                <Charts series=series />
            </Loaded>
            <ServerRows overview=overview />
        }
        .into_any()
    }
}

/// What a newcomer applies first.
const FIRST: &str = "apiVersion: fencepost.dev/v1alpha1
kind: MCPServer
metadata: {name: config-service, namespace: agents}
spec:
  url: http://127.0.0.1:8080/mcp
---
apiVersion: fencepost.dev/v1alpha1
kind: MCPSubject
metadata: {name: support-agents, namespace: agents}
spec: {}
---
apiVersion: fencepost.dev/v1alpha1
kind: WatchedResource
metadata: {name: service-limits, namespace: agents}
spec:
  serverRef: {name: config-service}
  subjectRef: {name: support-agents}
  uris: [\"config://service/limits\"]
  refresh: {mode: Auto, maxStaleness: 60s}
";

#[component]
fn FirstSteps() -> impl IntoView {
    view! {
        <Empty title="Nothing is watched yet">
            <p>
                "Name a server, an identity to read as, and a resource. Save this as "
                <code>"first.yaml"</code> " in the folder that Fencepost was started with:"
            </p>
            <Command text=FIRST.to_owned() what="the first manifest" />
            <p>"Check it, with the read load it will cause, before you save it:"</p>
            <Command text="fencepost validate first.yaml".to_owned() what="the command" />
            <p class="muted">"The page fills by itself once the first read is accepted."</p>
        </Empty>
    }
}
