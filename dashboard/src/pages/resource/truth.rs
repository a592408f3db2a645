//! The truth about a resource: what state, as of when, good until when, by which ordinal, with which digest.

use chrono::{DateTime, Utc};
use fencepost_views::{Resource, ResourceDetail};
use leptos::prelude::*;

use crate::clock::Clock;
use crate::pages::servers::Conditions;
use crate::parts::{Badge, Command, Copy, Digest, Until, When, state_tone};
use crate::{Base, data, figures};

#[component]
pub fn Truth(detail: Signal<ResourceDetail>) -> impl IntoView {
    let resource = Memo::new(move |_| detail.with(|detail| detail.resource.clone()));
    let uri = Signal::derive(move || resource.with(|resource| resource.uri.clone()));
    let tone = Signal::derive(move || {
        resource.with(|resource| state_tone(&resource.state, resource.stale))
    });
    let word = Signal::derive(move || resource.with(|resource| resource.state.clone()));
    let digest = Signal::derive(move || resource.with(|resource| resource.digest.clone()));
    let conditions = Memo::new(move |_| detail.with(|detail| detail.conditions.clone()));
    view! {
        <section class="truth" aria-labelledby="uri">
            <div class="truth-head">
                <h1 id="uri" class="uri-title"><code class="break">{uri}</code> <Copy text=uri what="the URI" /></h1>
                <p class="truth-state" aria-live="polite">
                    <Badge tone=tone word=word />
                    " "
                    {move || sentence(&detail.get())}
                </p>
            </div>
            {move || view! { <Conditions conditions=conditions.get() /> }}
            <dl class="facts truth-facts">
                <div>
                    <dt>"As of"</dt>
                    <dd>{move || moment(resource.with(|resource| resource.confirmed_at), "never read", false)}</dd>
                </div>
                <div>
                    <dt>"Stale after"</dt>
                    <dd>
                        {move || moment(resource.with(|resource| resource.stale_after), "–", true)}
                        <Freshness resource=resource />
                    </dd>
                </div>
                <div>
                    <dt title="The last accepted ordinal; it never goes down">"Watermark"</dt>
                    <dd class="num">{move || figures::count(resource.read().ordinal)}</dd>
                </div>
                <div>
                    <dt title="The last ordinal given to a read">"Issued ordinal"</dt>
                    <dd class="num">{move || figures::count(resource.read().issued_ordinal)}</dd>
                </div>
                <div>
                    <dt title="Rises each time the resource is watched anew">"Generation"</dt>
                    <dd class="num">{move || figures::count(resource.read().generation)}</dd>
                </div>
                <div>
                    <dt>"Session"</dt>
                    <dd class="num">
                        {move || detail.read().session_generation.map_or_else(|| "none".to_owned(), figures::count)}
                    </dd>
                </div>
                <div><dt>"Digest"</dt><dd><Digest digest=digest /></dd></div>
                <div>
                    <dt>"Content"</dt>
                    <dd class="num">
                        {move || {
                            let resource = resource.read();
                            let size = resource.size.map_or_else(|| "none held".to_owned(), figures::bytes);
                            match &resource.mime_type {
                                Some(mime_type) => format!("{size}, {mime_type}"),
                                None => size,
                            }
                        }}
                    </dd>
                </div>
                <div>
                    <dt>"Accepted"</dt>
                    <dd>{move || moment(resource.with(|resource| resource.accepted_at), "never", false)}</dd>
                </div>
                <div>
                    <dt>"Refresh"</dt>
                    <dd>{move || refresh(&detail.read())}</dd>
                </div>
                <div><dt>"Server"</dt><dd>{move || named(&resource.read(), "server")}</dd></div>
                <div><dt>"Read as"</dt><dd>{move || named(&resource.read(), "subject")}</dd></div>
            </dl>
            <Doors detail=detail />
        </section>
    }
}

