//! The derived indexes: how far each was told, how far it confirmed, and what it still owes.

use fencepost_views::{Index, LiveKind, Page};
use leptos::prelude::*;
use leptos_meta::Title;

use super::servers::Conditions;
use crate::live::Live;
use crate::parts::{Badge, Command, Copy, Empty, Loaded, Pager, Shape, Tone, Until, When};
use crate::{Base, data, figures};

#[component]
pub fn IndexesPage() -> impl IntoView {
    let moved = Live::refresh_on(|event| matches!(event.kind, LiveKind::Index | LiveKind::Sample));
    let page = Resource::new(move || moved.get(), |_| data::indexes());
    let json = Base::here().api("indexes");
    view! {
        <Title text="Indexes" />
        <div class="page-head"><h1>"Derived indexes"</h1></div>
        <Loaded resource=page shape=|| view! { <Shape rows=8 /> } let:page>
            <Cards page=page />
            <Pager
                shown=Signal::derive(move || page.with(|page| page.items.len()))
                first=Signal::stored(None::<String>)
                next=Signal::stored(None::<String>)
                json=json.clone()
                noun="indexes"
            />
        </Loaded>
    }
}

#[component]
fn Cards(page: Signal<Page<Index>>) -> impl IntoView {
    move || {
        let indexes = page.get().items;
        if indexes.is_empty() {
            return view! {
                <Empty title="No index is told yet">
                    <p>"A DerivedIndex names a webhook that learns of every accepted change and confirms it with a 2xx answer:"</p>
                    <Command text=MANIFEST.to_owned() what="the manifest" />
                    <p>"A consumer without a webhook pulls the same events:"</p>
                    <Command text="curl -s localhost:8080/api/v1/outbox?after=0".to_owned() what="the command" />
                </Empty>
            }
            .into_any();
        }
        view! { <div class="cards">{indexes.into_iter().map(|index| view! { <Card index=index /> }).collect_view()}</div> }
            .into_any()
    }
}

const MANIFEST: &str = "apiVersion: fencepost.dev/v1alpha1
kind: DerivedIndex
metadata: {name: rag, namespace: agents}
spec:
  webhook:
    url: https://rag.agents.svc/hooks/mcp
    signingSecretRef: {name: rag-hook, key: secret}
";

/// Where an index stands.
fn standing(index: &Index) -> (Tone, &'static str) {
    if index.pending == 0 {
        (Tone::Good, "up to date")
    } else if index.last_error.is_some() {
        (Tone::Bad, "failing")
    } else {
        (Tone::Busy, "behind")
    }
}

#[component]
fn Card(index: Index) -> impl IntoView {
    let (tone, word) = standing(&index);
    let heading = format!("index-{}", index.uid);
    let labelled = heading.clone();
    let kubectl = format!(
        "kubectl -n {} get derivedindex {} -o yaml",
        index.namespace, index.name
    );
    view! {
        <article class="card" aria-labelledby=labelled>
            <header class="card-head">
                <h2 id=heading><span class="muted">{index.namespace.clone()}"/"</span>{index.name.clone()}</h2>
                <Badge tone=tone word=word.to_owned() />
            </header>
            <Conditions conditions=index.conditions.clone() />
            <Positions index=index.clone() />
            <dl class="facts">
                <div class="wide"><dt>"Webhook"</dt><dd><code class="break">{index.url.clone()}</code> <Copy text=index.url what="the address" /></dd></div>
                <div><dt>"Lag"</dt><dd class="num">{figures::duration(index.lag_seconds)}</dd></div>
                <div><dt>"Pending events"</dt><dd class="num">{figures::count(index.pending)}</dd></div>
                <div>
                    <dt>"Last confirmed"</dt>
                    <dd>
                        {index.last_acknowledged_at.map_or_else(
                            || view! { <span class="muted">"never"</span> }.into_any(),
                            |at| view! { <When at=at /> }.into_any(),
                        )}
                    </dd>
                </div>
                {(index.pending > 0).then(|| view! { <div><dt>"Tries of the oldest"</dt><dd class="num">{figures::count(index.attempts)}</dd></div> })}
                {index.retry_at.map(|at| view! { <div><dt>"Next try"</dt><dd><Until at=at /></dd></div> })}
                {index.last_error.map(|error| view! { <div class="wide"><dt>"Last error"</dt><dd class="bad-text break">{error}</dd></div> })}
            </dl>
            <div class="card-foot"><Command text=kubectl what="the kubectl line" /></div>
        </article>
    }
}

/// Confirmed, told and newest position on one bar.
#[component]
fn Positions(index: Index) -> impl IntoView {
    #[allow(clippy::cast_precision_loss, reason = "a share of a bar")]
    let share = |position: i64| {
        if index.head_position <= 0 {
            0.0
        } else {
            (position as f64 / index.head_position as f64 * 100.0).clamp(0.0, 100.0)
        }
    };
    // The bar shows the last stretch, or a lag of ten events behind a million would be invisible.
    let first = (index.acknowledged_position
        - (index.head_position - index.acknowledged_position).max(10))
    .max(0);
    let stretch = index.head_position - first;
    #[allow(clippy::cast_precision_loss, reason = "a share of a bar")]
    let within = |position: i64| {
        if stretch <= 0 {
            share(position)
        } else {
            ((position - first) as f64 / stretch as f64 * 100.0).clamp(0.0, 100.0)
        }
    };
    let (acknowledged, delivered) = (
        within(index.acknowledged_position),
        within(index.delivered_position),
    );
    view! {
        <div class="positions">
            <svg width="100%" height="12" role="img" aria-label=format!(
                "Confirmed {} and told {} of {}", index.acknowledged_position, index.delivered_position, index.head_position,
            )>
                <rect class="track" x="0" y="2" width="100%" height="8" rx="2" />
                <rect class="told" x="0" y="2" width=format!("{delivered:.2}%") height="8" rx="2" />
                <rect class="confirmed" x="0" y="2" width=format!("{acknowledged:.2}%") height="8" rx="2" />
            </svg>
            <p class="positions-words num">
                <span><i class="key confirmed"></i>"confirmed " <strong>{figures::count(index.acknowledged_position)}</strong></span>
                <span><i class="key told"></i>"told " <strong>{figures::count(index.delivered_position)}</strong></span>
                <span><i class="key track"></i>"newest " <strong>{figures::count(index.head_position)}</strong></span>
            </p>
        </div>
    }
}