/// The state in a sentence for somebody who was woken by it.
fn sentence(detail: &ResourceDetail) -> String {
    let resource = &detail.resource;
    let reason = resource
        .reason
        .as_ref()
        .map(|reason| format!(" ({})", figures::words(reason)))
        .unwrap_or_default();
    match resource.state.as_str() {
        "ACTIVE" if resource.stale => format!(
            "Stale{reason}: the last good answer is older than the promised {}. The old value is kept.",
            figures::duration(detail.max_staleness_seconds),
        ),
        "ACTIVE" if resource.confirmed_at.is_none() => {
            "Watched; the first read has not been accepted yet.".to_owned()
        }
        "ACTIVE" => match resource.refresh.as_str() {
            "READ_PENDING" => "Fresh; a read is in flight.".to_owned(),
            "UPDATE_SEEN" => "Fresh; a change was announced and a read is due.".to_owned(),
            _ => "Fresh: what is held is what the server last said.".to_owned(),
        },
        "DISCOVERED" => "Known, not watched yet.".to_owned(),
        "SUBSCRIBING" => {
            "Subscribing; the first read follows the server's acknowledgement.".to_owned()
        }
        "UNSUBSCRIBING" => {
            format!("Closing{reason}: nothing is issued any more; late answers change nothing.")
        }
        "CLOSED" => format!(
            "Closed{reason}. The content is kept as it was; watching again is a new generation."
        ),
        "UNSUBSCRIBE_UNKNOWN" => format!(
            "Closed, but the server never acknowledged it{reason}. It stays silent until reconciled."
        ),
        "TOMBSTONE_PENDING" => format!(
            "The server says it is gone{reason}; listings or repeated reads must confirm it."
        ),
        "TOMBSTONED" => format!("Gone, and confirmed{reason}. Indexes have been told."),
        "REVOKED" => format!("Permission was withdrawn{reason}. The content is served to nobody."),
        "RECONCILIATION_REQUIRED" => {
            format!("Its identity is in doubt{reason}. Nothing is accepted until it is reconciled.")
        }
        _ => reason.trim().to_owned(),
    }
}

fn refresh(detail: &ResourceDetail) -> String {
    let every = figures::duration(detail.read_interval_seconds);
    let how = match detail.resource.mode.as_str() {
        "Subscribe" => format!("by subscription, audited every {every}"),
        "Poll" => format!("polled every {every}"),
        other => figures::camel_words(other),
    };
    if detail.resource.cohort {
        how
    } else {
        format!("{how}, outside the cohort")
    }
}

fn moment(at: Option<DateTime<Utc>>, absent: &'static str, to_come: bool) -> AnyView {
    match at {
        None => view! { <span class="muted">{absent}</span> }.into_any(),
        Some(at) if to_come => view! { <span class="num"><Until at=at /></span> }.into_any(),
        Some(at) => view! { <span class="num"><When at=at /></span> }.into_any(),
    }
}

fn named(resource: &Resource, field: &'static str) -> AnyView {
    let object = if field == "server" {
        resource.server.clone()
    } else {
        resource.subject.clone()
    };
    let name = format!("{}/{}", object.namespace, object.name);
    let href = Base::here().to(&format!("/resources?{field}={}", data::segment(&name)));
    view! { <a href=href title=format!("uid {}", object.uid)><span class="muted">{object.namespace}"/"</span>{object.name}</a> }
        .into_any()
}

/// How much of the promised freshness is used up; absent until there is a clock.
#[component]
fn Freshness(resource: Memo<Resource>) -> impl IntoView {
    let now = Clock::signal();
    let used = move || {
        let (confirmed, stale_after) =
            resource.with(|resource| (resource.confirmed_at, resource.stale_after));
        let (now, confirmed, stale_after) = (now.get()?, confirmed?, stale_after?);
        let whole = figures::seconds_between(confirmed, stale_after);
        (whole > 0.0).then(|| (figures::seconds_between(confirmed, now) / whole).clamp(0.0, 1.0))
    };
    let left = move || format!("{:.1}%", (1.0 - used().unwrap_or(1.0)) * 100.0);
    view! {
        <svg class="freshness" width="100%" height="3" aria-hidden="true">
            <rect class="track" width="100%" height="3" rx="1.500" />
            <rect class="left" class:late=move || used().is_some_and(|used| used > 0.9) width=left height="3" rx="1.500" />
        </svg>
    }
}

/// The same truth elsewhere: as JSON, as bytes, in the cluster.
#[component]
fn Doors(detail: Signal<ResourceDetail>) -> impl IntoView {
    let base = Base::here();
    let id = Memo::new(move |_| detail.with(|detail| data::segment(&detail.resource.id)));
    let (json, content) = (base.clone(), base);
    let stored = Memo::new(move |_| {
        detail.with(|detail| detail.stores_content && detail.resource.digest.is_some())
    });
    let watches = Memo::new(move |_| detail.with(|detail| detail.resource.watches.clone()));
    view! {
        <div class="doors">
            <p class="door-links">
                <a href=move || json.api(&format!("resources/{}", id.get())) rel="external">"JSON"</a>
                {move || {
                    stored
                        .get()
                        .then(|| {
                            let href = content.api(&format!("resources/{}/content", id.get()));
                            view! { <a href=href rel="external">"Stored content"</a> }
                        })
                }}
            </p>
            {move || {
                watches
                    .get()
                    .into_iter()
                    .map(|watch| {
                        let line = format!("kubectl -n {} get watchedresource {} -o yaml", watch.namespace, watch.name);
                        view! { <Command text=line what="the kubectl line" /> }
                    })
                    .collect_view()
            }}
        </div>
    }
}
